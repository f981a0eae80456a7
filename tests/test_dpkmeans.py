"""DPKMeans through its face: the budget by hand, grace at the edges, loose bounds, neighbors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm
from sklearn.cluster import KMeans

from pemeans import Domain, DPKMeans, load
from pemeans.evolution import strays
from pemeans.kernels.grid import GRID_UNIT
from test_hyperparameters_are_public import Tape, neighbors, outcome, recording, replaying, rows_of

Rows = npt.NDArray[np.float64]
BALL = Domain.ball(20)


def blobs(n: int, d: int, k: int, width: float = 1.0) -> Rows:
    rng = np.random.default_rng(1000 * d + k)
    means = rng.uniform(-8, 8, (k, d))
    return np.asarray(means[np.arange(n) % k] + width * rng.standard_normal((n, d)))


def fitted(rows: Any, k: int, epsilon: float = 1.0, seed: int | None = 0, **more: Any) -> DPKMeans:
    settings: dict[str, Any] = {"domain": BALL, "n_jobs": 1, "random_state": seed}
    return DPKMeans(k, epsilon=epsilon, **(settings | more)).fit(rows)


# --- the budget ------------------------------------------------------------------------------------

SENSITIVITIES = {"NearestVotes": 1, "DistanceHistogram": 1, "SecondMoments": 5 * 2**24}


@pytest.mark.parametrize(
    ("n", "d", "k", "epsilon"),
    [(50, 2, 10, 0.1), (3000, 3, 4, 1.0), (3000, 3, 4, 8.0), (600, 40, 5, 0.25), (20_000, 2, 3, 1.0)],
)
def test_the_receipt_adds_up_by_hand(n: int, d: int, k: int, epsilon: float) -> None:
    """Gaussian differential privacy from sensitivities and sigmas alone, by the formula of its definition."""
    receipt = fitted(blobs(n, d, k), k, epsilon, seed=None).receipt_
    assert not receipt.seeded
    assert math.fsum(r.share for r in receipt.releases) <= 1 + 1e-9
    mu = math.sqrt(math.fsum((r.sensitivity / r.sigma) ** 2 for r in receipt.releases))
    cost = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert cost <= receipt.delta == n**-1.1
    assert receipt.epsilon_spent <= epsilon
    for r in receipt.releases:
        if r.statistic == "ResidualSums":
            assert 1 <= r.sensitivity <= 2.1 * GRID_UNIT
        else:
            assert r.sensitivity == SENSITIVITIES[r.statistic]
        # Of the noise that one release may have, its share of mu squared says how much.
        assert (r.sensitivity / r.sigma) ** 2 == pytest.approx(r.share * mu**2, rel=0.06)


def test_nearly_all_of_the_budget_is_used() -> None:
    assert fitted(blobs(3000, 3, 4), 4).receipt_.epsilon_spent > 0.99


# --- grace -----------------------------------------------------------------------------------------


def check(model: DPKMeans, k: int, d: int) -> None:
    centers, domain = model.cluster_centers_, model.domain_
    assert centers.shape == (k, d)
    assert np.isfinite(centers).all()
    if domain.bounds is None:
        assert np.linalg.norm(centers - np.array(domain.center), axis=1).max() <= domain.radius * 1.000001
    else:
        lower, upper = domain.bounds
        assert (centers >= lower).all()
        assert (centers <= upper).all()
    assert (model.cluster_sizes_ >= 0).all()
    assert model.receipt_.epsilon_spent <= model.epsilon


@pytest.mark.parametrize("seed", range(8))
def test_few_rows_and_little_budget_yield_distinct_centers(seed: int) -> None:
    rows = np.random.default_rng(seed).uniform(-1, 1, (50, 2))
    model = fitted(rows, 10, 0.1, seed, domain=Domain.box(-1, [1, 2], scale=bool(seed % 2)))
    check(model, 10, 2)
    assert len(np.unique(model.cluster_centers_, axis=0)) == 10


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(1, 1, 1), (2, 3, 2), (400, 1, 5), (300, 3, 1), (200, 512, 4), (1500, 2, 500), (30, 2, 30)],
)
def test_any_shape_is_clustered(n: int, d: int, k: int, epsilon: float) -> None:
    check(fitted(blobs(n, d, 3), k, epsilon), k, d)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, math.inf])
@pytest.mark.parametrize("place", [0.0, 0.3, 1.0])
def test_equal_rows(epsilon: float, place: float) -> None:
    """A center lies on the only place there is, but for the noise."""
    model = fitted(np.full((2000, 3), place), 6, epsilon, domain=Domain.box(-1, 1))
    check(model, 6, 3)
    assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.02


@pytest.mark.parametrize(("small", "epsilon"), [(50, 4.0), (100, 2.0), (200, 1.0), (600, 0.5)])
@pytest.mark.parametrize("d", [1, 3, 30])
def test_two_far_clumps_of_very_different_size(small: int, epsilon: float, d: int) -> None:
    """Hundreds of their widths apart; the smaller has some more rows than the noise can hide."""
    rng = np.random.default_rng(2)
    rows = 0.05 / math.sqrt(d) * rng.standard_normal((4000, d))
    rows[:small] += 15 / math.sqrt(d)
    model = fitted(rows, 2, epsilon)
    check(model, 2, d)
    for place in (0.0, 15 / math.sqrt(d)):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.9  # 6 % of the way
    assert abs(model.cluster_sizes_.min() - small) < 150


@pytest.mark.parametrize("d", [1, 3, 30])
def test_clumps_in_opposite_corners_of_a_box(d: int) -> None:
    """The smaller one is farther from the mean of all rows than the domain's radius."""
    rows = 0.01 * np.random.default_rng(5).standard_normal((4000, d))
    rows[:100] += 10
    model = fitted(rows, 2, 16.0, domain=Domain.box(-0.1, 10.1, scale=False))
    check(model, 2, d)
    for place in (0, 10):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.1 * math.sqrt(d)


# --- accuracy --------------------------------------------------------------------------------------

GENEROUS = {
    "blobs": (blobs(4000, 8, 10), 10),
    "overlapping": (np.random.default_rng(0).standard_normal((4000, 3)), 8),
    "more dimensions than the votes have": (blobs(3000, 30, 12), 12),
    "uneven": (blobs(4000, 4, 40)[(np.arange(4000) % 40) ** 2 % 160 < 100], 10),
}


@pytest.mark.parametrize("epsilon", [100.0, math.inf])
@pytest.mark.parametrize("name", GENEROUS)
def test_with_a_generous_budget_it_is_kmeans(name: str, epsilon: float) -> None:
    rows, k = GENEROUS[name]
    plain = KMeans(k, n_init=10, random_state=0).fit(rows).inertia_
    losses = [-fitted(rows, k, epsilon, seed, domain=Domain.ball(40)).score(rows) for seed in range(3)]
    assert np.mean(losses) < 1.04 * plain


LOOSE = blobs(5000, 8, 8)
TIGHT = float(np.linalg.norm(LOOSE, axis=1).max())
OFF = np.full(8, 3 * TIGHT / np.sqrt(8))


@pytest.mark.parametrize(
    ("shift", "radius"),
    [(0.0, 2 * TIGHT), (0.0, 5 * TIGHT), (0.0, 10 * TIGHT), (OFF, 4 * TIGHT), (-OFF, 12 * TIGHT)],
    ids=["2 times", "5 times", "10 times", "off-center", "off-center, 12 times"],
)
def test_loose_bounds_cost_next_to_nothing(shift: Rows | float, radius: float) -> None:
    def loss(rows: Rows, domain: Domain) -> float:
        return float(np.mean([-fitted(rows, 8, 1.0, seed, domain=domain).score(rows) for seed in range(3)]))

    tight = loss(LOOSE, Domain.ball(TIGHT))
    assert loss(LOOSE + shift, Domain.ball(radius)) < 1.1 * tight


# --- nothing but released answers ------------------------------------------------------------------

CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (2, {}),
    "little budget": (2, {"epsilon": 0.02}),
    "much budget": (2, {"epsilon": 30.0}),
    "many dimensions": (40, {}),
    "ball": (14, {"domain": Domain.ball(2.0)}),
    "scaled box": (2, {"domain": Domain.box(-1, [1, 3], scale=True)}),
}


def check_neighbors(model: Any, rows: Rows, folder: Path) -> None:
    """The released answers alone make the model file, the warnings, the progress and the questions."""
    script = Tape()
    with recording(script):
        recorded = outcome(model, rows, folder)
    assert len(recorded[2]) > 0
    for name, others in neighbors(rows).items():
        tape = Tape()
        with replaying(script, tape):
            again = outcome(model, others, folder)
        assert [x.shape for x in tape.exact] == [x.shape for x in script.exact], name
        if name != "another order":
            assert any((a != b).any() for a, b in zip(tape.exact, script.exact, strict=True)), name
        assert again == recorded, name


@pytest.mark.parametrize("case", CASES)
def test_the_same_answers_from_neighbors_make_the_same_file(case: str, tmp_path: Path) -> None:
    d, parameters = CASES[case]
    rows = rows_of(d)
    settings: dict[str, Any] = {"domain": Domain.box(-1, 1), "n_samples": len(rows), "random_state": 5}
    check_neighbors(DPKMeans(n_clusters=3, n_jobs=1, **(settings | parameters)), rows, tmp_path)


def test_the_same_answers_make_the_same_file_where_there_are_strays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same branch is taken by every neighbor: in all fits stand-ins are added."""
    rows = rows_of(2)
    rows[::24] = np.where(np.arange(10)[:, np.newaxis] % 2, [1, -1], [-1, 1])
    stand_ins = Mock(wraps=strays.stand_ins)
    monkeypatch.setattr(strays, "stand_ins", stand_ins)
    settings: dict[str, Any] = {"domain": Domain.box(-1, 1), "n_samples": len(rows), "random_state": 5}
    check_neighbors(DPKMeans(3, epsilon=60.0, n_jobs=1, **settings), rows, tmp_path)
    assert stand_ins.call_count == 1 + len(neighbors(rows))


def test_plan_and_first_question_are_the_same_for_all_rows() -> None:
    """The frame comes first; until then nothing released can make a difference."""
    rows = rows_of(2)
    seen = set()
    for others in [rows, *neighbors(rows).values()]:
        model = fitted(others, 3, n_samples=len(rows), domain=Domain.box(-1, 1))
        releases = model.receipt_.releases
        seen.add((len(releases), *((r.name, r.statistic, r.share) for r in releases), releases[0].sigma))
    assert len(seen) == 1


# --- in and out ------------------------------------------------------------------------------------


def test_every_input_gives_the_same_model() -> None:
    rows = blobs(300, 3, 3).round(2)
    named = {"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2]}
    wanted = fitted(rows, 3)
    others: list[Any] = [
        rows.tolist(),
        np.asfortranarray(rows),
        np.repeat(rows, 2, axis=0)[::2],
        rows.astype(">f8"),
        pd.DataFrame(named),
        pl.DataFrame(named),
        pa.table(named),
    ]
    for other in others:
        model = fitted(other, 3)
        assert (model.cluster_centers_ == wanted.cluster_centers_).all()
        assert (model.cluster_sizes_ == wanted.cluster_sizes_).all()
    assert list(fitted(pl.DataFrame(named), 3).feature_names_in_) == ["a", "b", "c"]
    whole = fitted(np.rint(rows).astype(np.int16), 3).cluster_centers_
    assert (whole == fitted(np.rint(rows), 3).cluster_centers_).all()


def test_threads_and_order_do_not_matter() -> None:
    rows = blobs(40_000, 3, 3)
    one, two = fitted(rows, 3, 0.5), fitted(rows[::-1], 3, 0.5, n_jobs=2)
    assert (one.cluster_centers_ == two.cluster_centers_).all()
    assert one.receipt_ == two.receipt_


def test_noise_is_drawn_anew() -> None:
    rows = blobs(500, 2, 3)
    one, two = (fitted(rows, 3, seed=None) for _ in range(2))
    assert (one.cluster_centers_ != two.cluster_centers_).any()


def test_save_and_load(tmp_path: Path) -> None:
    rows = blobs(500, 2, 3)
    model = fitted(rows, 3)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert isinstance(again, DPKMeans)
    assert (again.cluster_centers_ == model.cluster_centers_).all()
    assert (again.cluster_sizes_ == model.cluster_sizes_).all()
    assert again.receipt_ == model.receipt_
    assert (again.predict(rows) == model.predict(rows)).all()

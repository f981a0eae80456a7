"""Mistakes that earlier implementations of PE-means made, one section each: none of them may come back."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from pemeans import DataError, Domain, HDPEMeans, PEMeans, Progress
from pemeans.evolution import project
from pemeans.evolution.loop import Iteration
from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, Projection
from pemeans.kernels.nearest import Labels, nearest
from pemeans.privacy.bits import Bits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestVotes, Statistic
from pemeans.rows import block as block_module
from pemeans.rows.base import Question
from pemeans.rows.block import Block
from pemeans.rows.memory import MemoryRows

FALSE_ALARM = 1e-7
N, D, K = 300, 40, 4
DOMAIN = Domain.box(-1, 1)
METHODS = [PEMeans, HDPEMeans]


def rows_of(d: int = D, n: int = N) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(d)
    return np.clip(rng.choice([-0.5, 0.5], size=(n, 1)) + 0.1 * rng.standard_normal((n, d)), -1, 1)


def model_of(method: type[PEMeans | HDPEMeans], **parameters: Any) -> PEMeans | HDPEMeans:
    defaults: dict[str, Any] = {"n_clusters": K, "domain": DOMAIN, "n_jobs": 1, "n_variations": 6}
    return method(**(defaults | parameters))


@dataclass
class Released:
    """One release, with the noise that was in it."""

    name: str
    noise: IntArray
    sigma: float


@pytest.fixture
def releases() -> Iterator[list[Released]]:
    """All releases of the fits in a test."""
    ask: Callable[[MemoryRows, Question], IntArray] = MemoryRows.total
    release: Callable[[Curator, str, Statistic, float], Answer] = Curator.release
    exact: list[IntArray] = []
    found: list[Released] = []

    def total(self: MemoryRows, statistic: Question) -> IntArray:
        exact.append(ask(self, statistic))
        return exact[-1]

    def released(self: Curator, name: str, statistic: Statistic, share: float) -> Answer:
        answer = release(self, name, statistic, share)
        found.append(Released(name, answer.values - exact[-1], answer.sigma))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRows, "total", total)
        patch.setattr(Curator, "release", released)
        yield found


# --- one scalar of noise shared by all coordinates -------------------------------------------------


@pytest.mark.parametrize("seed", [None, 1])
def test_every_coordinate_has_its_own_noise(releases: list[Released], seed: int | None) -> None:
    model_of(HDPEMeans, random_state=seed).fit(rows_of())
    (sums,) = [release for release in releases if release.name == "lifted sums"]
    assert sums.noise.shape == (K, D)
    assert len(np.unique(sums.noise)) == K * D
    # What is left of each cluster's noise without its mean is all but one of its degrees of freedom.
    within = ((sums.noise - sums.noise.mean(axis=1, keepdims=True)) ** 2).sum() / sums.sigma**2
    across = ((sums.noise - sums.noise.mean(axis=0)) ** 2).sum() / sums.sigma**2
    for squared, freedom in ((within, K * (D - 1)), (across, (K - 1) * D)):
        low, high = (stats.chi2.ppf(p, freedom) for p in (FALSE_ALARM / 4, 1 - FALSE_ALARM / 4))
        assert low < squared < high


# --- sigma recomputed for T - 2 iterations in the lift ---------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_lift_has_the_sigma_of_all_t_iterations(epsilon: float) -> None:
    receipt = model_of(HDPEMeans, epsilon=epsilon).fit(rows_of()).receipt_
    iterations = math.floor(4 * math.sqrt(16) * max(epsilon, 1))
    assert len(receipt.releases) == iterations
    for release in receipt.releases:
        wanted = Ledger(epsilon, receipt.delta).charge("", "", release.sensitivity, 1 / iterations)
        assert release.sigma == pytest.approx(wanted, rel=1e-9)
    spent = sum((release.sensitivity / release.sigma) ** 2 for release in receipt.releases)
    assert math.sqrt(spent) <= Ledger(epsilon, receipt.delta).mu
    assert 0.95 * epsilon < receipt.epsilon_spent <= epsilon


# --- clusters dropped when exactly empty -----------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
@pytest.mark.parametrize("d", [2, D])
def test_empty_clusters_have_centers(method: type[PEMeans | HDPEMeans], epsilon: float, d: int) -> None:
    model = model_of(method, n_clusters=9, epsilon=epsilon).fit(np.full((60, d), 0.3))
    assert model.cluster_centers_.shape == (9, d)
    assert model.cluster_sizes_.shape == (9,)
    assert np.isfinite(model.cluster_centers_).all()


# --- iteration count of HDPE-means blind to epsilon ------------------------------------------------


@pytest.mark.parametrize(("epsilon", "iterations"), [(0.25, 16), (1.0, 16), (2.0, 32), (4.5, 72)])
def test_more_epsilon_buys_more_iterations(epsilon: float, iterations: int) -> None:
    assert len(model_of(HDPEMeans, epsilon=epsilon).fit(rows_of()).receipt_.releases) == iterations
    few = model_of(PEMeans, epsilon=epsilon).fit(rows_of(16))
    assert len(few.receipt_.releases) == iterations


# --- the same projection in every run --------------------------------------------------------------


@pytest.mark.parametrize("seeds", [(None, None), (1, 2)])
def test_every_run_has_its_own_projection(
    seeds: tuple[int | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Projection] = []
    draw: Callable[[int, np.random.Generator], Projection] = project.random_projection

    def remembered(dimensions: int, rng: np.random.Generator) -> Projection:
        drawn.append(draw(dimensions, rng))
        return drawn[-1]

    monkeypatch.setattr(project, "random_projection", remembered)
    for seed in seeds:
        np.random.seed(0)  # noqa: NPY002 -- must not matter
        model_of(HDPEMeans, random_state=seed).fit(rows_of())
    model = model_of(HDPEMeans, random_state=np.random.default_rng(3))
    model.fit(rows_of()).fit(rows_of())
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert np.abs(np.corrcoef(one.matrix.ravel(), other.matrix.ravel())[0, 1]) < 0.25


# --- rows with NaN voting for the last candidate ---------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["float64", "float32", "pandas", "Fortran"])
def test_rows_with_nan_are_refused_before_anything_is_released(
    method: type[PEMeans | HDPEMeans], value: float, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of()
    rows[N - 1, D // 2] = value
    data: Any = {
        "float64": rows,
        "float32": rows.astype(np.float32),
        "pandas": pd.DataFrame(rows),
        "Fortran": np.asfortranarray(rows),
    }[kind]
    monkeypatch.setattr(Curator, "release", lambda *_: pytest.fail("released"))
    with pytest.raises(DataError, match="NaN") as caught:
        model_of(method).fit(data)
    assert str(N - 1) not in str(caught.value)  # nor does the message name the row


# --- nearest neighbors by batched float arithmetic -------------------------------------------------


def ties() -> tuple[GridArray, GridArray]:
    """Candidates one grid unit apart, and rows between them: single precision can't tell."""
    rng = np.random.default_rng(0)
    corner = rng.integers(GRID_UNIT // 16, GRID_UNIT // 8, size=16)
    candidates = (corner + rng.integers(-1, 2, size=(300, 16))).astype(np.int32)
    rows = (corner + rng.integers(-2, 3, size=(2000, 16))).astype(np.int32)
    return rows, candidates


def in_float32(rows: GridArray, candidates: GridArray) -> Labels:
    """The mistake: one matrix product for the whole batch."""
    x, c = rows.astype(np.float32), candidates.astype(np.float32)
    return np.asarray(((c**2).sum(axis=1) - 2 * x @ c.T).argmin(axis=1), dtype=np.int32)


def votes_of_others_that_change(rows: GridArray, candidates: GridArray) -> int:
    """How far the votes of the other rows move when rows are dropped, over several ways to drop some."""
    moved = 0
    whole = NearestVotes(candidates)(Block(rows))
    for kept in (
        slice(0, 1),
        slice(0, 7),
        slice(0, 64),
        slice(1, None),
        slice(0, 1999),
        slice(None, None, 2),
    ):
        dropped = np.delete(rows, np.arange(len(rows))[kept], axis=0)
        one_by_one = sum(NearestVotes(candidates)(Block(row[np.newaxis])) for row in rows[kept])
        moved += int(np.abs(whole - NearestVotes(candidates)(Block(dropped)) - one_by_one).sum())
    return moved


def test_votes_are_row_local_on_near_ties() -> None:
    rows, candidates = ties()
    assert votes_of_others_that_change(rows, candidates) == 0
    exact = ((rows[:, np.newaxis].astype(np.int64) - candidates) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest(rows, candidates) == exact).all()


def test_batched_float_arithmetic_is_wrong_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test before this one has teeth."""
    rows, candidates = ties()
    exact = ((rows[:, np.newaxis].astype(np.int64) - candidates) ** 2).sum(axis=2).argmin(axis=1)
    monkeypatch.setattr(block_module, "nearest", in_float32)
    assert (in_float32(rows, candidates) != exact).mean() > 0.5


# --- noise from a seeded Mersenne Twister ----------------------------------------------------------


class Forbidden(np.random.RandomState):
    """A Mersenne Twister that nobody may make."""

    def __init__(self, *_: object) -> None:
        pytest.fail("made a RandomState")


LEGACY = (
    "seed",
    "normal",
    "standard_normal",
    "randn",
    "rand",
    "random",
    "random_sample",
    "randint",
    "uniform",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [None, 0])
def test_no_mersenne_twister(
    method: type[PEMeans | HDPEMeans], seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np.random, "RandomState", Forbidden)
    for name in LEGACY:
        monkeypatch.setattr(np.random, name, lambda *_, **__: pytest.fail("NumPy's global generator"))
    monkeypatch.setattr(np.random, "MT19937", Forbidden)
    for name in ("random", "getrandbits", "randbytes", "gauss", "normalvariate"):
        monkeypatch.setattr(random.Random, name, lambda *_, **__: pytest.fail("Python's own generator"))
        monkeypatch.setattr(random, name, lambda *_, **__: pytest.fail("Python's own generator"))
    model_of(method, random_state=seed).fit(rows_of())


def test_global_seeds_do_not_touch_the_noise(releases: list[Released]) -> None:
    noise = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 -- must not matter
        model_of(HDPEMeans).fit(rows_of())
        noise.append(
            np.concatenate([release.noise.ravel() for release in releases if "lifted" in release.name])
        )
        releases.clear()
    assert (noise[0] != noise[1]).mean() > 0.9


def test_without_a_seed_every_draw_reads_the_operating_system(
    releases: list[Released], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(size: int) -> bytes:
        read.append(size)
        return from_system(size)

    from_system = os.urandom
    monkeypatch.setattr("pemeans.privacy.bits.os.urandom", counted)
    model = model_of(HDPEMeans).fit(rows_of())
    assert sum(read) >= 8 * sum(release.noise.size for release in releases)
    assert not model.receipt_.seeded


# --- exact loss per iteration returned with the model ----------------------------------------------

LEARNED = {"cluster_centers_", "cluster_sizes_", "domain_", "receipt_", "n_features_in_"}
FILE = {
    "checksum",
    "cluster_centers",
    "cluster_sizes",
    "domain",
    "feature_names",
    "format",
    "method",
    "parameters",
    "receipt",
    "version",
}


@pytest.mark.parametrize("method", METHODS)
def test_the_model_holds_released_values_only(method: type[PEMeans | HDPEMeans], tmp_path: Path) -> None:
    model = model_of(method).fit(rows_of())
    assert set(vars(model)) == LEARNED | {"_fitted_with"} | set(model.get_params())
    assert set(model._fitted_with) <= set(model.get_params())
    for name in ("labels_", "inertia_", "loss_", "history_", "n_iter_"):
        assert not hasattr(model, name)
    model.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert set(document) == FILE
    assert set(document["receipt"]["releases"][0]) == {
        "name",
        "statistic",
        "sensitivity",
        "sigma",
        "share",
        "law",
        "epsilon_so_far",
    }


def test_no_array_of_private_size_stays_on_the_model() -> None:
    model = model_of(PEMeans).fit(rows_of(2))
    for value in vars(model).values():
        assert N not in np.shape(value) if isinstance(value, np.ndarray) else True
    assert not any(isinstance(value, MemoryRows | Curator) for value in vars(model).values())


def test_progress_shows_released_values_only() -> None:
    assert {f.name for f in fields(Progress)} == {"iteration", "n_iterations", "cluster_centers"}
    assert {f.name for f in fields(Iteration)} == {"number", "of", "population", "votes", "survivors"}


# --- noise and count sharing one random stream -----------------------------------------------------


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_sums_and_counts_err_independently(releases: list[Released], seed: int | None) -> None:
    """The standardized noise of one release does not come back in another one, in whatever place."""
    for _ in range(20):
        model_of(HDPEMeans, random_state=seed).fit(rows_of())
        sums, counts = (r for r in releases if r.name.startswith("lifted"))
        votes = [r for r in releases if r.name == "votes"]
        for one, other in ((sums, counts), (votes[-1], counts), (votes[0], sums), (votes[0], votes[1])):
            length = min(one.noise.size, other.noise.size, K)
            a, b = (r.noise.ravel()[:length] / r.sigma for r in (one, other))
            assert np.abs(a - b).max() > 2 / min(one.sigma, other.sigma)
        releases.clear()
        if seed is not None:
            break


def test_sums_and_counts_are_uncorrelated(releases: list[Released]) -> None:
    products = []
    for seed in range(60):
        model_of(HDPEMeans, n_iterations=3, n_clusters=8, random_state=seed).fit(rows_of(17, 50))
        sums, counts = (r.noise / r.sigma for r in releases if r.name.startswith("lifted"))
        products.append(sums * counts[:, np.newaxis])
        releases.clear()
    scaled = np.mean(products) * math.sqrt(np.size(products))
    # Products within one cluster share a count: the variance of their mean is that of 8 x 60 x 17 numbers.
    assert abs(scaled) < stats.norm.isf(FALSE_ALARM / 2)


class Wasteful:
    """No noise at all, after drawing much or little of it."""

    wasted = 0

    def __init__(self, bits: Bits, tail_bits: int) -> None:
        self.sampler, self.seeded = NoiseSampler(bits, tail_bits), bits.seeded

    def gaussian(self, sigma: float, size: int) -> IntArray:
        self.sampler.gaussian(sigma, self.wasted)
        return np.zeros(size, dtype=np.int64)


@pytest.mark.parametrize("method", METHODS)
def test_noise_takes_nothing_from_the_stream_of_the_candidates(
    method: type[PEMeans | HDPEMeans], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pemeans.estimators.NoiseSampler", Wasteful)
    centers = []
    for wasted in (0, 1, 1000):
        monkeypatch.setattr(Wasteful, "wasted", wasted)
        centers.append(model_of(method, random_state=9).fit(rows_of()).cluster_centers_)
    assert (centers[0] == centers[1]).all()
    assert (centers[0] == centers[2]).all()

"""Balcan et al.: every repair of the authors' code has a test that fails without it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.baselines import balcan
from pemeans.baselines.balcan import (
    Settings,
    balcan_kmeans,
    candidates,
    noisy_means,
    partition,
    projection,
    search,
)
from pemeans.kernels.grid import GRID_UNIT, to_float, to_grid
from pemeans.privacy.cubes import CubeCounts
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.statistics import PureStatistic

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]
Blobs = Callable[..., tuple[Floats, Floats]]


@pytest.mark.parametrize(
    ("n", "d", "dimensions"), [(20_000, 5, None), (20_000, 6, 4), (70_000, 84, 5), (150, 8, 2)]
)
def test_rows_are_projected_to_half_the_logarithm(
    n: int, d: int, dimensions: int | None, curate: MakeCurator
) -> None:
    view = projection(curate(np.zeros((n, d)), 1.0, 0.0), np.random.default_rng(0))
    assert (None if view is None else view.matrix.shape) == (None if dimensions is None else (dimensions, d))


def test_projections_keep_lengths_on_average(curate: MakeCurator) -> None:
    view = projection(curate(np.zeros((3000, 1000)), 1.0, 0.0), np.random.default_rng(0))
    assert view is not None
    assert (view.matrix**2).sum() / 1000 == pytest.approx(1, rel=0.15)


def releases(curator: Curator, k: int, settings: Settings | None = None) -> list[tuple[str, float]]:
    balcan_kmeans(curator, k, settings or Settings(), np.random.default_rng(0))
    return [(release.name, release.share) for release in curator.receipt("").releases]


def test_parts_of_the_budget(curate: MakeCurator, blobs: Blobs) -> None:
    made = releases(curate(blobs()[0], 50.0, 0.0), 4)
    total = {
        name: math.fsum(share for label, share in made if label.startswith(name))
        for name in ("cubes", "swap", "best", "first", "Lloyd")
    }
    assert total["cubes"] <= 2 / 3 + 1e-9
    assert total["swap"] + total["best"] == pytest.approx(1 / 12)
    assert total["first"] == pytest.approx(1 / 6)
    assert total["Lloyd"] == pytest.approx(1 / 12)
    assert [name for name, _ in made].count("swap") == 4
    assert [name for name, _ in made].count("Lloyd sums") == 3


def test_three_partitions_of_full_depth_fit_into_their_part(
    curate: MakeCurator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(a) One row many times: every partition goes down to the last depth."""
    monkeypatch.setattr(balcan, "search", lambda *_: np.zeros((2, 2), dtype=np.int32))
    curator = curate(np.full((5000, 2), 0.3), 100.0, 0.0)
    made = [share for name, share in releases(curator, 2) if name == "cubes"]
    assert len(made) == 3 * (math.ceil(math.log(5000)) - 1)
    assert math.fsum(made) == pytest.approx(2 / 3)
    assert curator.receipt("").epsilon_spent <= 100.0


def test_shifted_partitions_see_the_whole_cube(curate: MakeCurator, blobs: Blobs) -> None:
    """(b) Their cubes are as wide as those of the first: all that a shift leaves in the cube is found."""
    rows, centers = blobs(k=4)
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(5):
        shift = rng.integers(-GRID_UNIT, GRID_UNIT, 2)
        points = partition(curate(rows, math.inf, 0.0), None, GRID_UNIT, shift, 0.2)
        nearest = np.linalg.norm(points[:, np.newaxis] - centers, axis=2).min(axis=0)
        inside = np.abs(centers + shift / GRID_UNIT).max(axis=1) < 0.99
        assert (nearest[inside] < 0.05).all()
        found += int(inside.sum())
        assert points[0] == pytest.approx(-shift / GRID_UNIT)
    assert found > 5


def test_all_children_get_noise_empty_or_not(curate: MakeCurator, monkeypatch: pytest.MonkeyPatch) -> None:
    """(c) As many noisy counts as children, though all rows are in one of them."""
    curator = curate(np.full((2000, 3), 0.3), 1.0, 0.0)
    made: list[Answer] = []
    plain = curator.release_pure

    def release(name: str, statistic: PureStatistic, share: float) -> Answer:
        made.append(plain(name, statistic, share))
        return made[-1]

    curator.release_pure = release  # type: ignore[method-assign]
    partition(curator, None, GRID_UNIT, np.zeros(3, dtype=np.int64), 2 / 9)
    assert made[0].values.shape == (1, 8)
    assert (made[0].values != 0).sum() >= 7  # noise of a scale of 30
    empty_survive = []
    monkeypatch.setattr(balcan, "log", lambda x: 0.7 if x == 50 else math.log(x))
    for seed in range(200):
        quiet = curate(np.zeros((50, 1)), 1.0, 0.0, seed)
        found = partition(quiet, None, GRID_UNIT, np.ones(1, dtype=np.int64), 1.0)
        empty_survive.append(bool((found < -0.4).any()))
    assert any(empty_survive)


def test_means_are_of_noisy_sums_and_noisy_counts(curate: MakeCurator) -> None:
    """(d) Empty clusters are asked for like all others; no size is exact."""
    rows = np.full((1000, 2), 0.5)
    centers = to_grid(np.array([[0.5, 0.5], [-0.5, -0.5]]))
    found = [noisy_means(curate(rows, 1.0, 0.0, seed), "first", centers, None, 0.5) for seed in range(50)]
    sizes = np.array([one.sizes for one in found])
    assert (sizes[:, 0] != 1000).sum() > 40
    assert len(np.unique(sizes[:, 1])) > 10
    assert (sizes >= 1).all()
    assert all(np.linalg.norm(to_float(one.centers), axis=1).max() <= 1 for one in found)
    curator = curate(rows, 1.0, 0.0)
    noisy_means(curator, "first", centers, None, 0.5)
    counts, sums = curator.receipt("").releases
    assert sums.sensitivity == math.isqrt(2 * GRID_UNIT**2)
    assert counts.share + sums.share == pytest.approx(0.5)
    e, s = counts.share, sums.share
    assert 2 * 2**2 / s**2 + 2 * 0.45**2 / e**2 < min(  # other splits are worse
        2 * 2**2 / (0.5 - other) ** 2 + 2 * 0.45**2 / other**2 for other in (0.9 * e, 1.1 * e)
    )


def test_candidates_are_in_the_ball_and_distinct(curate: MakeCurator, blobs: Blobs) -> None:
    """(e) Losses in the search are for a diameter of two."""
    found = candidates(curate(blobs()[0], 20.0, 0.0), None, Settings(), np.random.default_rng(0))
    assert len(np.unique(found, axis=0)) == len(found)
    assert np.linalg.norm(found, axis=1).max() <= GRID_UNIT


def test_too_many_candidates_are_thinned_out(
    curate: MakeCurator, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balcan, "MOST_CANDIDATES", 50)
    found = candidates(curate(blobs()[0], math.inf, 0.0), None, Settings(), np.random.default_rng(0))
    assert found.shape == (50, 2)


def test_the_search_finds_the_clusters_when_choices_are_exact(curate: MakeCurator, blobs: Blobs) -> None:
    """(f) The best swap wins, also where weights of exp would all be 0 or infinite."""
    rows, centers = blobs(k=5)
    offered = to_grid(np.concatenate([centers, np.random.default_rng(1).uniform(-0.6, 0.6, (30, 2))]))
    for epsilon in (math.inf, 1e4):
        found = to_float(search(curate(rows, epsilon, 0.0), None, offered, 5, np.random.default_rng(0)))
        assert np.linalg.norm(found[:, np.newaxis] - centers, axis=2).min(axis=0).max() < 0.3


def test_the_search_draws_at_random_when_epsilon_is_tiny(curate: MakeCurator, blobs: Blobs) -> None:
    rows, centers = blobs(k=2)
    offered = to_grid(np.concatenate([centers, np.zeros((20, 2))]))
    picked = [
        search(curate(rows, 1e-3, 0.0, seed), None, offered, 1, np.random.default_rng(seed))[0].any()
        for seed in range(60)
    ]
    assert sum(picked) < 30  # 2 of 22 are not at the origin


def test_rows_outside_do_not_widen_anything(curate: MakeCurator) -> None:
    """(g) The noise of all releases up to the first choice of cells depends on public facts alone."""
    scales = []
    for rows in (np.zeros((500, 2)), np.full((500, 2), 0.7)):
        curator = curate(rows, 1.0, 0.0)
        balcan_kmeans(curator, 2, Settings(), np.random.default_rng(0))
        scales.append({(release.name, release.sigma) for release in curator.receipt("").releases})
    assert scales[0] == scales[1]


def test_the_box_is_the_largest_cube(curate: MakeCurator) -> None:
    asked: list[CubeCounts] = []
    curator = curate(np.zeros((100, 3)), 1.0, 0.0)
    plain = curator.release_pure

    def release(name: str, statistic: PureStatistic, share: float) -> Answer:
        assert isinstance(statistic, CubeCounts)
        asked.append(statistic)
        return plain(name, statistic, share)

    curator.release_pure = release  # type: ignore[method-assign]
    candidates(curator, None, Settings(box=(0.1, 0.25, 0.2)), np.random.default_rng(0))
    assert {statistic.half_width for statistic in asked} == {GRID_UNIT // 4}
    assert all(np.abs(statistic.shift).max() <= GRID_UNIT // 4 for statistic in asked)

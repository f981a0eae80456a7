"""RANDOM_API: sphere packing in the unit ball (section 3.1 of the paper)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist

from pemeans.evolution import populate as populate_module
from pemeans.evolution.populate import populate, uniform_in_ball
from pemeans.kernels.grid import GRID_UNIT, FloatArray, to_float
from pemeans.kernels.packing import Packing

ROUNDING = 4 / GRID_UNIT


class SpiedPacking(Packing):
    """Remembers every packing that was tried, and the longest candidate that each was offered."""

    tried: list[SpiedPacking]

    def __init__(self, most: int, dimensions: int, distance: float, patience: int) -> None:
        super().__init__(most, dimensions, distance, patience)
        self.distance, self.patience, self.longest = distance, patience, 0.0
        self.tried.append(self)

    def offer(self, candidates: FloatArray) -> None:
        self.longest = max(self.longest, float(np.linalg.norm(candidates, axis=1).max()))
        super().offer(candidates)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[SpiedPacking]:
    SpiedPacking.tried = []
    monkeypatch.setattr(populate_module, "Packing", SpiedPacking)
    return SpiedPacking.tried


SIZES = [(1, 1), (1, 2), (2, 1), (2, 10), (3, 200), (1, 500), (16, 400), (64, 50)]


@pytest.mark.parametrize(("dimensions", "size"), SIZES)
def test_candidates_keep_their_distance_from_each_other_and_from_the_edge(
    dimensions: int, size: int, tried: list[SpiedPacking]
) -> None:
    points = to_float(populate(size, dimensions, np.random.default_rng(size)))
    a = tried[-1].distance / 2
    assert points.shape == (size, dimensions)
    assert np.linalg.norm(points, axis=1).max() <= 1 - a + ROUNDING
    if size > 1:
        assert pdist(points).min() >= 2 * a - ROUNDING


@pytest.mark.parametrize(("dimensions", "size"), SIZES)
def test_the_first_radius_is_half_and_halves_after_100_rejections(
    dimensions: int, size: int, tried: list[SpiedPacking]
) -> None:
    populate(size, dimensions, np.random.default_rng(size))
    assert [packing.distance for packing in tried] == [2 * 0.5 / 2**i for i in range(len(tried))]
    assert all(packing.patience == 100 for packing in tried)
    assert all(packing.stuck and not packing.full for packing in tried[:-1])
    assert tried[-1].full
    for packing in tried:
        assert packing.longest <= 1 - packing.distance / 2


@pytest.mark.parametrize(("dimensions", "size"), SIZES)
def test_with_a_smaller_radius_the_packing_starts_over(
    dimensions: int, size: int, tried: list[SpiedPacking]
) -> None:
    populate(size, dimensions, np.random.default_rng(size))
    points = np.concatenate([packing.points for packing in tried])
    assert len(np.unique(points, axis=0)) == len(points)


def test_crowded_populations_need_smaller_radii(tried: list[SpiedPacking]) -> None:
    radii = []
    for size in (2, 20, 200):
        tried.clear()
        populate(size, 2, np.random.default_rng(0))
        radii.append(tried[-1].distance)
    assert radii[0] > radii[1] > radii[2]


def test_candidates_depend_on_the_generator_alone() -> None:
    one, other, third = (populate(30, 3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert (one == other).all()
    assert (one != third).any()


@pytest.mark.parametrize("dimensions", [1, 2, 5, 16])
def test_uniform_in_the_ball(dimensions: int) -> None:
    """The volume inside a point's radius is uniform, and so is its direction; false alarms below 1e-7."""
    points = uniform_in_ball(20_000, dimensions, np.random.default_rng(dimensions))
    radii = np.linalg.norm(points, axis=1)
    assert radii.max() <= 1
    assert stats.kstest(radii**dimensions, "uniform").pvalue > 1e-7
    mean = (points / radii[:, np.newaxis]).mean(axis=0) * np.sqrt(20_000 * dimensions)
    assert np.abs(mean).max() < stats.norm.isf(1e-7 / dimensions)

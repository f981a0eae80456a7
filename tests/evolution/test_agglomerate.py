"""From the coreset to k centers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.evolution.agglomerate import fill_up, settle, ward, ward_start
from pemeans.evolution.explore import Cloud
from pemeans.kernels.grid import GRID_UNIT, FloatArray, squared_norms, to_float, to_grid
from pemeans.kernels.kmeans import weighted_loss


def ward_by_the_book(centers: FloatArray, mass: FloatArray, k: int) -> FloatArray:
    """Every pair is tried anew before every merger."""
    points = [(np.array(c), float(w)) for c, w in zip(centers, mass, strict=True)]
    while len(points) > k:
        pairs = [(i, j) for i in range(len(points)) for j in range(i)]

        def cost(pair: tuple[int, int], points: list[tuple[FloatArray, float]] = points) -> float:
            (a, w), (b, v) = points[pair[0]], points[pair[1]]
            return float(w * v / (w + v) * ((a - b) ** 2).sum())

        i, j = min(pairs, key=cost)
        (a, w), (b, v) = points[i], points[j]
        points = [p for n, p in enumerate(points) if n not in (i, j)] + [((w * a + v * b) / (w + v), w + v)]
    return np.array([p for p, _ in points])


def in_order(centers: FloatArray) -> FloatArray:
    return centers[np.lexsort(centers.T)]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(1, 4), st.integers(1, 8))
def test_ward_merges_the_cheapest_pair_every_time(seed: int, m: int, d: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    centers, mass = rng.standard_normal((m, d)), rng.uniform(0.1, 50, m)
    found = ward(centers, mass, k)
    assert len(found) == min(m, k)
    np.testing.assert_allclose(in_order(found), in_order(ward_by_the_book(centers, mass, k)), atol=1e-9)


def test_ward_leaves_its_input_alone_and_keeps_the_mean() -> None:
    rng = np.random.default_rng(0)
    centers, mass = rng.standard_normal((30, 3)), rng.uniform(1, 9, 30)
    before = centers.copy(), mass.copy()
    (only,) = ward(centers, mass, 1)
    np.testing.assert_allclose(only, np.average(centers, axis=0, weights=mass))
    assert (centers == before[0]).all()
    assert (mass == before[1]).all()


def coreset(points: FloatArray, weights: FloatArray) -> Cloud:
    return Cloud(to_grid(points), weights)


def grid_of_clusters(per_cluster: int) -> tuple[FloatArray, FloatArray]:
    """Sixteen tight clusters on a lattice: k-means from one random start usually misses some."""
    middles = np.stack(np.meshgrid(*[[-0.6, -0.2, 0.2, 0.6]] * 2), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(1)
    return middles, np.repeat(middles, per_cluster, axis=0) + 0.005 * rng.standard_normal(
        (16 * per_cluster, 2)
    )


@pytest.mark.parametrize("seed", range(5))
def test_settle_finds_every_cluster(seed: int) -> None:
    middles, points = grid_of_clusters(20)
    core = coreset(points, np.random.default_rng(seed).integers(1, 50, len(points)).astype(np.float64))
    found = to_float(settle(core, 16, np.random.default_rng(seed)))
    nearest = np.abs(found[:, np.newaxis] - middles).max(axis=2).min(axis=0)
    assert nearest.max() < 0.02


def test_wards_starts_alone_find_every_cluster() -> None:
    middles, points = grid_of_clusters(20)
    for seed in range(10):
        start = ward_start(to_grid(points), np.ones(len(points)), 16, np.random.default_rng(seed))
        gaps = np.abs(to_float(start)[:, np.newaxis] - middles).max(axis=2).min(axis=0)
        assert gaps.max() < 0.05


def test_settle_is_at_least_as_good_as_the_truth() -> None:
    middles, points = grid_of_clusters(10)
    weights = np.ones(len(points))
    found = settle(coreset(points, weights), 16, np.random.default_rng(3))
    assert weighted_loss(to_grid(points), weights, found) <= weighted_loss(
        to_grid(points), weights, to_grid(middles)
    )


@pytest.mark.parametrize("distinct", [0, 1, 3, 7, 8])
def test_few_places_are_filled_up_with_random_ones(distinct: int) -> None:
    places = np.random.default_rng(0).uniform(-0.5, 0.5, (distinct, 3))
    points = np.repeat(places, 4, axis=0)
    found = settle(coreset(points, np.ones(len(points))), 8, np.random.default_rng(0))
    assert found.shape == (8, 3)
    assert len(np.unique(found, axis=0)) == 8
    assert squared_norms(found).max() <= GRID_UNIT**2
    assert {tuple(p) for p in to_grid(places)} <= {tuple(c) for c in found}


def test_fill_up_takes_no_more_than_k_places() -> None:
    points = to_grid(np.linspace(-0.5, 0.5, 9).reshape(-1, 1))
    assert len(fill_up(points, 4, np.random.default_rng(0))) == 4


def test_ward_needs_memory_for_pairs_of_centers_not_for_their_coordinates() -> None:
    m = 500
    centers = np.random.default_rng(0).standard_normal((m, 12))
    tracemalloc.start()
    ward(centers, np.ones(m), m - 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * m * m * centers.itemsize

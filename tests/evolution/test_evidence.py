"""Votes are believed where a whole region bears them out."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import votes_for

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.evidence import DOUBT, REGIONS_PER_CLUSTER, belief, believed, region_sums
from pemeans.evolution.explore import Coreset, Votes
from pemeans.evolution.select import keep_largest
from pemeans.kernels.grid import GRID_UNIT, to_float, to_grid

K, N = 2, 4000
MIDDLES = np.array([[-0.1, 0.0], [0.1, 0.0]])
SIGMA = 40.0


def round_of_votes(rng: np.random.Generator) -> Votes:
    """Two clusters of 40 candidates each, and 400 candidates all over the ball that no row is near to."""
    near = MIDDLES[np.arange(80) % 2] + 0.01 * rng.standard_normal((80, 2))
    far = rng.uniform(-0.7, 0.7, (400, 2))
    population = to_grid(np.vstack([near, far[np.abs(far[:, 1]) > 0.1]]))
    exact = np.zeros(len(population))
    exact[:80] = N / 80
    noisy = np.rint(exact + SIGMA * rng.standard_normal(len(population))).astype(np.int64)
    return Votes(population, noisy, keep_largest(noisy, N), SIGMA)


def test_votes_by_chance_lose_weight_and_clusters_keep_theirs() -> None:
    """Of 20 fits; what chance has lifted keeps less than half of its weight, clusters keep theirs."""
    before, after = np.zeros(2), np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        core = Coreset((round_of_votes(rng), round_of_votes(rng)))
        for total, cloud in ((before, core.cloud), (after, believed(core, K, rng))):
            far = np.abs(to_float(cloud.points)[:, 1]) > 0.1
            total[:] += cloud.weights[far].sum(), cloud.weights[~far].sum()
            assert (cloud.weights > 0).all()
    by_chance, of_rows = after / before
    assert by_chance < 0.6
    assert of_rows > 0.95


def test_chance_does_not_cost_a_cluster_its_center() -> None:
    """With the coreset as it is, a center goes out to votes by chance in most fits; of 20, never now."""
    lost = np.zeros(2, dtype=int)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        core = Coreset((round_of_votes(rng), round_of_votes(rng)))
        for number, cloud in enumerate((core.cloud, believed(core, K, rng))):
            found = to_float(settle(cloud, K, rng))
            gaps = np.linalg.norm(found[:, np.newaxis] - MIDDLES, axis=2).min(axis=0)
            lost[number] += gaps.max() > 0.1
    assert lost[0] > lost[1]


def test_without_noise_all_is_believed() -> None:
    points = to_grid(np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2)))
    core = Coreset((votes_for(points, np.arange(1, 61), 0.0),))
    cloud = believed(core, K, np.random.default_rng(0))
    assert (cloud.points == core.cloud.points).all()
    assert (cloud.weights == core.cloud.weights).all()


def test_few_points_are_left_as_they_are() -> None:
    points = to_grid(np.random.default_rng(0).uniform(-0.5, 0.5, (REGIONS_PER_CLUSTER * K, 2)))
    core = Coreset((votes_for(points, np.ones(len(points)), 1e6),))
    assert (believed(core, K, np.random.default_rng(0)).weights == 1).all()


def test_regions_add_up_every_vote_before_the_clean_up() -> None:
    middles = np.array([[-GRID_UNIT // 2], [GRID_UNIT // 2]], dtype=np.int32)
    first = Votes(np.array([[-9], [7], [8]], dtype=np.int32), np.array([5, -3, 9]), np.array([0, 0, 9]), 2.0)
    second = Votes(np.array([[-1]], dtype=np.int32), np.array([-20]), np.array([0]), 3.0)
    sums, variances = region_sums(Coreset((first, second)), middles)
    assert sums.tolist() == [-15, 6]
    assert variances.tolist() == [4 + 9, 8]


def test_noise_that_hides_clusters_leaves_the_votes_alone() -> None:
    kept, sums = np.array([100.0]), np.array([-50.0])
    assert belief(kept, sums, np.array([1e12]), cluster=100.0)[0] == pytest.approx(1, abs=1e-6)
    assert belief(kept, sums, np.array([100.0**2 / DOUBT]), cluster=100.0)[0] == pytest.approx(0.5)
    assert belief(kept, sums, np.array([1e-9]), cluster=100.0)[0] == pytest.approx(0, abs=1e-6)

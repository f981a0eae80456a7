"""Vote rounds that keep many candidates alive."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import Scripted, curator_of

from pemeans.evolution.explore import (
    FAR,
    POPULATION,
    SURVIVORS_PER_CLUSTER,
    Cloud,
    explore,
    next_population,
    start,
)
from pemeans.evolution.subspace import Subspace, find_subspace
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray, Projection, squared_norms, to_float, to_grid
from pemeans.privacy.statistics import NearestVotes, Statistic

K = 5


def space_of(p: int, variance: float = 0.04) -> Subspace:
    return Subspace(np.eye(p), np.full(p, variance), Projection(np.eye(p)))


def clustered(n: int, d: int, width: float = 0.02) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(4)
    middles = rng.uniform(-0.5, 0.5, (K, d))
    return middles, middles[np.arange(n) % K] + width / np.sqrt(d) * rng.standard_normal((n, d))


def silent(number: int) -> None:
    """Nobody watches."""


def populations(curator: Scripted) -> list[int]:
    sizes = []
    for _, statistic, _ in curator.asked:
        assert isinstance(statistic, NearestVotes)
        assert squared_norms(statistic.candidates).max() <= GRID_UNIT**2
        sizes.append(len(statistic.candidates))
    return sizes


def scripted(n: int, votes: float, sigma: float) -> Scripted:
    def answer(statistic: Statistic) -> IntArray:
        assert isinstance(statistic, NearestVotes)
        return np.full(len(statistic.candidates), votes, dtype=np.int64)

    return Scripted(n, 2, answer, sigma)


@pytest.mark.parametrize(
    ("n", "k", "first"),
    [(800, 5, 100), (80, 5, 20), (10**6, 5, POPULATION), (10**6, 1000, 2000), (50, 40, 160)],
)
def test_the_population_follows_the_number_of_rows_up_to_a_cap(n: int, k: int, first: int) -> None:
    curator = scripted(n, 1, 0.1)
    explore(curator, space_of(2), k, 1, 0.1, np.random.default_rng(0), silent)
    assert populations(curator) == [first]


def test_every_round_costs_the_same_and_is_told() -> None:
    curator = scripted(800, 8, 0.1)
    told: list[int] = []
    explore(curator, space_of(2), K, 6, 0.05, np.random.default_rng(0), told.append)
    assert [(name, share) for name, _, share in curator.asked] == [("votes", 0.05)] * 6
    assert told == [1, 2, 3, 4, 5, 6]


def test_drowned_votes_halve_the_population_down_to_a_floor() -> None:
    curator = scripted(1600, 1, 10.0)
    explore(curator, space_of(2), K, 6, 0.1, np.random.default_rng(0), silent)
    sizes = populations(curator)
    assert sizes[0] == 200
    # 30 survivors of at most 6 k, and each repeated twice at least.
    assert sizes[1:] == [30 + 30 * max(size // 30, 2) for size in (100, 50, 25, 20, 20)]


def test_clear_votes_leave_the_population_as_large() -> None:
    curator = scripted(1600, 8, 0.5)
    explore(curator, space_of(2), K, 4, 0.1, np.random.default_rng(0), silent)
    assert populations(curator)[1:] == [30 + 30 * 6] * 3


@pytest.mark.parametrize("rounds", [1, 3])
def test_rounds_without_any_vote_yield_an_empty_coreset(rounds: int) -> None:
    core = explore(scripted(500, -3, 5.0), space_of(2), K, rounds, 0.1, np.random.default_rng(0), silent)
    assert len(core.cloud.points) == len(core.cloud.weights) == 0


def test_the_coreset_is_the_last_two_populations() -> None:
    _, rows = clustered(2000, 2)
    curator = curator_of(rows, math.inf)
    space = find_subspace(curator, 2, 0.1)
    core = explore(curator, space, K, 5, 0.1, np.random.default_rng(0), silent)
    before, last = core.populations
    assert last is core.last
    assert last.cloud.weights.sum() == before.cloud.weights.sum() == 2000
    assert (core.cloud.weights > 0).all()
    there = len(last.cloud.points) + len(before.cloud.points)
    assert len(core.cloud.points) == there == len(core.cloud.weights)
    single = explore(curator, space, K, 1, 0.1, np.random.default_rng(0), silent)
    assert len(single.populations) == 1
    assert (single.cloud.points == single.last.cloud.points).all()


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_the_coreset_closes_in_on_the_rows(epsilon: float) -> None:
    """Weighted mean distance of the coreset to the middles, in widths of a cluster of 0.02."""
    middles, rows = clustered(4000, 3)
    curator = curator_of(rows, epsilon)
    space = find_subspace(curator, 3, 0.1)
    core = explore(curator, space, K, 8, 0.1, np.random.default_rng(0), silent)
    places = to_float(core.last.cloud.points) @ space.view_basis.T
    gaps = np.linalg.norm(places[:, np.newaxis] - middles, axis=2).min(axis=1)
    assert np.average(gaps, weights=core.last.cloud.weights) < (4 if epsilon == 1 else 2) * 0.02
    held = np.bincount(
        np.linalg.norm(places[:, np.newaxis] - middles, axis=2).argmin(axis=1),
        weights=core.last.cloud.weights,
        minlength=K,
    )
    assert np.abs(held - 800).max() < 200


@pytest.mark.parametrize("p", [1, 2, 12])
def test_the_first_candidates_reach_from_the_rows_to_the_edge(p: int) -> None:
    """Seven of eight lie as the rows do; the others are farther out, at any scale."""
    variances = np.full(p, 1e-6 / p)
    norms = np.linalg.norm(to_float(start(8000, variances, np.random.default_rng(0))), axis=1)
    near = np.arange(8000) % FAR > 0
    # 7,000 squared norms with a mean of 1e-6 and a standard deviation of sqrt(2 / p) times that.
    assert (norms[near] ** 2).mean() == pytest.approx(1e-6, rel=6 * np.sqrt(2 / p / 7000) + 1e-3)
    decades = np.histogram(np.log10(norms[~near]), bins=[-3, -2, -1, 0])[0]
    assert decades.min() > 150


def test_rows_as_wide_as_the_frame_are_met_by_gaussian_draws() -> None:
    variances = np.array([0.7, 0.4])
    drawn = np.random.default_rng(0).standard_normal((500, 2)) * np.sqrt(variances)
    assert (start(500, variances, np.random.default_rng(0)) == to_grid(drawn)).all()


def test_a_tiny_clump_far_out_is_found() -> None:
    """1 % of the rows, ten standard deviations of all rows away."""
    rng = np.random.default_rng(5)
    rows = 0.002 * rng.standard_normal((4000, 3))
    rows[:40] += 0.5
    curator = curator_of(rows, 8.0)
    space = find_subspace(curator, 3, 0.1)
    core = explore(curator, space, 2, 8, 0.05, np.random.default_rng(0), silent)
    places = to_float(core.last.cloud.points) @ space.view_basis.T
    assert np.linalg.norm(places - 0.5, axis=1).min() < 0.1  # of 0.87 from the other rows


def test_survivors_stay_and_their_variations_spread_as_told() -> None:
    rng = np.random.default_rng(1)
    points = (rng.uniform(-0.3, 0.3, (400, 2)) * GRID_UNIT).astype(np.int32)
    core = Cloud(points, np.ones(400))
    spread = np.array([0.01, 0.001])
    population = next_population(core, K, 3000, spread, rng)
    kept = SURVIVORS_PER_CLUSTER * K
    assert len(population) == kept + 3000 // kept * kept
    survivors, children = to_float(population[:kept]), to_float(population[kept:])
    steps = children - np.repeat(survivors, 3000 // kept, axis=0)
    # Standard deviation of 3,000 draws: within 6 of its own standard errors, 1 / sqrt(2 n).
    np.testing.assert_allclose(steps.std(axis=0), spread, rtol=6 / np.sqrt(6000))


@pytest.mark.parametrize(("points", "survivors"), [(1, 1), (3, 3), (8, 5), (20, 12), (100, 30)])
def test_at_most_six_a_cluster_and_most_of_the_points_survive(points: int, survivors: int) -> None:
    places = (np.random.default_rng(0).uniform(-0.3, 0.3, (points, 2)) * GRID_UNIT).astype(np.int32)
    core = Cloud(places, np.ones(points))
    population = next_population(core, K, 10, np.array([0.1, 0.1]), np.random.default_rng(0))
    assert len(population) == survivors + survivors * max(10 // survivors, 2)

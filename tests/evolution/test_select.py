"""Clean-up of votes and selection of the survivors: Algorithm 2's last lines, Algorithm 1's lines 5 and 7."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.evolution.select import (
    SELECTORS,
    keep_largest,
    select_by_kmeans,
    select_top,
    signal_to_noise,
)
from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, squared_norms, to_grid
from pemeans.kernels.kmeans import weighted_kmeans, weighted_loss


def transcribed(histogram: list[int], n: int) -> list[int]:
    """Lines 7 to 9 of Algorithm 2, literally; without a sufficient kappa all positive ones stay."""
    order = sorted(range(len(histogram)), key=lambda j: -histogram[j])
    ordered = [histogram[j] for j in order]
    sufficient = [kappa for kappa in range(1, len(ordered) + 1) if sum(ordered[:kappa]) > n]
    kept = min(sufficient) if sufficient else sum(votes > 0 for votes in ordered)
    return [votes if j in order[:kept] else 0 for j, votes in enumerate(histogram)]


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(st.integers(-60, 60), min_size=1, max_size=25), st.integers(0, 300))
def test_clean_up_is_that_of_algorithm_2(histogram: list[int], n: int) -> None:
    votes = np.array(histogram, dtype=np.int64)
    assert keep_largest(votes, n).tolist() == transcribed(histogram, n)
    assert votes.tolist() == histogram  # the released answer stays as it was


@pytest.mark.parametrize(
    ("votes", "n", "kept"),
    [
        ([5, 5, 5, 5], 10, [5, 5, 5, 0]),  # ties: the first ones; the sum must exceed n, not reach it
        ([5, 5, 5, 5], 9, [5, 5, 0, 0]),
        ([3, -2, 1, 0], 10, [3, 0, 1, 0]),  # none exceeds: the positive ones
        ([-3, -1, -2], 10, [0, 0, 0]),
        ([0, 0], 0, [0, 0]),
        ([12], 11, [12]),
        ([1, 9, -50, 2], 11, [1, 9, 0, 2]),
    ],
)
def test_clean_up_by_example(votes: list[int], n: int, kept: list[int]) -> None:
    assert keep_largest(np.array(votes), n).tolist() == kept


def test_signal_to_noise_is_that_of_algorithm_1() -> None:
    """sum(hist^2) / (k (L + 1) sigma^2)."""
    cleaned = np.array([30, 0, 40, 0])
    assert signal_to_noise(cleaned, 5.0) == pytest.approx((900 + 1600) / (4 * 25))
    assert signal_to_noise(np.zeros(4, dtype=np.int64), 5.0) == 0
    assert signal_to_noise(cleaned, 0.0) == np.inf


# --- survivors -------------------------------------------------------------------------------------


def distinct(centers: GridArray) -> int:
    return len(np.unique(centers, axis=0))


def population_of(size: int, d: int, seed: int) -> GridArray:
    return to_grid(np.random.default_rng(seed).standard_normal((size, d)) / np.sqrt(d))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    votes=st.lists(st.integers(-9, 9), min_size=1, max_size=12),
    k=st.integers(1, 6),
    places=st.integers(1, 12),
    selection=st.sampled_from(sorted(SELECTORS)),
    seed=st.integers(0, 1000),
)
def test_whatever_the_votes_exactly_k_distinct_centers_survive(
    votes: list[int], k: int, places: int, selection: str, seed: int
) -> None:
    """Few positive votes, none, or a population with duplicates: always k centers, all in the ball."""
    released = np.array(votes, dtype=np.int64)
    population = population_of(places, 2, seed)[np.arange(len(votes)) % places]
    cleaned = keep_largest(released, 20)
    found = SELECTORS[selection](population, released, cleaned, k, np.random.default_rng(seed))
    assert found.centers.shape == (k, 2)
    assert found.centers.dtype == np.int32
    assert distinct(found.centers) == k
    assert squared_norms(found.centers).max() <= GRID_UNIT**2
    assert found.sizes.shape == (k,)
    assert (found.sizes >= 0).all()
    assert found.sizes.dtype == np.int64


def test_survivors_are_the_best_of_ten_starts() -> None:
    """Where there are no clear groups a single start is often worse, and never better."""
    points = population_of(400, 2, 4)
    votes = np.ones(400, dtype=np.int64)
    weights = votes.astype(np.float64)
    gains = []
    for seed in range(5):
        found = select_by_kmeans(points, votes, votes, 12, np.random.default_rng(seed)).centers
        ten, one = (weighted_kmeans(points, weights, 12, n, np.random.default_rng(seed)) for n in (10, 1))
        assert (found == ten).all()
        gains.append(weighted_loss(points, weights, one) - weighted_loss(points, weights, found))
    assert min(gains) >= 0
    assert max(gains) > 0


def test_candidates_without_votes_take_no_part() -> None:
    population = population_of(200, 3, 0)
    cleaned = np.zeros(200, dtype=np.int64)
    cleaned[:60] = np.random.default_rng(0).integers(1, 50, size=60)
    found = select_by_kmeans(population, cleaned, cleaned, 4, np.random.default_rng(1))
    alone = select_by_kmeans(population[:60], cleaned[:60], cleaned[:60], 4, np.random.default_rng(1))
    assert (found.centers == alone.centers).all()


def test_split_votes_count_together() -> None:
    """Fifty candidates with 2 votes each around one place beat two lonely ones with 30 (section 5.2)."""
    rng = np.random.default_rng(0)
    crowd = to_grid(np.array([0.5, 0.5]) + 0.01 * rng.standard_normal((50, 2)))
    lonely = to_grid(np.array([[-0.5, -0.5], [-0.55, -0.5]]))
    population = np.concatenate([lonely, crowd])
    votes = np.array([30, 30] + [2] * 50)
    by_kmeans = select_by_kmeans(population, votes, votes, 2, rng)
    by_votes = select_top(population, votes, votes, 2, rng)
    assert (by_kmeans.centers > 0).all(axis=1).sum() == 1
    assert not (by_votes.centers > 0).all(axis=1).any()
    assert sorted(by_kmeans.sizes.tolist()) == [60, 100]
    assert sorted(by_votes.sizes.tolist()) == [30, 30]


def test_selected_centers_are_weighted_means() -> None:
    population = np.array([[0, 0], [100, 0], [40_000, 0], [40_000, 100]], dtype=np.int32)
    votes = np.array([3, 1, 10, 30])
    found = select_by_kmeans(population, votes, votes, 2, np.random.default_rng(0))
    order = np.argsort(found.centers[:, 0])
    assert found.centers[order].tolist() == [[25, 0], [40_000, 75]]
    assert found.sizes[order].tolist() == [4, 40]


def test_as_many_voted_places_as_clusters() -> None:
    population = population_of(10, 2, 3)
    votes = np.array([4, 0, 0, 7, 0, 0, 0, 2, -5, 0])
    cleaned = keep_largest(votes, 1000)
    found = select_by_kmeans(population, votes, cleaned, 3, np.random.default_rng(0))
    assert sorted(map(tuple, found.centers)) == sorted(map(tuple, population[[0, 3, 7]]))
    assert sorted(found.sizes.tolist()) == [2, 4, 7]


def test_without_enough_votes_the_noisy_order_decides() -> None:
    """Released values only: among zeroed candidates those with the larger noisy votes."""
    population = population_of(6, 2, 4)
    votes: IntArray = np.array([-1, 9, -7, -2, -3, -9])
    for select in SELECTORS.values():
        found = select(population, votes, keep_largest(votes, 5), 3, np.random.default_rng(0))
        assert found.centers.tolist() == population[[1, 0, 3]].tolist()
        assert found.sizes.tolist() == [9, 0, 0]


def test_one_candidate_short_of_k_the_noisy_order_decides_too() -> None:
    population = population_of(6, 2, 4)
    votes: IntArray = np.array([-1, 9, -7, 4, -3, -9])
    for select in SELECTORS.values():
        found = select(population, votes, keep_largest(votes, 100), 3, np.random.default_rng(0))
        assert found.centers.tolist() == population[[1, 3, 0]].tolist()
        assert found.sizes.tolist() == [9, 4, 0]


def test_top_k_are_the_k_most_voted_and_the_first_among_equals() -> None:
    population = population_of(5, 2, 5)
    votes = np.array([3, 8, 3, 8, 1])
    found = select_top(population, votes, votes, 3, np.random.default_rng(0))
    assert found.centers.tolist() == population[[1, 3, 0]].tolist()
    assert found.sizes.tolist() == [8, 8, 3]

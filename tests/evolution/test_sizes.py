"""Cluster sizes: noisy counts weighted by their precision."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import votes_for

from pemeans.evolution.explore import Votes
from pemeans.evolution.sizes import DRIFT, PRIOR_SPREAD, SMALLEST, Sizes, sizes_from_votes
from pemeans.kernels.grid import FloatArray, to_grid


def known(values: list[float], variances: list[float]) -> Sizes:
    return Sizes(100.0, np.array(values), np.array(variances))


def test_counts_are_weighted_by_precision() -> None:
    after = known([100.0, 50.0], [400.0, 100.0]).with_counts(np.array([130.0, 50.0]), 100.0)
    np.testing.assert_allclose(after.values, [100 + 30 * 0.8, 50])
    np.testing.assert_allclose(after.variances, [1 / (1 / 400 + 1 / 100), 50])


def test_exact_counts_are_believed_and_useless_ones_are_not() -> None:
    before = known([100.0, 70.0], [400.0, 0.0])
    assert before.with_counts(np.array([30.0, 70.0]), 0.0).values.tolist() == [30.0, 70.0]
    np.testing.assert_allclose(before.with_counts(np.array([1e6, -1e6]), 1e30).values, [100, 70])


def test_no_size_falls_below_a_fiftieth_of_the_mean() -> None:
    after = known([100.0, 100.0], [1e4, 1e4]).with_counts(np.array([-500.0, 0.0]), 1.0)
    assert after.values.tolist() == [SMALLEST * 100, SMALLEST * 100]


def test_a_move_makes_sizes_less_certain() -> None:
    after = known([100.0, 50.0], [1.0, 2.0]).drifted()
    assert after.values.tolist() == [100.0, 50.0]
    np.testing.assert_allclose(after.variances, [1 + (DRIFT * 100) ** 2, 2 + (DRIFT * 100) ** 2])


CENTERS = to_grid(np.array([[-0.5], [0.5]]))


def votes(weights: list[float], places: list[float], sigma: float) -> Votes:
    points: FloatArray = np.array(places).reshape(-1, 1)
    return votes_for(to_grid(points), weights, sigma)


def test_votes_without_noise_are_sizes() -> None:
    found = sizes_from_votes(votes([30, 20, 150], [-0.4, -0.6, 0.45], 0.0), CENTERS, 200)
    np.testing.assert_allclose(found.values, [50, 150])
    assert found.mean == 100


def test_noise_of_votes_pulls_sizes_to_the_mean() -> None:
    """Two and one positive cells: variances 3 and 2 sigma^2; the prior is that of equal sizes."""
    sigma = 30.0
    found = sizes_from_votes(votes([50, 40, 110], [-0.4, -0.6, 0.45], sigma), CENTERS, 200)
    noise = sigma**2 * np.array([3.0, 2.0])
    prior = max(np.var([90, 110]) - noise.mean(), (PRIOR_SPREAD * 100) ** 2)
    np.testing.assert_allclose(found.values, 100 + prior / (prior + noise) * [-10, 10])
    np.testing.assert_allclose(found.variances, prior * noise / (prior + noise))


def test_very_different_sizes_widen_the_prior() -> None:
    found = sizes_from_votes(votes([10, 990], [-0.4, 0.45], 1.0), CENTERS, 1000)
    np.testing.assert_allclose(found.values, [10, 990], rtol=0.01)


@pytest.mark.parametrize("k", [1, 2])
def test_no_votes_at_all_mean_equal_sizes_that_are_not_believed(k: int) -> None:
    empty = votes_for(np.zeros((0, 1), dtype=np.int32), [], 5.0)
    found = sizes_from_votes(empty, CENTERS[:k], 60)
    assert found.values.tolist() == [60 / k] * k
    assert (found.variances >= (60 / k) ** 2).all()

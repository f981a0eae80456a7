"""Refinement: Lloyd steps from residuals alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, curator_of

from pemeans.evolution.refine import (
    COUNT_WEIGHT,
    EDGES,
    QUANTILE,
    project_to_simplex,
    refine,
    residual_radius,
    usual_distance,
)
from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray, to_grid
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums, Statistic

# --- the radius ------------------------------------------------------------------------------------


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e6))
def test_the_projection_is_the_nearest_point_of_the_simplex(values: list[float], total: float) -> None:
    """Kuhn and Tucker: one amount is taken off everywhere, and what would be negative is zero."""
    given_ = np.array(values)
    found = project_to_simplex(given_, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    taken = (given_ - found)[found > 0]
    np.testing.assert_allclose(taken, taken[0], atol=1e-6)
    assert (given_[found == 0] <= taken[0] + 1e-6).all()


def distances(values: FloatArray, sigma: float = 0.0, mu: float = 1.0) -> Scripted:
    """A curator of rows at these distances from their centers."""

    def answer(statistic: Statistic) -> IntArray:
        assert isinstance(statistic, DistanceHistogram)
        bins = np.searchsorted(statistic.edges, values)
        return np.bincount(bins, minlength=len(statistic.edges) + 1)

    return Scripted(len(values), 3, answer, sigma, mu)


ORIGIN = np.zeros((1, 3), dtype=np.int32)


def test_three_quarters_of_the_rows_are_closer_than_the_usual_distance() -> None:
    values = np.random.default_rng(0).uniform(0, GRID_UNIT, 8000)
    usual = usual_distance(distances(values), ORIGIN, 0.1)
    assert QUANTILE <= (values <= usual).mean() < QUANTILE + 0.06  # a bin is 8 % wide


@pytest.mark.parametrize(("value", "usual"), [(0, EDGES[1]), (1, EDGES[1]), (2 * GRID_UNIT, EDGES[-1])])
def test_the_usual_distance_is_an_edge_above_zero(value: int, usual: int) -> None:
    assert usual_distance(distances(np.full(100, value)), ORIGIN, 0.1) == usual


def test_an_answer_of_noise_alone_still_yields_a_distance() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        noise = np.rint(rng.normal(0, 1000, len(EDGES) + 1))
        usual = usual_distance(Scripted(100, 3, lambda _, noise=noise: noise), ORIGIN, 0.1)  # type: ignore[misc]
        assert EDGES[1] <= usual <= EDGES[-1]


@pytest.mark.parametrize(("mu", "factor"), [(1e-9, 1.0), (1e9, 4.0), (math.inf, 4.0)])
def test_the_radius_is_widened_up_to_four_times_where_noise_is_cheap(mu: float, factor: float) -> None:
    curator = distances(np.zeros(1000), mu=mu)
    assert residual_radius(10_000, curator, 5, 0.1) == 10_000 * factor
    assert residual_radius(GRID_UNIT, curator, 5, 0.1) <= 2 * GRID_UNIT


def test_the_widening_is_that_of_the_formula() -> None:
    """sqrt(.02 n^2 / (k^2 d sg^2)), sg = sqrt(1 + a^2) / (mu sqrt(share))."""
    n, d, k, mu, share = 1000, 3, 5, 0.4, 0.1
    noise = math.sqrt(1 + COUNT_WEIGHT**2) / (mu * math.sqrt(share))
    widening = math.sqrt(0.02 * n**2 / (k**2 * d * noise**2))
    assert 1 < widening < 4
    assert residual_radius(10_000, distances(np.zeros(n), mu=mu), k, share) == int(10_000 * widening)


# --- the steps -------------------------------------------------------------------------------------


def clusters(n: int, d: int, k: int, width: float) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(6)
    middles = rng.uniform(-0.5, 0.5, (k, d)) / np.sqrt(d)
    return middles, middles[np.arange(n) % k] + width / np.sqrt(d) * rng.standard_normal((n, d))


def refined(
    rows: FloatArray, start: FloatArray, epsilon: float, steps: int, basis: FloatArray | None = None
) -> list[tuple[FloatArray, Sizes]]:
    n, d = rows.shape
    k = len(start)
    equal = Sizes(n / k, np.full(k, n / k), np.full(k, (n / k) ** 2))
    basis = np.eye(d) if basis is None else basis
    return list(refine(curator_of(rows, epsilon), start, basis, equal, steps, 0.1, 0.9, min(d, 12)))


@pytest.mark.parametrize("d", [1, 3, 30])
def test_without_noise_a_step_is_one_of_lloyd(d: int) -> None:
    """The radius, four times the usual distance, clips no row here."""
    middles, rows = clusters(3000, d, 4, 0.02)
    start = middles + 0.01 / np.sqrt(d)
    labels = np.linalg.norm(rows[:, np.newaxis] - start, axis=2).argmin(axis=1)
    means = np.array([rows[labels == j].mean(axis=0) for j in range(4)])
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))
    for basis in (np.eye(d), turn):
        ((found, sizes),) = refined(rows, start, math.inf, 1, basis)
        np.testing.assert_allclose(found, means, atol=1e-6)
        np.testing.assert_allclose(sizes.values, np.bincount(labels), rtol=1e-6)


def test_steps_close_in_on_the_means() -> None:
    middles, rows = clusters(2000, 8, 4, 0.02)
    start = middles + 0.2 / np.sqrt(8)
    errors = [np.linalg.norm(found - middles, axis=1).max() for found, _ in refined(rows, start, 1.0, 4)]
    assert errors[-1] < errors[0] / 2 < 0.1
    # One step with all of the budget errs by the noise on residuals ten times as long as they need be.
    ((once, _),) = refined(rows, start, 1.0, 1)
    assert errors[-1] < np.linalg.norm(once - middles, axis=1).max()


def test_every_step_costs_the_same() -> None:
    middles, rows = clusters(500, 2, 3, 0.05)
    curator = curator_of(rows)
    equal = Sizes(500 / 3, np.full(3, 500 / 3), np.ones(3))
    list(refine(curator, middles, np.eye(2), equal, 3, 0.1, 0.5, 2))
    releases = curator.receipt("").releases
    assert [r.name for r in releases] == ["distances", "residual sums"] * 3
    assert [r.share for r in releases] == pytest.approx([0.1 / 3, 0.5 / 3] * 3)


def test_a_step_asks_where_the_centers_are() -> None:
    asked: list[Statistic] = []

    def answer(statistic: Statistic) -> IntArray:
        asked.append(statistic)
        if isinstance(statistic, ResidualSums):
            return np.zeros((2, 3), dtype=np.int64)
        return np.bincount([50], weights=[100], minlength=len(EDGES) + 1)

    start = np.array([[0.1, 0.2], [-0.3, 0.0]])
    equal = Sizes(50, np.full(2, 50.0), np.ones(2))
    list(refine(Scripted(100, 2, answer), start, np.eye(2), equal, 1, 0.1, 0.5, 2))
    histogram, sums = asked
    assert isinstance(histogram, DistanceHistogram)
    assert isinstance(sums, ResidualSums)
    assert histogram.centers is sums.centers
    assert (sums.centers == to_grid(start)).all()
    assert sums.radius >= EDGES[50]
    assert sums.weight == round(COUNT_WEIGHT * sums.radius)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_centers_stay_in_the_ball_whatever_the_noise(epsilon: float) -> None:
    _, rows = clusters(60, 5, 4, 0.3)
    start = np.random.default_rng(0).uniform(-0.4, 0.4, (4, 5))
    for found, sizes in refined(rows, start, epsilon, 5):
        assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12
        assert (sizes.values > 0).all()

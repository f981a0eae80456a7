"""Refinement: Lloyd steps from residuals alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scripted import Scripted, curator_of

from pemeans.evolution.distances import EDGES
from pemeans.evolution.plan import Plan, plan
from pemeans.evolution.refine import COUNT_WEIGHT, refine
from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray, to_grid
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums, Statistic


def todo(d: int, steps: int, distance_share: float = 0.1, residual_share: float = 0.9) -> Plan:
    """A plan that leaves so much for the refinement."""
    other = 1 - distance_share - residual_share
    made = plan(1000, d, 3, 0.2)
    made = replace(made, mean_share=0.0, spread_share=0.0, moment_share=0.0, stray_share=0.0)
    return replace(made, vote_share=other, distance_share=distance_share, steps=steps)


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
    return list(refine(curator_of(rows, epsilon), start, basis, equal, todo(d, steps)))


@pytest.mark.parametrize("d", [1, 3, 30])
def test_without_noise_a_step_is_one_of_lloyd(d: int) -> None:
    """The radius, eight times the usual distance, clips no row here."""
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
    list(refine(curator, middles, np.eye(2), equal, todo(2, 3, 0.1, 0.5)))
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
    list(refine(Scripted(100, 2, answer), start, np.eye(2), equal, todo(2, 1, 0.1, 0.5)))
    histogram, sums = asked
    assert isinstance(histogram, DistanceHistogram)
    assert isinstance(sums, ResidualSums)
    assert histogram.centers is sums.centers
    assert (sums.centers == to_grid(start)).all()
    assert (sums.radii >= EDGES[50]).all()
    assert sums.weight == round(COUNT_WEIGHT * GRID_UNIT)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_centers_stay_in_the_ball_whatever_the_noise(epsilon: float) -> None:
    _, rows = clusters(60, 5, 4, 0.3)
    start = np.random.default_rng(0).uniform(-0.4, 0.4, (4, 5))
    for found, sizes in refined(rows, start, epsilon, 5):
        assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12
        assert (sizes.values > 0).all()


def test_a_center_far_from_all_its_rows_gets_there() -> None:
    """A hundred widths of its clump away: usual radii would never bring it there."""
    middles = np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]])
    rows = middles[(np.arange(3000) % 10 == 0).astype(int)]
    rows = rows + 0.002 * np.random.default_rng(8).standard_normal(rows.shape)
    start = middles + np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.0]])
    *_, (found, _) = refined(rows, start, 2.0, 8)
    assert np.linalg.norm(found - middles, axis=1).max() < 0.005

"""Outliers: stand-ins only where there is evidence, and then at the right distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import Scripted, curator_of

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.explore import Coreset, Votes
from pemeans.evolution.strays import BEYOND, RINGS, STAND_INS, SURE, USUAL_PART, stand_ins, with_strays
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray, to_float, to_grid
from pemeans.privacy.statistics import DistanceHistogram, Statistic

CENTERS = to_grid(np.array([[-0.2, 0.0], [0.2, 0.0]]))
CORE = Coreset((Votes(CENTERS, np.array([500.0, 500.0]), 1.0),))
N = 1000


def answering(usual: int, beyond: list[int], sigma: float) -> Scripted:
    """All rows at one distance from their center, and so many in every ring beyond."""

    def answer(statistic: Statistic) -> IntArray:
        assert isinstance(statistic, DistanceHistogram)
        if len(statistic.edges) == RINGS:
            return np.array([N, *beyond])
        counts = np.zeros(len(statistic.edges) + 1, dtype=np.int64)
        counts[np.searchsorted(statistic.edges, usual)] = N
        return counts

    return Scripted(N, 2, answer, sigma)


def completed(curator: Scripted, core: Coreset = CORE) -> Coreset | None:
    return with_strays(curator, core, CENTERS, np.eye(2), 0.7, np.random.default_rng(0))


@pytest.mark.parametrize("sigma", [10.0, 40.0])
@pytest.mark.parametrize(("excess", "found"), [(0.9, False), (1.1, True)])
def test_only_what_noise_does_not_explain_counts_as_strays(sigma: float, excess: float, found: bool) -> None:
    number = math.ceil(excess * SURE * sigma * math.sqrt(RINGS))
    assert (completed(answering(GRID_UNIT // 50, [number, 0], sigma)) is not None) == found
    assert (completed(answering(GRID_UNIT // 50, [0, number], sigma)) is not None) == found


def test_false_alarms_are_rare() -> None:
    """Two counts of noise alone exceed 2.5 standard deviations in 0.6 % of the fits; 7 of 400 would be a
    surprise of 1 in 100, 15 one of 1 in 10 million."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        noise = np.rint(rng.normal(0, 20, RINGS)).astype(int).tolist()
        alarms += completed(answering(GRID_UNIT // 50, noise, 20.0)) is not None
    assert alarms < 15


def test_the_two_histograms_cost_the_share() -> None:
    curator = answering(GRID_UNIT // 50, [100, 0], 1.0)
    completed(curator)
    assert [name for name, _, _ in curator.asked] == ["distances", "strays"]
    assert sum(share for _, _, share in curator.asked) == pytest.approx(0.7)
    assert curator.asked[0][2] == pytest.approx(0.7 * USUAL_PART)


def test_rings_begin_at_four_usual_distances() -> None:
    curator = answering(GRID_UNIT // 50, [100, 0], 1.0)
    completed(curator)
    first, second = curator.asked[1][1].edges  # type: ignore[attr-defined]
    assert BEYOND * GRID_UNIT // 50 <= first < 1.15 * BEYOND * GRID_UNIT // 50  # bins of 8 % a step
    assert second == pytest.approx(math.sqrt(first * 2 * GRID_UNIT), rel=1e-6)


def test_wide_clusters_have_no_strays_and_nothing_is_asked() -> None:
    curator = answering(GRID_UNIT // 3, [100, 0], 1.0)
    assert completed(curator) is None
    assert len(curator.asked) == 1


@pytest.mark.parametrize("populations", [1, 2])
def test_stand_ins_weigh_what_the_strays_do(populations: int) -> None:
    """Each row counts once a population; negative counts are of noise, and none."""
    core = CORE if populations == 1 else Coreset((CORE.last, CORE.last))
    found = completed(answering(GRID_UNIT // 50, [120, -20], 1.0), core)
    assert found is not None
    assert len(core.points) < len(found.points) <= len(core.points) + STAND_INS * len(CENTERS)
    assert found.weights.sum() == pytest.approx(core.weights.sum() + populations * 120)
    assert (found.points[: len(core.points)] == core.points).all()


def test_stand_ins_are_everywhere_but_in_the_clusters_and_rings_weigh_what_was_counted() -> None:
    centers = to_grid(np.random.default_rng(1).uniform(-0.1, 0.1, (300, 3)))
    edges = np.rint(np.array([0.2, 0.4, 2.0]) * GRID_UNIT).astype(np.int64)
    placed, weights = stand_ins(centers, edges, np.array([10.0, 30.0]), np.random.default_rng(0))
    gaps = np.linalg.norm(to_float(placed)[:, np.newaxis] - to_float(centers), axis=2).min(axis=1)
    assert 0.2 - 1e-6 <= gaps.min() < 0.21
    assert np.linalg.norm(to_float(placed), axis=1).max() < 0.81
    assert weights[gaps < 0.4].sum() == pytest.approx(10)
    assert weights[gaps > 0.4].sum() == pytest.approx(30)
    # About 4,500 points all over the ball of 0.8: their mean to within 6 standard errors in each coordinate.
    assert np.abs(to_float(placed).mean(axis=0)).max() < 6 * 0.8 / math.sqrt(5 * len(placed))


def blobs_with_outliers(outliers: int) -> FloatArray:
    rng = np.random.default_rng(5)
    rows = np.array([[-0.2, 0.0], [0.2, 0.0]])[np.arange(4000) % 2] + 0.01 * rng.standard_normal((4000, 2))
    rows[:outliers] = rng.uniform(-0.65, 0.65, (outliers, 2))
    return rows


@pytest.mark.parametrize(("outliers", "found"), [(0, False), (150, True)])
def test_strays_are_found_among_rows(outliers: int, found: bool) -> None:
    curator = curator_of(blobs_with_outliers(outliers), 1.0)
    answer = with_strays(curator, CORE, CENTERS, np.eye(2), 0.035, np.random.default_rng(0))
    assert (answer is not None) == found
    if answer is not None:
        assert answer.weights[2:].sum() == pytest.approx(outliers, rel=0.5)


def test_a_center_that_can_be_spared_moves_out() -> None:
    """Three centers for two tight clusters: with many outliers the third is theirs."""
    points = np.repeat(CENTERS, 50, axis=0) + np.random.default_rng(0).integers(-9999, 9999, (100, 2))
    core = Coreset((Votes(points.astype(np.int32), np.full(100, 10.0), 1.0),))
    found = settle(core, 3, np.random.default_rng(0))
    assert np.abs(to_float(found)[:, 1]).max() < 0.01
    curator = answering(GRID_UNIT // 50, [0, 100], 1.0)
    answer = with_strays(curator, core, found, np.eye(2), 0.7, np.random.default_rng(0))
    assert answer is not None
    assert np.linalg.norm(to_float(settle(answer, 3, np.random.default_rng(0))), axis=1).max() > 0.3

"""Outliers: stand-ins only where there is evidence, and then where outliers can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import Scripted, curator_of, space_along_axes, votes_for

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.explore import Cloud, Coreset
from pemeans.evolution.recommended import settle_with_strays
from pemeans.evolution.strays import BEYOND, STAND_INS, SURE, USUAL_PART, find_strays, stand_ins
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray, to_float, to_grid
from pemeans.privacy.statistics import DistanceHistogram, Statistic

CENTERS = to_grid(np.array([[-0.2, 0.0], [0.2, 0.0]]))
SPACE = space_along_axes(np.array([0.04, 0.04]))
N = 1000


def answering(usual: int, beyond: int, sigma: float) -> Scripted:
    """All rows at one distance from their center, and so many beyond."""

    def answer(statistic: Statistic) -> IntArray:
        assert isinstance(statistic, DistanceHistogram)
        if len(statistic.edges) == 1:
            return np.array([N, beyond])
        counts = np.zeros(len(statistic.edges) + 1, dtype=np.int64)
        counts[np.searchsorted(statistic.edges, usual)] = N
        return counts

    return Scripted(N, 2, answer, sigma)


def found_by(curator: Scripted) -> Cloud | None:
    return find_strays(curator, CENTERS, SPACE, 0.7, np.random.default_rng(0))


@pytest.mark.parametrize("sigma", [10.0, 40.0])
@pytest.mark.parametrize(("excess", "found"), [(0.9, False), (1.1, True)])
def test_only_what_noise_does_not_explain_counts_as_strays(sigma: float, excess: float, found: bool) -> None:
    number = math.ceil(excess * SURE * sigma)
    assert (found_by(answering(GRID_UNIT // 50, number, sigma)) is not None) == found


def test_false_alarms_are_rare() -> None:
    """A count of noise alone exceeds 2.3 standard deviations in 1.1 % of the fits; 18 of 400 would be a
    surprise of 1 in a million."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        alarms += found_by(answering(GRID_UNIT // 50, round(rng.normal(0, 20)), 20.0)) is not None
    assert alarms < 18


def test_the_two_histograms_cost_the_share() -> None:
    curator = answering(GRID_UNIT // 50, 100, 1.0)
    found_by(curator)
    assert [name for name, _, _ in curator.asked] == ["distances", "strays"]
    assert sum(share for _, _, share in curator.asked) == pytest.approx(0.7)
    assert curator.asked[0][2] == pytest.approx(0.7 * USUAL_PART)


def test_strays_begin_at_four_usual_distances() -> None:
    curator = answering(GRID_UNIT // 50, 100, 1.0)
    found_by(curator)
    (first,) = curator.asked[1][1].edges  # type: ignore[attr-defined]
    assert BEYOND * GRID_UNIT // 50 <= first < 1.15 * BEYOND * GRID_UNIT // 50  # bins of 8 % a step


def test_wide_clusters_have_no_strays_and_nothing_is_asked() -> None:
    curator = answering(GRID_UNIT // 3, 100, 1.0)
    assert found_by(curator) is None
    assert len(curator.asked) == 1


def test_stand_ins_fill_a_box_as_wide_as_the_rows_are_but_for_the_clusters() -> None:
    """Rows vary three times as much in one direction as in the other; the columns are at an angle to them."""
    turn = np.array([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    space = space_along_axes(np.array([0.09, 0.01]))
    moments = turn.T @ np.diag(space.variances) @ turn
    variances, basis = np.linalg.eigh(moments)
    turned = type(space)(basis, variances, space.view)
    centers = to_grid(np.random.default_rng(1).uniform(-0.1, 0.1, (300, 2)))
    cloud = stand_ins(centers, GRID_UNIT // 5, 40.0, turned, np.random.default_rng(0))
    gaps = np.linalg.norm(to_float(cloud.points)[:, np.newaxis] - to_float(centers), axis=2).min(axis=1)
    assert 0.2 - 1e-6 <= gaps.min() < 0.21
    assert cloud.weights.sum() == pytest.approx(40)
    widths = np.sqrt(np.diag(moments))
    reach = np.abs(to_float(cloud.points) @ basis.T).max(axis=0)
    np.testing.assert_allclose(reach, widths / np.linalg.norm(widths), rtol=0.01)
    assert np.linalg.norm(to_float(cloud.points), axis=1).max() <= 1
    assert len(cloud.points) < STAND_INS * 300


def blobs_with_outliers(outliers: int) -> FloatArray:
    rng = np.random.default_rng(5)
    rows = np.array([[-0.2, 0.0], [0.2, 0.0]])[np.arange(4000) % 2] + 0.01 * rng.standard_normal((4000, 2))
    rows[:outliers] = rng.uniform(-0.65, 0.65, (outliers, 2))
    return rows


@pytest.mark.parametrize(("outliers", "found"), [(0, False), (150, True)])
def test_strays_are_found_among_rows(outliers: int, found: bool) -> None:
    curator = curator_of(blobs_with_outliers(outliers), 1.0)
    answer = find_strays(curator, CENTERS, SPACE, 0.035, np.random.default_rng(0))
    assert (answer is not None) == found
    if answer is not None:
        assert answer.weights.sum() == pytest.approx(outliers, rel=0.5)


@pytest.mark.parametrize("populations", [1, 2])
def test_a_center_that_can_be_spared_moves_out(populations: int) -> None:
    """Three centers for two tight clusters: with many outliers the third is theirs."""
    points = np.repeat(CENTERS, 50, axis=0) + np.random.default_rng(0).integers(-9999, 9999, (100, 2))
    core = Coreset(populations * (votes_for(points.astype(np.int32), np.full(100, 10)),))
    found = settle(core.cloud, 3, np.random.default_rng(0))
    assert np.abs(to_float(found)[:, 1]).max() < 0.01
    curator = answering(GRID_UNIT // 50, 100, 1.0)
    found = settle_with_strays(curator, core, 3, SPACE, 0.7, np.random.default_rng(0))
    assert np.linalg.norm(to_float(found), axis=1).max() > 0.3

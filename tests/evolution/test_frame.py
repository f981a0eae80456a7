"""The private frame: a ball that holds nearly all rows, whatever the public bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, curator_of

from pemeans.evolution.frame import FEW, FOR_CLUMPS, FOR_OUTLIERS, SMALLEST, SURE, find_frame
from pemeans.kernels.grid import GRID_UNIT, FloatArray, Frame, IntArray, to_grid
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums, Statistic


def rows_around(middle: float, width: float, n: int, d: int) -> FloatArray:
    """A Gaussian cloud, `width` wide in all, around a point so far from the domain's center."""
    rng = np.random.default_rng(3)
    center = np.zeros(d)
    center[0] = middle
    return np.asarray(center + width / np.sqrt(d) * rng.standard_normal((n, d)))


def outside(rows: FloatArray, frame: Frame) -> float:
    """The part of the rows that the frame does not hold."""
    gaps = to_grid(rows).astype(np.float64) - frame.center
    return float((np.linalg.norm(gaps, axis=1) > frame.radius).mean())


@pytest.mark.parametrize("d", [1, 2, 12, 13, 100])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, math.inf])
@pytest.mark.parametrize("middle", [0.0, 0.8])
@pytest.mark.parametrize("width", [0.2, 0.02])
def test_the_frame_holds_nearly_all_rows_and_little_else(
    d: int, epsilon: float, middle: float, width: float
) -> None:
    rows = rows_around(middle, width, 5000, d)
    frame = find_frame(curator_of(rows, epsilon), 0.02, 0.02)
    assert outside(rows, frame) < 0.03
    # Of 5,000 draws in one dimension the farthest is 4 widths out; noise on the mean adds to it.
    widest = np.linalg.norm(rows - rows.mean(axis=0), axis=1).max()
    off = np.linalg.norm(frame.center / GRID_UNIT - rows.mean(axis=0))
    assert frame.radius / GRID_UNIT < 3 * (widest + off)


@pytest.mark.parametrize("times", [2, 5, 10, 100])
def test_bounds_do_not_matter(times: float) -> None:
    """In the rows' own units the frame is as large as with tight bounds, up to a bin or two."""
    rows = rows_around(0.0, 0.3, 10_000, 6)
    rows = rows / np.linalg.norm(rows, axis=1).max()
    tight = find_frame(curator_of(rows, 2.0), 0.02, 0.02).radius
    loose = find_frame(curator_of(rows / times, 2.0), 0.02, 0.02).radius * times
    assert 0.6 < loose / min(tight, GRID_UNIT) < 1.8


def answering(mean: list[int], distances: IntArray) -> Scripted:
    """So many rows in each bin of distances; the mean's sum as given."""

    def answer(statistic: Statistic) -> IntArray:
        if isinstance(statistic, ResidualSums):
            return np.array([[*mean, 0]])
        assert isinstance(statistic, DistanceHistogram)
        bins = np.searchsorted(statistic.edges, distances)
        return np.bincount(bins, minlength=len(statistic.edges) + 1).astype(np.int64)

    return Scripted(len(distances), len(mean), answer, sigma=1.0)


def test_the_center_is_the_mean() -> None:
    n = 1000
    curator = answering([n * GRID_UNIT // 2, 0, 0], np.full(n, 1000))
    frame = find_frame(curator, 0.1, 0.2)
    assert np.abs(frame.center - [GRID_UNIT // 2, 0, 0]).max() <= 1
    assert [share for _, _, share in curator.asked] == [0.1, 0.2]
    assert (curator.asked[1][1].centers == frame.center).all()  # type: ignore[attr-defined]


def test_a_mean_of_noise_is_not_believed() -> None:
    """Longer than the noise alone is expected to be, or the domain's center stays."""
    n, d, sigma = 100, 4, 1e6 * 50
    for length, believed in ((1.0, 0.0), (2.0, 0.75)):
        curator = answering([int(length * sigma * np.sqrt(d)), 0, 0, 0], np.full(n, 1000))
        curator.sigma = sigma
        frame = find_frame(curator, 0.1, 0.1)
        wanted = believed * length * sigma * np.sqrt(d) / n
        assert abs(frame.center[0] - wanted) <= 1e-6 * wanted + 1


@pytest.mark.parametrize(
    ("d", "room"), [(2, FOR_OUTLIERS.room), (FEW, FOR_OUTLIERS.room), (FEW + 1, FOR_CLUMPS.room)]
)
def test_room_for_outliers_where_they_can_be_covered(d: int, room: float) -> None:
    n, radius = 100_000, GRID_UNIT // 10
    frame = find_frame(answering([0] * d, np.full(n, radius)), 0.1, 0.1)
    assert room * radius * 0.99 < frame.radius < room * radius * 1.5


def test_a_handful_of_rows_far_out_does_not_widen_the_frame() -> None:
    distances = np.full(100_000, GRID_UNIT // 100)
    distances[:50] = GRID_UNIT
    frame = find_frame(answering([0, 0], distances), 0.1, 0.1)
    assert frame.radius < GRID_UNIT // 50
    distances[:500] = GRID_UNIT
    assert find_frame(answering([0, 0], distances), 0.1, 0.1).radius == GRID_UNIT


@pytest.mark.parametrize("d", [2, 50])
@pytest.mark.parametrize(("clump", "held"), [(0.9, False), (1.1, True)])
def test_a_clump_that_noise_does_not_explain_is_held(d: int, clump: float, held: bool) -> None:
    """All in one bin, far from the others: `SURE` standard deviations are enough, whatever lies between."""
    n, sigma = 10_000, 100.0
    distances = np.full(n, GRID_UNIT // 1000)
    distances[: round(clump * SURE * sigma)] = GRID_UNIT // 2
    curator = answering([0] * d, distances)
    curator.sigma = sigma
    assert (find_frame(curator, 0.1, 0.1).radius >= GRID_UNIT // 2) == held


@pytest.mark.parametrize("d", [1, 3, 50])
def test_a_clump_across_the_domain_is_held(d: int) -> None:
    """Most rows at one edge of the domain, some at the other, farther from the mean than the radius."""
    rows = np.zeros((5000, d))
    rows[:, 0] = np.where(np.arange(5000) < 200, 0.99, -0.99)
    frame = find_frame(curator_of(rows, 4.0), 0.02, 0.02)
    assert outside(rows, frame) == 0


@pytest.mark.parametrize(("d", "held"), [(FEW, True), (FEW + 1, False)])
def test_scattered_outliers_widen_the_frame_in_few_dimensions_only(d: int, held: bool) -> None:
    n = 10_000
    distances = np.full(n, GRID_UNIT // 100)
    distances[:100] = np.geomspace(GRID_UNIT // 4, GRID_UNIT, 100)
    radius = find_frame(answering([0] * d, distances), 0.1, 0.1).radius
    assert (radius > GRID_UNIT // 2) == held


def test_noise_alone_rarely_widens_the_frame() -> None:
    """Bounds 100 times too wide: 2 to 4 % of the fits, so 30 of 400 would be a surprise of 1 in 10,000."""
    n, rng, wide = 10_000, np.random.default_rng(0), 0
    for _ in range(400):
        curator = answering([0, 0], np.full(n, GRID_UNIT // 100))
        exact = curator.answers

        def noisy(s: Statistic, exact: Callable[[Statistic], IntArray] = exact) -> IntArray:
            answer = exact(s)
            return answer + np.rint(rng.normal(0, 50, answer.shape)).astype(np.int64)

        curator.answers, curator.sigma = noisy, 50.0
        wide += find_frame(curator, 0.1, 0.1).radius > GRID_UNIT // 50
    assert wide < 30


def test_without_evidence_of_any_row_the_frame_is_the_domain() -> None:
    curator = Scripted(
        50, 2, lambda s: np.zeros((1, 3)) if isinstance(s, ResidualSums) else np.zeros(200), 5.0
    )
    frame = find_frame(curator, 0.1, 0.1)
    assert frame.radius == GRID_UNIT
    assert frame.center.tolist() == [0, 0]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.floats(0.01, 1e6), st.integers(1, 3000))
def test_whatever_the_answers_the_frame_is_a_ball_that_the_domain_fills(
    seed: int, d: int, sigma: float, n: int
) -> None:
    rng = np.random.default_rng(seed)

    def answer(statistic: Statistic) -> IntArray:
        size = (1, d + 1) if isinstance(statistic, ResidualSums) else len(statistic.edges) + 1  # type: ignore[attr-defined]
        return np.rint(rng.normal(0, sigma, size)).astype(np.int64)

    frame = find_frame(Scripted(n, d, answer, sigma), 0.1, 0.1)
    off = math.sqrt(int((frame.center.astype(np.int64) ** 2).sum()))
    assert SMALLEST * GRID_UNIT <= frame.radius <= GRID_UNIT + off + 1
    assert off <= GRID_UNIT

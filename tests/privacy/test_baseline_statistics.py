"""What one row adds to the questions of the baselines: its own alone, and never more than the sensitivity."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pemeans.errors import ParameterError
from pemeans.kernels.grid import (
    GRID_BITS,
    GRID_UNIT,
    GridArray,
    Projection,
    pull_into_ball,
    quantize,
    to_grid,
)
from pemeans.privacy.cubes import CubeCounts, in_ball
from pemeans.privacy.lloyd import BoxSums, TrustedCounts, TrustedSums
from pemeans.privacy.ranges import CodeRanges, RangeCounts, RangeSums
from pemeans.privacy.statistics import NearestSums, NearestVotes
from pemeans.privacy.swaps import LARGEST_LOSS, SEARCH_BITS, SetLosses, SwapLosses
from pemeans.rows.base import Question
from pemeans.rows.block import Block

SEARCH = settings(
    max_examples=300, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
DEPTH = 6


def questions(d: int, seed: int = 0) -> list[Question]:
    """One of each kind, on the rows themselves and through a view that stretches some of them."""
    rng = np.random.default_rng(seed)
    inside = to_grid(rng.standard_normal((5, d)) / np.sqrt(d))
    outside = np.rint(rng.uniform(-1, 1, (5, d)) * GRID_UNIT).astype(np.int32)
    outside[2] = outside[0]
    view = Projection(rng.standard_normal((3, d)))
    seen = to_grid(rng.standard_normal((7, 3)) / 2)
    hashes = Projection(rng.standard_normal((DEPTH, d)))
    ranges = CodeRanges(hashes, np.array([0, 8, 9, 40]), np.array([4, 9, 32, 64]))
    walls = np.ceil(rng.uniform(0.1, 1, d) * GRID_UNIT).astype(np.int64)
    kept = (np.array([[0, 1, -1, 2, -1, -1, 3, 4]]), np.tile([-1, 0, -1, 1, 2, -1, -1, 3], (5, 1)))
    shift = rng.integers(-GRID_UNIT, GRID_UNIT, 3)
    return [
        NearestVotes(inside),
        NearestSums(inside),
        NearestSums(seen, view),
        RangeCounts(ranges),
        RangeSums(ranges),
        BoxSums(outside, walls),
        TrustedSums(outside, GRID_UNIT // 2),
        TrustedSums(outside, 9 * GRID_UNIT),
        TrustedCounts(outside, GRID_UNIT),
        CubeCounts(GRID_UNIT, shift, kept, view),
        CubeCounts(GRID_UNIT // 3 + 1, shift, (), view),
        SwapLosses(seen[:3], seen, view),
        SwapLosses(inside[:1], inside),
        SetLosses(np.stack([inside[:2], inside[2:4]])),
        SetLosses(np.stack([seen[:3], seen[3:6]]), view),
    ]


@st.composite
def rows_of_the_ball(draw: st.DrawFn) -> GridArray:
    """Rows on the edge of the ball, near it, on axes, at the origin and anywhere."""
    d = draw(st.integers(1, 6))
    values = st.floats(-1, 1) | st.sampled_from([0.0, 1.0, -1.0, 2.0**-22, 1 / np.sqrt(d), -1 / np.sqrt(d)])
    row = np.array([draw(st.lists(values, min_size=d, max_size=d))])
    if draw(st.booleans()):
        row = row / max(float(np.linalg.norm(row)), 1e-9)
    return pull_into_ball(quantize(row))


# --- sensitivity -----------------------------------------------------------------------------------


@SEARCH
@given(rows_of_the_ball(), st.integers(0, 3))
def test_no_row_adds_more_than_any_sensitivity(row: GridArray, seed: int) -> None:
    for question in questions(row.shape[1], seed):
        added = [int(x) for x in question(Block(row)).ravel()]
        if hasattr(question, "sensitivity"):
            assert sum(x * x for x in added) <= question.sensitivity**2, question
        if hasattr(question, "l1_sensitivity"):
            assert sum(map(abs, added)) <= question.l1_sensitivity, question
        if hasattr(question, "spread"):
            assert max(added) - min(added) <= question.spread, question


def test_sensitivities_are_reached() -> None:
    """Smaller ones would be wrong: some row adds all of it."""
    d = 4
    corner = pull_into_ball(quantize(np.full((1, d), 1 / np.sqrt(d))))
    opposite = -corner
    assert int(np.abs(NearestSums(corner)(Block(corner))).sum()) == NearestSums(corner).l1_sensitivity
    walls = np.full(d, GRID_UNIT // 4)
    assert int(np.abs(BoxSums(corner, walls)(Block(corner))).sum()) == BoxSums(corner, walls).l1_sensitivity
    for radius in (GRID_UNIT, 4 * GRID_UNIT):
        far = np.full((1, d), -radius // 4 if radius == GRID_UNIT else GRID_UNIT // 2, dtype=np.int32)
        row = to_grid(np.full((1, d), 0.25)) if radius == GRID_UNIT else opposite
        sums = TrustedSums(far, radius)
        added = np.linalg.norm(sums(Block(row)))
        assert added == pytest.approx(sums.sensitivity, rel=1e-5)
    losses = SwapLosses(opposite, np.concatenate([corner, opposite]))(Block(corner))
    assert losses.max() - losses.min() == LARGEST_LOSS


# --- row by row ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_totals_are_the_sums_of_what_rows_add_in_any_order(d: int) -> None:
    rng = np.random.default_rng(d)
    grid = pull_into_ball(quantize(np.clip(rng.standard_normal((200, d)) / np.sqrt(d), -1, 1)))
    for question, shuffled in zip(questions(d), questions(d), strict=True):
        whole = question(Block(grid))
        assert whole.dtype == np.int64
        one_by_one = sum(question(Block(grid[i : i + 1])) for i in range(len(grid)))
        assert np.array_equal(whole, one_by_one), question
        assert np.array_equal(whole, shuffled(Block(grid[rng.permutation(len(grid))]))), question
        assert not question(Block(np.zeros((0, d), dtype=np.int32))).any()


# --- what they count -------------------------------------------------------------------------------


def sample(d: int, n: int = 500, seed: int = 0) -> tuple[GridArray, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    grid = to_grid(rng.standard_normal((n, d)) / np.sqrt(2 * d))
    return grid, grid.astype(np.float64)


def test_codes_are_signs_and_prefixes_are_ranges() -> None:
    grid, rows = sample(5)
    view = Projection(np.random.default_rng(1).standard_normal((DEPTH, 5)))
    bits = (rows @ view.matrix.T < 0).astype(int)
    words = ["".join(map(str, row)) for row in bits]
    prefixes = ["00", "0100", "011", "1"]
    starts = [int(p.ljust(DEPTH, "0"), 2) for p in prefixes]
    stops = [int(p.ljust(DEPTH, "1"), 2) + 1 for p in prefixes]
    ranges = CodeRanges(view, np.array(starts), np.array(stops))
    expected = [sum(word.startswith(prefix) for word in words) for prefix in prefixes]
    assert RangeCounts(ranges)(Block(grid)).tolist() == expected
    sums = RangeSums(ranges)(Block(grid))
    for i, prefix in enumerate(prefixes):
        mine = [word.startswith(prefix) for word in words]
        assert sums[i].tolist() == grid[mine].sum(axis=0).tolist()


@pytest.mark.parametrize(("starts", "stops"), [([0, 3], [4, 8]), ([4, 0], [8, 4]), ([2], [2])])
def test_ranges_that_would_count_a_row_twice_are_refused(starts: list[int], stops: list[int]) -> None:
    with pytest.raises(ParameterError, match="starts and stops"):
        CodeRanges(Projection(np.eye(3)), np.array(starts), np.array(stops))


def nearest(rows: npt.NDArray[np.float64], centers: GridArray) -> npt.NDArray[np.intp]:
    squared: npt.NDArray[np.float64] = ((rows[:, np.newaxis] - centers) ** 2).sum(axis=2)
    return np.asarray(squared.argmin(axis=1))


def test_box_sums_are_of_clipped_rows() -> None:
    grid, rows = sample(3)
    centers = np.rint(np.array([[0.9, 0.9, 0.9], [-1, 0, 1], [0, 0, 0]]) * GRID_UNIT).astype(np.int32)
    walls = np.array([GRID_UNIT // 2, GRID_UNIT // 10, GRID_UNIT])
    labels = nearest(rows, centers)
    expected = [np.clip(grid[labels == i], -walls, walls).sum(axis=0).tolist() for i in range(3)]
    assert BoxSums(centers, walls)(Block(grid)).tolist() == expected


def test_rows_beyond_the_trusted_distance_count_nowhere() -> None:
    grid, rows = sample(3)
    centers = np.rint(np.array([[0.9, 0.9, 0.9], [-1, 0, 1], [0, 0, 0]]) * GRID_UNIT).astype(np.int32)
    labels, radius = nearest(rows, centers), GRID_UNIT // 2
    near = np.linalg.norm(rows - centers[labels], axis=1) <= radius
    assert 0 < near.sum() < len(rows)
    block = Block(grid)
    counts = TrustedCounts(centers, radius)(block)
    sums = TrustedSums(centers, radius)(block)
    for i in range(3):
        mine = near & (labels == i)
        assert counts[i] == mine.sum()
        assert sums[i].tolist() == (grid[mine].astype(np.int64) - centers[i]).sum(axis=0).tolist()


def test_the_noise_of_residuals_is_for_the_smaller_of_two_bounds() -> None:
    centers = np.array([[GRID_UNIT, 0], [0, GRID_UNIT // 2]], dtype=np.int32)
    assert TrustedSums(centers, 5 * GRID_UNIT).sensitivity == 2 * GRID_UNIT
    assert TrustedSums(centers, GRID_UNIT // 3).sensitivity == GRID_UNIT // 3
    assert TrustedSums(centers[1:], 5 * GRID_UNIT).sensitivity == 3 * GRID_UNIT // 2


def test_cubes_halve_and_shift() -> None:
    """Against the definition: a row's cube is the one that holds it, outer ones reaching to infinity."""
    grid, rows = sample(2)
    half, shift = GRID_UNIT // 2, np.array([GRID_UNIT // 5, -GRID_UNIT // 7])
    everything = np.arange(4)[np.newaxis], np.arange(16).reshape(4, 4)
    counts = CubeCounts(half, shift, everything)(Block(grid))
    cell = np.clip(np.floor((rows + shift + half) / (half / 4)), 0, 7).astype(int)
    path = np.zeros(len(rows), dtype=int)
    for bit in (2, 1, 0):  # from the largest cube down
        path = 4 * path + (cell >> bit & 1) @ [1, 2]
    assert counts.ravel().tolist() == np.bincount(path, minlength=64).tolist()


def test_children_of_cubes_that_were_not_kept_are_not_counted() -> None:
    grid, _ = sample(2)
    origin = np.zeros(2, dtype=np.int64)
    (first,) = CubeCounts(GRID_UNIT, origin, ())(Block(grid))
    only_last = np.array([[-1, -1, -1, 0]])
    (children,) = CubeCounts(GRID_UNIT, origin, (only_last,))(Block(grid))
    assert children.sum() == first[3] < len(grid)
    none = CubeCounts(GRID_UNIT, origin, (np.full((1, 4), -1),))(Block(grid))
    assert none.size == 0


def test_projected_rows_are_pulled_into_the_ball() -> None:
    grid, rows = sample(4)
    view = Projection(2 * np.eye(3, 4))
    seen = in_ball(Block(grid), view)
    length = np.linalg.norm(seen, axis=1)
    assert length.max() <= GRID_UNIT
    assert (np.linalg.norm(2 * rows[:, :3], axis=1) > GRID_UNIT).any()


def brute_loss(rows: npt.NDArray[np.float64], centers: GridArray) -> float:
    step = 2.0 ** (GRID_BITS - SEARCH_BITS)
    coarse = np.trunc(rows / step), np.trunc(centers / step)
    squared = ((coarse[0][:, np.newaxis] - coarse[1]) ** 2).sum(axis=2)
    return float(squared.min(axis=1).sum())


@pytest.mark.parametrize("k", [1, 2, 6])
def test_swap_losses_are_the_losses_after_the_swaps(k: int) -> None:
    grid, rows = sample(3, n=300)
    candidates = to_grid(np.random.default_rng(2).standard_normal((11, 3)) / 3)
    centers = candidates[np.arange(k) % 4]  # some of them twice
    losses = SwapLosses(centers, candidates)(Block(grid))
    assert losses.shape == (k, 11)
    for i in range(k):
        for j in range(11):
            swapped = centers.copy()
            swapped[i] = candidates[j]
            assert losses[i, j] == brute_loss(rows, swapped)


def test_set_losses_are_the_losses_of_the_sets() -> None:
    grid, rows = sample(3, n=300)
    sets = to_grid(np.random.default_rng(2).standard_normal((12, 3)) / 3).reshape(4, 3, 3)
    assert SetLosses(sets)(Block(grid)).tolist() == [brute_loss(rows, centers) for centers in sets]


def test_swap_losses_do_not_depend_on_how_rows_are_cut() -> None:
    grid, _ = sample(3, n=1000)
    candidates = to_grid(np.random.default_rng(2).standard_normal((2000, 3)) / 3)
    swaps = SwapLosses(candidates[:5], candidates)
    parts = [swaps(Block(grid[a:b])) for a, b in pairwise([0, 1, 17, 500, 1000])]
    assert np.array_equal(sum(parts), swaps(Block(grid)))

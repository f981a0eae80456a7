"""What one row adds to a statistic: exactly its own, and never more than the sensitivity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pemeans.domain import Domain
from pemeans.errors import DomainError
from pemeans.evolution.project import random_projection
from pemeans.kernels.grid import (
    GRID_UNIT,
    Frame,
    GridArray,
    IntArray,
    Projection,
    pull_into_ball,
    quantize,
    to_grid,
)
from pemeans.kernels.nearest import nearest
from pemeans.privacy.statistics import (
    DistanceHistogram,
    Framed,
    NearestSums,
    NearestVotes,
    ResidualSums,
    SecondMoments,
    Statistic,
)
from pemeans.rows.block import Block

SEARCH = settings(
    max_examples=300, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def length_at_most(added: npt.NDArray[np.integer], sensitivity: int) -> bool:
    """Whether the L2 length is at most the sensitivity, in Python integers."""
    return sum(int(x) ** 2 for x in added.ravel()) <= sensitivity**2


def statistics_for(d: int, rng: np.random.Generator) -> list[Statistic]:
    """One of each kind, on the rows themselves and through a view, with candidates that make ties."""
    candidates = to_grid(rng.standard_normal((7, d)) / np.sqrt(d))
    candidates[3] = candidates[0]
    candidates[4] = 0
    view = random_projection(d, rng)
    seen = to_grid(rng.standard_normal((6, 16)) / 4)
    edges = np.array([0, 1, GRID_UNIT // 3, GRID_UNIT, 2 * GRID_UNIT], dtype=np.int64)
    return [
        NearestVotes(candidates),
        NearestVotes(seen, view),
        NearestSums(candidates),
        NearestSums(seen, view),
        SecondMoments(d),
        DistanceHistogram(candidates, edges),
        ResidualSums(candidates, np.full(7, GRID_UNIT), weight=GRID_UNIT // 2),
        ResidualSums(candidates, np.array([1, 2, 1000, 5, 7, GRID_UNIT // 3, 1]), weight=7),
        ResidualSums(candidates, np.full(7, 3 * GRID_UNIT), weight=1),
        Framed(NearestSums(candidates), Frame(candidates[1], GRID_UNIT // 50)),
        Framed(SecondMoments(d), Frame(candidates[2], GRID_UNIT // 3)),
        Framed(NearestVotes(seen, view), Frame(candidates[4], 1)),
    ]


def within_sensitivity(statistic: Statistic, grid: GridArray) -> bool:
    """Whether what one row adds is within the sensitivity, in both norms where there are two."""
    added = statistic(Block(grid))
    in_l1 = sum(abs(int(x)) for x in added.ravel()) <= getattr(statistic, "l1_sensitivity", np.inf)
    return in_l1 and length_at_most(added, statistic.sensitivity)


# --- sensitivity -----------------------------------------------------------------------------------

ADVERSARIAL = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, -5e-324, 1e150, 1e-150, 0.1, 1 / 3, 1e16]),
)


@st.composite
def domains(draw: st.DrawFn, d: int) -> Domain:
    """Boxes and balls of every size that a user may give."""
    if draw(st.booleans()):
        radius = draw(st.floats(5e-324, 1e150) | st.sampled_from([1.0, 1e-150, 5e-324, 1e150, 2.0**-1022]))
        center = draw(
            st.lists(st.floats(-1e150, 1e150) | st.sampled_from([0.0, 1e16]), min_size=d, max_size=d)
        )
        return Domain.ball(radius, center)
    ends = st.floats(-1e150, 1e150) | st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e16, np.nextafter(1.0, 2)])
    pairs = [sorted(draw(st.tuples(ends, ends))) for _ in range(d)]
    lower, upper = zip(*pairs, strict=True)
    return Domain.box(list(lower), list(upper), scale=draw(st.booleans()))


@st.composite
def rows_and_domains(draw: st.DrawFn) -> tuple[npt.NDArray[np.float64], Domain]:
    d = draw(st.integers(1, 6))
    try:
        domain = draw(domains(d))
    except DomainError:
        domain = Domain.box(-1, 1)
    values = ADVERSARIAL | st.sampled_from(
        [c + s for c in domain.center for s in (-domain.radius, domain.radius)]
    )
    row = draw(st.lists(values, min_size=d, max_size=d))
    return np.array([row]), domain.bind(n_rows=1, n_features=d)


@pytest.mark.filterwarnings("error")
@SEARCH
@given(rows_and_domains())
def test_no_row_adds_more_than_the_sensitivity(case: tuple[npt.NDArray[np.float64], Domain]) -> None:
    row, domain = case
    grid = domain.to_grid(row)
    assert length_at_most(grid, GRID_UNIT)
    for statistic in statistics_for(row.shape[1], np.random.default_rng(0)):
        assert within_sensitivity(statistic, grid), statistic


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("lower", [0.0, 1.0, -1.0, 1e16, 1e150, -1e150, 2.0**53])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_boxes_a_few_floats_thin_are_refused_or_safe(lower: float, steps: int, scale: bool) -> None:
    upper = lower
    for _ in range(steps):
        upper = float(np.nextafter(upper, np.inf))
    try:
        domain = Domain.box(lower, upper, scale).bind(n_rows=4, n_features=3)
    except DomainError:
        return
    for row in domain.to_grid(np.array([[lower] * 3, [upper] * 3, [1e308] * 3, [0.0] * 3])):
        assert length_at_most(row, GRID_UNIT)


@SEARCH
@given(st.lists(st.integers(-GRID_UNIT, GRID_UNIT), min_size=1, max_size=12), st.integers(0, 2**32))
def test_no_grid_row_adds_more_than_the_sensitivity(row: list[int], seed: int) -> None:
    grid = pull_into_ball(np.array([row], dtype=np.int32))
    for statistic in statistics_for(len(row), np.random.default_rng(seed)):
        assert within_sensitivity(statistic, grid), statistic


@settings(SEARCH, max_examples=100)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=5), st.integers(1, 1500), st.integers(0, 1500))
def test_residuals_near_their_radius_are_not_longer(gap: list[int], radius: int, weight: int) -> None:
    statistic = ResidualSums(np.zeros((1, len(gap)), dtype=np.int32), np.array([radius]), weight)
    added = statistic(Block(np.array([gap], dtype=np.int32)))
    assert length_at_most(added[:, :-1], GRID_UNIT)
    assert added[:, -1].tolist() == [weight]
    assert length_at_most(added, statistic.sensitivity)
    assert (statistic.sensitivity - 1) ** 2 < GRID_UNIT**2 + weight**2
    # In units of the radius, or of the residual's own length where that is longer; short by a unit at most.
    unit = max(sum(g**2 for g in gap) ** 0.5, radius)
    assert np.abs(added[0, :-1] - np.array(gap) * GRID_UNIT / unit).max() <= 1.001


def test_sensitivities_are_attained() -> None:
    """A sensitivity that is too small would be found by these rows."""
    longest = np.array([[GRID_UNIT, 0, 0]], dtype=np.int32)
    origin = np.zeros((2, 3), dtype=np.int32)
    for statistic in (
        NearestVotes(origin),
        NearestSums(origin),
        SecondMoments(3),
        DistanceHistogram(origin, np.array([5], dtype=np.int64)),
        ResidualSums(origin, np.array([3 << 10, 1]), weight=4 << 10),
    ):
        squared = sum(int(x) ** 2 for x in statistic(Block(longest)).ravel())
        # Residuals lose one unit at most to truncation.
        assert (statistic.sensitivity - 1) ** 2 <= squared <= statistic.sensitivity**2, statistic
    diagonal = np.full((1, 16), GRID_UNIT // 4, dtype=np.int32)
    sums = NearestSums(np.zeros((2, 16), dtype=np.int32))
    assert int(np.abs(sums(Block(diagonal))).sum()) == sums.l1_sensitivity == 4 * GRID_UNIT


# --- every row by itself ---------------------------------------------------------------------------


def tie_data(d: int) -> tuple[GridArray, GridArray]:
    """Rows on the bisectors of candidates, on candidates, and repeated."""
    rng = np.random.default_rng(d)
    candidates = 2 * quantize(rng.uniform(-0.4, 0.4, size=(8, d)) / np.sqrt(d))
    candidates[5] = candidates[2]
    one, other = np.triu_indices(8, k=1)
    middles = ((candidates[one] + candidates[other]) // 2).astype(np.int32)
    return np.concatenate([middles, candidates, middles[:9], candidates + 1]).astype(np.int32), candidates


def changes(statistic: Statistic, rows: GridArray) -> Iterator[tuple[int, IntArray]]:
    """How far the total moves when one row is zeroed out, row after row."""
    total = statistic(Block(rows))
    for i in range(len(rows)):
        yield i, total - statistic(Block(np.delete(rows, i, axis=0)))


@pytest.mark.parametrize("d", [1, 2, 17, 64])
def test_dropping_a_row_moves_the_histogram_by_exactly_one_vote(d: int) -> None:
    rows, candidates = tie_data(d)
    for i, change in changes(NearestVotes(candidates), rows):
        squared = ((rows[i].astype(np.int64) - candidates) ** 2).sum(axis=1)
        assert change[int(squared.argmin())] == 1
        assert np.abs(change).sum() == 1


@pytest.mark.parametrize("d", [1, 2, 17, 64])
def test_dropping_a_row_moves_the_sums_by_exactly_that_row(d: int) -> None:
    rows, candidates = tie_data(d)
    for i, change in changes(NearestSums(candidates), rows):
        squared = ((rows[i].astype(np.int64) - candidates) ** 2).sum(axis=1)
        winner = int(squared.argmin())
        assert (change[winner] == rows[i]).all()
        assert not np.delete(change, winner, axis=0).any()


def test_through_a_view_the_same_holds() -> None:
    rows, _ = tie_data(40)
    view = random_projection(40, np.random.default_rng(1))
    candidates = view(rows[:6])
    pulled = pull_into_ball(candidates)
    sums = dict(changes(NearestSums(pulled, view), rows))
    for i, change in changes(NearestVotes(pulled, view), rows):
        squared = ((view(rows[i : i + 1]).astype(np.int64) - pulled) ** 2).sum(axis=1)
        winner = int(squared.argmin())
        assert change.tolist() == np.eye(6, dtype=int)[winner].tolist()
        assert (sums[i][winner] == rows[i]).all()
        assert not np.delete(sums[i], winner, axis=0).any()


@pytest.mark.parametrize("d", [1, 3, 20])
def test_totals_are_integers_that_add_up_over_any_chunks(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = pull_into_ball(quantize(rng.standard_normal((101, d)) / np.sqrt(d)))
    for statistic in statistics_for(d, rng):
        whole = statistic(Block(rows))
        assert whole.dtype == np.int64
        for size in (1, 2, 17, 100):
            parts = [statistic(Block(rows[start : start + size])) for start in range(0, 101, size)]
            assert (np.sum(parts, axis=0) == whole).all(), statistic
        assert (statistic(Block(rows[rng.permutation(101)])) == whole).all(), statistic
        assert (statistic(Block(np.asfortranarray(rows))) == whole).all(), statistic


def test_sums_of_many_long_rows_are_exact() -> None:
    rows = np.full((1 << 14, 1), GRID_UNIT - 1, dtype=np.int32)
    (total,) = NearestSums(np.zeros((1, 1), dtype=np.int32))(Block(rows))
    assert int(total[0]) == (GRID_UNIT - 1) << 14


# --- a block keeps answers at hand, and never the wrong ones ---------------------------------------


def test_a_block_asked_in_any_order_answers_as_a_fresh_one() -> None:
    rows, _ = tie_data(20)
    rng = np.random.default_rng(0)
    block, questions = Block(rows), statistics_for(20, rng)
    for chosen in rng.integers(0, len(questions), size=60):
        question = questions[chosen]
        assert (block.nearest(np.zeros((1, 20), dtype=np.int32)) == 0).all()
        assert (question(block) == question(Block(rows))).all()
        assert (question(block) == question(Block(rows))).all()


def test_a_block_does_not_confuse_candidates_of_one_shape() -> None:
    """Those of two rounds of the evolution, say, even if they differ in one coordinate."""
    rows, candidates = tie_data(20)
    block = Block(rows)
    assert (block.nearest(candidates) == nearest(rows, candidates)).all()
    others = candidates.copy()
    others[block.nearest(candidates)[0]] = -candidates[block.nearest(candidates)[0]]
    assert (block.nearest(others) == nearest(rows, others)).all()
    assert (block.nearest(others) != nearest(rows, candidates)).any()


def test_a_block_does_not_confuse_equal_candidates_in_other_views() -> None:
    rows, _ = tie_data(20)
    candidates = to_grid(np.random.default_rng(0).standard_normal((5, 16)) / 4)
    views = [random_projection(20, np.random.default_rng(seed)) for seed in range(2)]
    block = Block(rows)
    found = [block.nearest(candidates, view).copy() for view in (views[0], views[1], views[0])]
    assert (found[0] == found[2]).all()
    assert (found[0] != found[1]).any()


def test_reprs_show_no_values() -> None:
    rows = np.array([[123456, -654321]], dtype=np.int32)
    block = Block(rows)
    block.nearest(np.zeros((1, 2), dtype=np.int32), Projection(np.eye(2)))
    text = repr(block) + str(block)
    assert not any(str(abs(int(x))) in text for x in rows.ravel())
    assert repr(block) == repr(Block(np.zeros((9, 2), dtype=np.int32)))  # nor the number of rows


@pytest.mark.parametrize(
    "statistic", statistics_for(20, np.random.default_rng(0)), ids=lambda s: type(s).__name__
)
def test_statistics_cannot_be_changed_after_they_were_charged(statistic: Any) -> None:
    for name in ("sensitivity", "candidates", "centers", "radius", "n_features", "statistic"):
        if hasattr(statistic, name):
            with pytest.raises(AttributeError):
                setattr(statistic, name, 1)

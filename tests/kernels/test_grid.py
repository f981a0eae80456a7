"""Rows on the grid are never too long, never depend on one another, and are projected exactly."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.domain import Domain
from pemeans.errors import DataError, ParameterError
from pemeans.evolution.project import random_projection
from pemeans.kernels.grid import (
    GRID_UNIT,
    LONGEST_VIEW,
    MOST_COLUMNS,
    FloatArray,
    Frame,
    GridArray,
    Projection,
    pull_into_ball,
    quantize,
    squared_norms,
    to_float,
    to_grid,
)

MANY = settings(max_examples=200, derandomize=True, deadline=None)


def squared_length(row: npt.NDArray[np.integer]) -> int:
    return sum(int(x) ** 2 for x in row)


# --- quantize and pull_into_ball -------------------------------------------------------------------


@MANY
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_quantize_truncates_toward_zero(row: list[float]) -> None:
    (grid,) = quantize(np.array([row]))
    for x, q in zip(row, grid, strict=True):
        exact = Fraction(x) * GRID_UNIT
        assert 0 <= abs(exact) - abs(int(q)) < 1
        assert q == 0 or (q > 0) == (x > 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, np.nextafter(1, 2)])
def test_quantize_never_leaves_the_cube(value: float) -> None:
    grid = quantize(np.full((1, 3), value))
    assert (np.abs(grid.astype(np.int64)) <= GRID_UNIT).all()


@MANY
@given(st.lists(st.integers(-GRID_UNIT, GRID_UNIT) | st.just(GRID_UNIT), min_size=1, max_size=20))
def test_pulled_rows_are_at_most_one_unit_long(row: list[int]) -> None:
    grid = np.array([row], dtype=np.int32)
    (pulled,) = pull_into_ball(grid)
    length = squared_length(grid[0])
    assert squared_length(pulled) <= GRID_UNIT**2
    if length <= GRID_UNIT**2:
        assert (pulled == grid[0]).all()
    else:  # the same direction, and as long as truncation allows
        wanted = grid[0] * (GRID_UNIT / np.sqrt(length))
        assert (np.abs(pulled) <= np.abs(wanted)).all()
        assert np.abs(pulled - wanted).max() < 1 + 1e-5


@pytest.mark.parametrize("d", [2, 3, 4, 31, 64])
def test_the_edge_of_the_ball_is_exact(d: int) -> None:
    """One grid unit inside, on, and outside the sphere: vectors that floats could not tell apart."""
    rng = np.random.default_rng(d)
    for _ in range(200):
        row = rng.integers(-GRID_UNIT, GRID_UNIT, size=d) // (2 * isqrt(d))
        row[0] = isqrt(GRID_UNIT**2 - squared_length(row[1:])) + rng.integers(-1, 3)
        grid = row[np.newaxis].astype(np.int32)
        (pulled,) = pull_into_ball(grid)
        inside = squared_length(row) <= GRID_UNIT**2
        assert (pulled == row).all() == inside
        assert squared_length(pulled) <= GRID_UNIT**2


@pytest.mark.parametrize("rest", [[1], [5], [1, 1, 1], [1] * 63, [0, 0, -3]])
@pytest.mark.parametrize("sign", [1, -1])
def test_rows_a_hair_too_long_are_shortened(rest: list[int], sign: int) -> None:
    """Their squared length is a few units above 2**44."""
    (pulled,) = pull_into_ball(np.array([[sign * GRID_UNIT, *rest]], dtype=np.int32))
    assert squared_length(pulled) <= GRID_UNIT**2


def test_pulling_leaves_its_input_alone() -> None:
    grid = np.full((2, 2), GRID_UNIT, dtype=np.int32)
    pull_into_ball(grid)
    assert (grid == GRID_UNIT).all()


def test_rows_whose_length_could_overflow_are_refused() -> None:
    widest = pull_into_ball(np.full((1, MOST_COLUMNS), GRID_UNIT, dtype=np.int32))
    assert int(squared_norms(widest)[0]) <= GRID_UNIT**2
    with pytest.raises(DataError, match="columns"):
        pull_into_ball(np.full((1, MOST_COLUMNS + 1), GRID_UNIT, dtype=np.int32))


# --- public points -------------------------------------------------------------------------------


@MANY
@given(st.lists(st.floats(allow_nan=True) | st.sampled_from([1.0, -1.0, 0.6, 0.8]), min_size=1, max_size=6))
def test_public_points_end_in_the_ball_whatever_they_are(point: list[float]) -> None:
    (grid,) = to_grid(np.array([point]))
    assert squared_length(grid) <= GRID_UNIT**2


def test_public_points_inside_are_rounded_to_the_nearest() -> None:
    points = np.random.default_rng(0).uniform(-0.5, 0.5, size=(100, 3))
    assert np.abs(to_float(to_grid(points)) - points).max() <= 0.5 / GRID_UNIT


def test_public_points_outside_keep_their_direction() -> None:
    points = np.random.default_rng(0).standard_normal((100, 3)) * 1e160
    found = to_float(to_grid(points))
    direction = points / 1e160
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    np.testing.assert_allclose(found, direction, atol=4 / GRID_UNIT)


# --- the domain's map ----------------------------------------------------------------------------

DOMAINS = {
    "box": Domain.box(lower=[-1, 0, -5, 10], upper=[1, 3, 5, 11]),
    "scaled box": Domain.box(lower=[-1, 0, -5, 10], upper=[1, 3, 5, 11], scale=True),
    "ball": Domain.ball(radius=6, center=[0, 1, 0, 10]),
    "tiny ball": Domain.ball(radius=1e-150, center=[0, 1, 0, 10]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DOMAINS)
def test_domain_treats_every_row_by_itself_in_every_layout(name: str, dtype: type) -> None:
    domain = DOMAINS[name].bind(n_rows=97, n_features=4)
    rng = np.random.default_rng(5)
    rows: npt.NDArray[np.floating] = (rng.standard_normal((97, 4)) * [1, 2, 4, 1] + [0, 1, 0, 10]).astype(
        dtype
    )
    rows[::7] = rows[3]
    rows[::11] *= 1e30
    grid = domain.to_grid(rows)
    assert (squared_norms(grid) <= GRID_UNIT**2).all()
    assert (grid == np.vstack([domain.to_grid(row[np.newaxis]) for row in rows])).all()
    wide: npt.NDArray[np.floating] = np.zeros((3 * 97, 9), dtype=dtype)
    wide[1::3, 1:9:2] = rows
    for layout in (np.asfortranarray(rows), wide[1::3, 1:9:2], rows[::-1, ::-1].copy()[::-1, ::-1]):
        assert (domain.to_grid(layout) == grid).all()
    for chosen in (rng.permutation(97), np.arange(96), np.arange(97)[::-3]):
        assert (domain.to_grid(rows[chosen]) == grid[chosen]).all()
    chunks = [domain.to_grid(rows[start : start + 10]) for start in range(0, 97, 10)]
    assert (np.vstack(chunks) == grid).all()


# --- projections ---------------------------------------------------------------------------------


def exactly(projection: Projection, row: npt.NDArray[np.integer]) -> list[int]:
    """What a projection must give, in Python integers."""
    result = []
    for column in projection.quantized.T:
        total = sum(int(q) * int(x) for q, x in zip(column, row, strict=True))
        result.append(abs(total) // 2**projection.bits * (1 if total > 0 else -1))
    return result


def matrices() -> dict[str, FloatArray]:
    rng = np.random.default_rng(2)
    spike = np.zeros((16, 40))
    spike[3, 17] = 100.0
    return {
        "gauss 17": rng.standard_normal((16, 17)) / 4,
        "gauss 512": rng.standard_normal((16, 512)) / 4,
        "all equal": np.full((3, 512), 0.25),
        "norm just above 1": np.array([[1.0 + 2.0**-52, 0.0]]),
        "norm just below 4": np.full((1, 16), np.nextafter(1.0, 0.0)),
        "norm 4": np.ones((1, 16)),
        "tiny": np.full((2, 5), 1e-30),
        "zero": np.zeros((2, 5)),
        "spike": spike,
        "longest": np.full((1, 4), 0.4999 * LONGEST_VIEW),
        "orthonormal": np.linalg.qr(rng.standard_normal((64, 16)))[0].T,
    }


def worst_rows(projection: Projection) -> GridArray:
    """For every row of the matrix the grid vector that makes its sum largest, and some others."""
    columns = projection.quantized.T
    length = np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300)
    aligned = quantize(columns / length)
    n = projection.quantized.shape[0]
    random = np.random.default_rng(0).standard_normal((20, n))
    corner = np.zeros((2, n))
    corner[:, -1] = 1, -1
    return pull_into_ball(np.vstack([aligned, -aligned, quantize(random / np.sqrt(n)), quantize(corner)]))


@pytest.mark.parametrize("name", matrices())
def test_projection_is_exact(name: str) -> None:
    projection = Projection(matrices()[name])
    rows = worst_rows(projection)
    assert projection(rows).tolist() == [exactly(projection, row) for row in rows]


@pytest.mark.parametrize("name", matrices())
def test_partial_sums_of_a_projection_stay_below_2_to_52(name: str) -> None:
    """By Cauchy and Schwarz no choice of terms can exceed the product of the lengths."""
    projection = Projection(matrices()[name])
    for column in projection.quantized.T:
        assert isqrt(squared_length(column.astype(object))) + 1 < 2**52 // GRID_UNIT
    for row in worst_rows(projection):
        absolute = [
            sum(abs(int(q) * int(x)) for q, x in zip(c, row, strict=True)) for c in projection.quantized.T
        ]
        assert max(absolute) < 2**52


@pytest.mark.parametrize("name", ["gauss 17", "gauss 512", "spike", "longest", "orthonormal"])
def test_projection_is_as_accurate_as_the_grid(name: str) -> None:
    projection = Projection(matrices()[name])
    rows = worst_rows(projection)
    wanted = rows @ projection.matrix.T
    slack = 1 + rows.shape[1] * np.sqrt(GRID_UNIT) / 2.0 ** (projection.bits - 11)
    assert np.abs(projection(rows) - wanted).max() < slack


def test_no_projected_row_overflows_and_its_scores_are_exact() -> None:
    """The longest view of the longest row fits into 32 bits; its score against any candidate into 53."""
    projection = Projection(np.full((4, 4), 0.25 * np.nextafter(LONGEST_VIEW, 0)))
    row = np.full((1, 4), GRID_UNIT // 2, dtype=np.int32)
    (seen,) = projection(row)
    length = isqrt(squared_length(seen)) + 1
    assert LONGEST_VIEW * GRID_UNIT * 0.999 < length < 2**31
    assert 2 * length * GRID_UNIT + GRID_UNIT**2 < 2**53


@pytest.mark.parametrize(
    "matrix",
    [np.full((1, 4), LONGEST_VIEW / 2), np.array([[np.nan]]), np.array([[np.inf]]), np.array([[1e300]])],
)
def test_projections_that_could_overflow_are_refused(matrix: FloatArray) -> None:
    with pytest.raises(ParameterError, match="scale it down"):
        Projection(matrix)


def test_random_projection_is_never_refused() -> None:
    assert random_projection(MOST_COLUMNS, np.random.default_rng(0)).bits > 16


@pytest.mark.parametrize("d", [17, 64, 300])
def test_projection_treats_every_row_by_itself_in_every_layout(d: int) -> None:
    rng = np.random.default_rng(d)
    projection = random_projection(d, rng)
    rows = pull_into_ball(quantize(rng.standard_normal((60, d)) / np.sqrt(d)))
    seen = projection(rows)
    assert (seen == np.vstack([projection(row[np.newaxis]) for row in rows])).all()
    wide = np.zeros((120, 2 * d), dtype=np.int32)
    wide[::2, ::2] = rows
    for layout in (np.asfortranarray(rows), wide[::2, ::2], rows[::-1].copy()[::-1]):
        assert (projection(layout) == seen).all()
    for chosen in (rng.permutation(60), np.delete(np.arange(60), 30), rng.integers(0, 60, size=500)):
        assert (projection(rows[chosen]) == seen[chosen]).all()


# --- frames --------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1, 256, GRID_UNIT // 3, GRID_UNIT, 2 * GRID_UNIT])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_no_row_is_longer_than_one_unit_in_any_frame(d: int, radius: int) -> None:
    rng = np.random.default_rng(d)
    center = to_grid(rng.standard_normal((1, d)) / np.sqrt(d))[0]
    near = center * 0.9 + rng.uniform(-radius, radius, size=(300, d)) / np.sqrt(d)
    near[:100] = center
    far = rng.standard_normal((100, d)) * GRID_UNIT
    rows = pull_into_ball(np.vstack([near, far, -center]).clip(-GRID_UNIT, GRID_UNIT).astype(np.int32))
    frame = Frame(center, radius)
    framed = frame(rows)
    assert max(map(squared_length, framed)) <= GRID_UNIT**2
    inside = np.linalg.norm(rows - center, axis=1) <= radius
    assert inside.any()
    coarse = max(2, radius / GRID_UNIT + 1) / GRID_UNIT
    assert np.abs(frame.to_domain(to_float(framed[inside])) - to_float(rows[inside])).max() < coarse
    assert (framed == np.vstack([frame(row[np.newaxis]) for row in rows])).all()
    assert (framed == frame(np.asfortranarray(rows))).all()
    assert (framed[::-3] == frame(rows[::-3])).all()

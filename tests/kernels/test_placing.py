"""Rows reach the grid, a frame and a projection in C exactly as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.errors import DataError
from pemeans.kernels.grid import (
    GRID_UNIT,
    MOST_COLUMNS,
    GridArray,
    Projection,
    project_in_c,
    project_in_numpy,
    see_in_c,
    see_in_numpy,
    squared_norms,
)
from pemeans.kernels.native import native_rows
from pemeans.kernels.placing import Columns, place_in_c, place_in_numpy

pytestmark = pytest.mark.skipif(
    native_rows is None, reason="without a C compiler there is only the NumPy twin"
)

RNG = np.random.default_rng(3)
SHAPES = [(1, 1), (15, 3), (16, 16), (17, 2), (203, 5), (64, 130)]


def some_rows(n: int, d: int) -> npt.NDArray[np.float64]:
    """Of all magnitudes, some on the edges, some beyond."""
    rows = RNG.standard_normal((n, d)) * 10.0 ** RNG.integers(-9, 9, size=(n, 1))
    rows[::5] = RNG.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 1e150, -1e300, 5e-324], size=rows[::5].shape)
    return rows


def facts(d: int) -> dict[str, Any]:
    lower = RNG.uniform(-3, 0, d)
    half = RNG.uniform(0.1, 3, d)
    return {
        "lower": lower,
        "upper": lower + 2 * half,
        "center": lower + half,
        "unit": half * 1.7,
        "most": 1e150,
    }


LAYOUTS: dict[str, Callable[[npt.NDArray[np.float64]], Columns]] = {
    "row by row": lambda rows: list(rows.T),
    "column by column": lambda rows: list(np.asfortranarray(rows).T),
    "backward": lambda rows: list(rows[::-1].copy()[::-1].T),
    "float32": lambda rows: list(rows.clip(-1e30, 1e30).astype(np.float32).T),
    "mixed": lambda rows: [c.clip(-1e30, 1e30).astype(t) for c, t in zip(rows.T, "df" * 99, strict=False)],
    "big endian": lambda rows: list(rows.astype(">f8").T),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_same_grid(n: int, d: int, layout: Callable[[Any], Columns]) -> None:
    for rows in (some_rows(n, d), RNG.uniform(-0.2, 0.2, (n, d))):
        columns, domain = layout(rows), facts(d)
        placed = place_in_c(columns, **domain)
        assert placed.dtype == np.int32
        assert (placed == place_in_numpy(columns, **domain)).all()
        assert (squared_norms(placed) <= GRID_UNIT**2).all()


def test_what_is_no_number_stays_in_the_ball_all_the_same() -> None:
    rows = some_rows(50, 6)
    rows[::3, 2] = np.nan
    rows[1::7, 4] = np.inf
    placed = place_in_c(list(rows.T), **facts(6))
    assert (squared_norms(placed) <= GRID_UNIT**2).all()


def test_too_many_columns_are_refused() -> None:
    columns = [np.zeros(1)] * (MOST_COLUMNS + 1)
    for place in (place_in_c, place_in_numpy):
        with pytest.raises(DataError, match="columns, more than"):
            place(columns, **facts(len(columns)))


def grid_rows(n: int, d: int) -> GridArray:
    return place_in_numpy(list(some_rows(n, d).T), **facts(d))


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_same_frame(n: int, d: int) -> None:
    grid = grid_rows(n, d)
    for radius in (256, GRID_UNIT // 3, GRID_UNIT):
        for center in (np.zeros(d, dtype=np.int32), grid[n // 2]):
            seen = see_in_c(grid, center, radius)
            assert (seen == see_in_numpy(grid, center, radius)).all()
            assert (squared_norms(seen) <= GRID_UNIT**2).all()


@pytest.mark.parametrize("p", [1, 12, 16, 17, 40])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_same_projection(n: int, d: int, p: int) -> None:
    view, grid = Projection(RNG.standard_normal((p, d)) / 4), grid_rows(n, d)
    seen = project_in_c(grid, view.quantized, view.bits)
    assert (seen == project_in_numpy(grid, view.quantized, view.bits)).all()

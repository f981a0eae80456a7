"""Rows onto the grid: NumPy that says how, and C that does the same in one sweep.

A row's result depends on that row alone, in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.errors import DataError
from pemeans.kernels.grid import MOST_COLUMNS, FloatArray, GridArray, pull_into_ball, quantize
from pemeans.kernels.native import native_rows

Columns = Sequence[npt.NDArray[np.floating[Any]]]
"""Some rows, column by column: float32 or float64, of any stride."""


def place_in_numpy(
    columns: Columns, lower: FloatArray, upper: FloatArray, center: FloatArray, unit: FloatArray, most: float
) -> GridArray:
    """Rows clipped to their bounds, measured from the center in units, pulled into the ball and truncated.

    Elementwise float64 arithmetic is the same for every row and every layout; what adds over columns (the
    norm) is done in integers.
    """
    # A number too small for float64 may be a warning or an error to NumPy, and would tell of a row.
    with np.errstate(all="ignore"):
        inside = np.clip(np.column_stack(columns).astype(np.float64), lower, upper)
        ball = np.clip((inside - center) / unit, -most, most)
        # Dividing by the largest coordinate keeps the direction, and leaves outside what is outside.
        cube = ball / np.maximum(np.abs(ball).max(axis=1, keepdims=True), 1.0)
    return pull_into_ball(quantize(cube))


def place_in_c(
    columns: Columns, lower: FloatArray, upper: FloatArray, center: FloatArray, unit: FloatArray, most: float
) -> GridArray:
    """The same in one sweep over the rows."""
    if len(columns) > MOST_COLUMNS:
        raise DataError(f"X has {len(columns)} columns, more than {MOST_COLUMNS}; drop or combine some")
    plain = [
        column if column.dtype in (np.float32, np.float64) else column.astype(np.float64)
        for column in columns
    ]
    grid = np.empty((len(plain[0]), len(plain)), dtype=np.int32)
    native_rows.place(plain, lower, upper, center, unit, most, grid)
    return grid


place = place_in_numpy if native_rows is None else place_in_c

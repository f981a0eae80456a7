"""Rows as seen from their nearest centers: sums of shortened residuals, and squared distances.

Each has a NumPy twin that says how, and C that gives the same integers without tables in between.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, squared_norms
from pemeans.kernels.native import native_rows

Labels = npt.NDArray[np.int32]


def residual_sums_in_numpy(grid: GridArray, labels: Labels, centers: GridArray, radii: IntArray) -> IntArray:
    """For every center the sum of its rows' residuals, in units of its radius.

    A residual is divided by the center's radius, or by its own length where that is longer, and truncated
    toward zero on the grid, so it is never longer than one unit.
    """
    gaps = grid - centers[labels]
    length = np.sqrt(squared_norms(gaps).astype(np.float64))
    # As in pull_into_ball: 2**-40 less is certain not to be too long.
    factor = GRID_UNIT / np.maximum(length, radii[labels]) * (1 - 2.0**-40)
    short = np.trunc(gaps * factor[:, np.newaxis])
    sums = np.empty(centers.shape, dtype=np.int64)
    for j, column in enumerate(short.T):
        # float64 holds the partial sums of the rows of a block exactly.
        sums[:, j] = np.bincount(labels, weights=column, minlength=len(centers))
    return sums


def residual_sums_in_c(grid: GridArray, labels: Labels, centers: GridArray, radii: IntArray) -> IntArray:
    """The same in one sweep over the rows."""
    sums = np.zeros(centers.shape, dtype=np.int64)
    native_rows.residuals(
        np.ascontiguousarray(grid), labels, np.ascontiguousarray(centers), radii.astype(np.int64), sums
    )
    return sums


def squared_gaps_in_numpy(grid: GridArray, labels: Labels, centers: GridArray) -> IntArray:
    """The squared distance of every row to its center."""
    return squared_norms(grid - centers[labels])


def squared_gaps_in_c(grid: GridArray, labels: Labels, centers: GridArray) -> IntArray:
    """The same without tables in between."""
    squared = np.empty(len(grid), dtype=np.int64)
    native_rows.squared_gaps(
        np.ascontiguousarray(grid), labels, np.ascontiguousarray(centers), grid.shape[1], squared
    )
    return squared


residual_sums = residual_sums_in_numpy if native_rows is None else residual_sums_in_c
squared_gaps = squared_gaps_in_numpy if native_rows is None else squared_gaps_in_c

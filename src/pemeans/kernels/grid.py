"""The integer grid on which rows, candidates and projections live.

A point of the unit ball becomes a vector of integers, ``2**22`` to the unit. Everything that is done to a
private row after that is exact integer arithmetic, so it can't depend on the other rows of a batch, on the
memory layout, on the number of threads or on the BLAS at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pemeans.errors import DataError, ParameterError
from pemeans.kernels.native import native_rows

IntArray = npt.NDArray[np.int64]
GridArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]

GRID_BITS = 22
"""22 bits: products of two rows, summed over any number of columns, stay below 2**53, exact in float64."""
GRID_UNIT = 1 << GRID_BITS
"""One unit of length: the radius of the domain's ball, and so the exact sensitivity of a sum of rows."""
MOST_COLUMNS = 1 << 18
"""Squared lengths of rows of so many columns, each up to one unit, still fit into 63 bits."""
LONGEST_VIEW = 255
"""A projection stretches by less than this: then what it yields fits into 32 bits, and ``2 x.c - |c|^2``
of a projected row x and a candidate c in the unit ball stays below 2**53, as do all its partial sums."""


def quantize(unit: FloatArray) -> GridArray:
    """Truncate points of the unit cube toward zero onto the grid, element by element.

    Examples
    --------
    >>> quantize(np.array([[0.5, -1.0]]))
    array([[ 2097152, -4194304]], dtype=int32)
    """
    # What comes in is clipped already; that no row is ever longer than the unit must not rest on it.
    cube = np.fmax(np.fmin(unit, 1.0), -1.0)
    return np.ascontiguousarray(np.trunc(cube * GRID_UNIT), dtype=np.int32)


def pull_into_ball(grid: GridArray) -> GridArray:
    """Shorten the rows that are longer than one unit; no result is longer than ``GRID_UNIT``, exactly.

    Examples
    --------
    >>> long = quantize(np.array([[0.9, 0.9], [0.5, 0.5]]))
    >>> pulled = pull_into_ball(long)
    >>> int((pulled[0].astype(np.int64) ** 2).sum()) <= GRID_UNIT**2, bool((pulled[1] == long[1]).all())
    (True, True)
    """
    if grid.shape[1] > MOST_COLUMNS:
        raise DataError(f"X has {grid.shape[1]} columns, more than {MOST_COLUMNS}; drop or combine some")
    squared = squared_norms(grid)
    outside = np.flatnonzero(squared > GRID_UNIT**2)
    if outside.size == 0:
        return grid
    # The factor errs by a few units in the last of 53 bits; 2**-40 less is certain not to be too long.
    factor = GRID_UNIT / np.sqrt(squared[outside].astype(np.float64)) * (1 - 2.0**-40)
    pulled = grid.copy()
    pulled[outside] = np.trunc(grid[outside] * factor[:, np.newaxis])
    return pulled


def squared_norms(grid: GridArray) -> IntArray:
    """Exact squared lengths of grid vectors."""
    # int64 sums are exact in any order, so einsum may add as it likes.
    wide = grid.astype(np.int64)
    squared: IntArray = np.einsum("ij,ij->i", wide, wide)
    return squared


def to_float(grid: npt.NDArray[np.integer]) -> FloatArray:
    """Grid vectors in units of the domain's radius."""
    return grid / float(GRID_UNIT)


def to_grid(unit: FloatArray) -> GridArray:
    """Public points on the grid: pulled into the ball where they are outside, then rounded."""
    # Far steps may be too long to be squared, or infinite: bring them into the unit cube first.
    cube = np.nan_to_num(unit)
    cube /= np.maximum(np.abs(cube).max(axis=1, keepdims=True), 1.0)
    norm = np.sqrt((cube**2).sum(axis=1, keepdims=True))
    cube /= np.maximum(norm, 1.0)
    cube *= GRID_UNIT
    return pull_into_ball(np.rint(cube, out=cube).astype(np.int32, order="C"))


@dataclass(frozen=True, eq=False)
class Projection:
    """A public linear map of grid vectors, applied exactly and truncated back to the grid.

    Parameters
    ----------
    matrix : array of shape (n_out, n_in)
        The map in floating point; it is quantized once, here. It must not stretch any vector to
        `LONGEST_VIEW` times its length.

    Examples
    --------
    >>> half = Projection(np.array([[0.5, 0.0]]))
    >>> half(np.array([[GRID_UNIT, 7]], dtype=np.int32))
    array([[2097152]], dtype=int32)
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        """Refuse what could overflow for some row."""
        if not (np.isfinite(self.matrix).all() and np.linalg.norm(self.matrix, 2) < LONGEST_VIEW):
            raise ParameterError(
                f"matrix of shape {self.matrix.shape} stretches {LONGEST_VIEW} times or more; scale it down"
            )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Projection) and np.array_equal(self.matrix, other.matrix))

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    @cached_property
    def bits(self) -> int:
        """Bits after the point of the quantized matrix: as many as keep every partial sum below 2**52."""
        # |partial sum| <= |x| |row| by Cauchy-Schwarz; rounding the matrix adds at most 2 to the norm's log2.
        longest = float(np.sqrt((self.matrix**2).sum(axis=1).max()))
        return 52 - GRID_BITS - 2 - max(0, int(np.ceil(np.log2(longest + 1e-300))))

    @cached_property
    def quantized(self) -> FloatArray:
        """The matrix as integers (held in float64, where BLAS multiplies them without rounding)."""
        return np.ascontiguousarray(np.rint(self.matrix * 2.0**self.bits).T)

    def __call__(self, grid: GridArray) -> GridArray:
        return project(grid, self.quantized, self.bits)


def project_in_numpy(grid: GridArray, quantized: FloatArray, bits: int) -> GridArray:
    """Rows times a matrix of integers, whose partial sums are all below 2**52, so that BLAS is exact."""
    exact = grid.astype(np.float64) @ quantized
    return np.ascontiguousarray(np.trunc(exact * 2.0**-bits), dtype=np.int32)


def project_in_c(grid: GridArray, quantized: FloatArray, bits: int) -> GridArray:
    """The same row by row, and on this thread only."""
    out = np.empty((len(grid), quantized.shape[1]), dtype=np.int32)
    native_rows.project(np.ascontiguousarray(grid), quantized, len(quantized), 2.0**-bits, out)
    return out


project = project_in_numpy if native_rows is None else project_in_c


@dataclass(frozen=True, eq=False)
class Frame:
    """A public ball around a point of the domain: rows as seen from its center, in units of its radius.

    Parameters
    ----------
    center : int32 array of shape (n_features,)
        On the grid.
    radius : int
        In grid units.
    """

    center: GridArray
    radius: int

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Frame)
            and self.radius == other.radius
            and np.array_equal(self.center, other.center)
        )

    def __hash__(self) -> int:
        return hash((self.center.tobytes(), self.radius))

    def __call__(self, grid: GridArray) -> GridArray:
        """Rows seen from the center, each by itself; those outside the ball are pulled to its edge."""
        return see(grid, self.center, self.radius)

    def to_domain(self, unit: FloatArray) -> FloatArray:
        """Points of the frame in units of the domain's radius."""
        return (unit * self.radius + self.center) / GRID_UNIT


def see_in_numpy(grid: GridArray, center: GridArray, radius: int) -> GridArray:
    """Rows as seen in a frame."""
    gaps = grid - center
    length = np.sqrt(squared_norms(gaps).astype(np.float64))
    # As in pull_into_ball: 2**-40 less is certain not to be too long.
    factor = GRID_UNIT / np.maximum(length, radius) * (1 - 2.0**-40)
    return np.ascontiguousarray(np.trunc(gaps * factor[:, np.newaxis]), dtype=np.int32)


def see_in_c(grid: GridArray, center: GridArray, radius: int) -> GridArray:
    """The same without tables in between."""
    out = np.empty(grid.shape, dtype=np.int32)
    native_rows.frame(np.ascontiguousarray(grid), np.ascontiguousarray(center), radius, out)
    return out


see = see_in_numpy if native_rows is None else see_in_c

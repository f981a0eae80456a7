"""Questions that variants of Lloyd's algorithm ask in every step."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np

from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, squared_norms
from pemeans.kernels.nearest import Labels
from pemeans.rows.block import Block


@dataclass(frozen=True, eq=False)
class BoxSums:
    """The sum of the rows nearest to each center, each row clipped to a box, in grid units.

    Its sensitivity for Laplace noise is the sum of the half-widths: a row adds its clipped coordinates to one
    sum only, and each of them is at most its half-width.

    Parameters
    ----------
    centers : int32 array of shape (k, n_features)
        Public centers on the grid.
    half_widths : int64 array of shape (n_features,)
        Of the box around the origin, in grid units.
    """

    centers: GridArray
    half_widths: IntArray

    @property
    def l1_sensitivity(self) -> int:
        """The largest L1 length of a row in the box."""
        return int(self.half_widths.sum())

    def __call__(self, block: Block) -> IntArray:
        labels = block.nearest(self.centers)
        return grouped(labels, np.clip(block.grid, -self.half_widths, self.half_widths), len(self.centers))


@dataclass(frozen=True, eq=False)
class TrustedSums:
    """For every center the sum of its rows' residuals, but for rows farther away than `radius`.

    Sensitivity: the smaller of `radius` and ``GRID_UNIT + |c|`` for the longest center c, rounded up. A row
    adds its residual ``x - c`` to one sum or none, exactly as it is; that it adds something says that the
    residual is at most `radius` long, and rows are in the unit ball.

    Parameters
    ----------
    centers : int32 array of shape (k, n_features)
        Public centers on the grid.
    radius : int
        The longest residual, in grid units.
    """

    centers: GridArray
    radius: int

    @property
    def sensitivity(self) -> int:
        """The longest residual that there can be."""
        longest = int(squared_norms(self.centers).max())
        return min(self.radius, GRID_UNIT + isqrt(max(longest - 1, 0)) + 1)

    def __call__(self, block: Block) -> IntArray:
        labels, gaps = trusted(block, self.centers, self.radius)
        return grouped(labels, gaps, len(self.centers) + 1)[:-1]


@dataclass(frozen=True, eq=False)
class TrustedCounts:
    """How many rows each center has, but for rows farther away than `radius`.

    Sensitivity 1: a row adds one to one count or none.

    Parameters
    ----------
    centers : int32 array of shape (k, n_features)
        Public centers on the grid.
    radius : int
        How far away rows count, in grid units.
    """

    centers: GridArray
    radius: int
    sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        labels, _ = trusted(block, self.centers, self.radius)
        k = len(self.centers)
        return np.bincount(labels, minlength=k + 1)[:k].astype(np.int64)


def trusted(block: Block, centers: GridArray, radius: int) -> tuple[Labels, GridArray]:
    """Each row's nearest center and its residual; the number of centers stands for a row too far away."""
    labels = block.nearest(centers)
    gaps = block.grid - centers[labels]
    near = squared_norms(gaps) <= radius**2
    return np.where(near, labels, np.int32(len(centers))), gaps


def grouped(labels: Labels, rows: GridArray, size: int) -> IntArray:
    """The sum of the rows of each label."""
    # float64 holds these integer partial sums exactly: 2**14 rows of 27 bits stay below 2**53.
    sums = [np.bincount(labels, weights=column, minlength=size) for column in rows.T]
    return np.stack(sums, axis=1).astype(np.int64)

"""Questions about the rows: integer, row-local, and each with a proven sensitivity.

A statistic is called on a block of rows and returns integers that add up over blocks. What one row adds
depends on that row and the public question alone, so zeroing out a row changes the total by exactly what
that row added: its L2 length is the sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, Projection
from pemeans.kernels.nearest import nearest
from pemeans.rows.block import Block


class Statistic(Protocol):
    """A question with a sensitivity: what the curator releases."""

    @property
    def sensitivity(self) -> int:
        """The largest L2 length of what one row can add to the total."""
        ...

    def __call__(self, block: Block) -> IntArray:
        """What the rows of a block add up to."""
        ...


@dataclass(frozen=True, eq=False)
class NearestVotes:
    """How many rows have each candidate as their nearest: Algorithm 2 without its noise.

    Sensitivity 1: a row adds one to exactly one bin, found by exact integer distances from that row alone,
    the lowest index among equally near candidates.

    Parameters
    ----------
    candidates : int32 array of shape (n_candidates, n_dimensions)
        Public candidates on the grid of the view.
    view : Projection, optional
        The public projection through which the rows are seen.
    """

    candidates: GridArray
    view: Projection | None = None
    sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        labels = nearest(block.through(self.view), self.candidates)
        return np.bincount(labels, minlength=len(self.candidates)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class NearestSums:
    """The sum of the rows nearest to each candidate: the lift of Algorithm 3, in grid units.

    Sensitivity ``GRID_UNIT``, the radius R: a row adds its own coordinates to exactly one sum, and no row on
    the grid is longer than one unit, because clipping truncates toward zero.

    Parameters
    ----------
    candidates : int32 array of shape (n_candidates, n_dimensions)
        Public candidates on the grid of the view.
    view : Projection, optional
        The public projection in which the nearest candidate is looked for; the sums are of the whole rows.
    """

    candidates: GridArray
    view: Projection | None = None
    sensitivity: ClassVar[int] = GRID_UNIT

    def __call__(self, block: Block) -> IntArray:
        labels = nearest(block.through(self.view), self.candidates)
        sums = np.empty((len(self.candidates), block.grid.shape[1]), dtype=np.int64)
        for j, column in enumerate(block.grid.T):
            # float64 holds these integer partial sums exactly: 2**14 rows of 22 bits stay below 2**53.
            sums[:, j] = np.bincount(labels, weights=column, minlength=len(self.candidates))
        return sums

"""Questions about a locality-sensitive hash: how many rows, and which sum, in ranges of its codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pemeans.errors import ParameterError
from pemeans.kernels.grid import GRID_UNIT, IntArray, Projection
from pemeans.rows.block import Block


@dataclass(frozen=True, eq=False)
class CodeRanges:
    """Disjoint ranges of hash codes, half open and rising; a prefix of a code is such a range.

    The code of a row has a bit for every direction of the public `view`, the first one being the highest: 0
    on its positive side or on the edge, 1 on the other. The view is exact, so the code depends on that row
    alone.

    Parameters
    ----------
    view : Projection
        The directions.
    starts, stops : int64 arrays
        The first code of each range, and the one after its last.
    """

    view: Projection
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        """Refuse ranges in which a row could be twice."""
        if not ((self.starts < self.stops).all() and (self.stops[:-1] <= self.starts[1:]).all()):
            raise ParameterError(
                f"starts and stops of {len(self.starts)} ranges overlap or don't rise; sort them"
            )

    def find(self, block: Block) -> IntArray:
        """The range that each row is in, or -1."""
        signs = block.through(self.view) < 0
        codes = signs @ (1 << np.arange(signs.shape[1], dtype=np.int64)[::-1])
        found = np.searchsorted(self.starts, codes, side="right") - 1
        inside = (found >= 0) & (codes < self.stops[found])
        return np.where(inside, found, -1)


@dataclass(frozen=True, eq=False)
class RangeCounts:
    """How many rows are in each range.

    Sensitivity 1, in both norms: ranges are disjoint, so a row adds one to one of them at most.
    """

    ranges: CodeRanges
    sensitivity: ClassVar[int] = 1
    l1_sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        # What is in no range is counted in one more bin, which is left out.
        size = len(self.ranges.starts)
        return np.bincount(self.ranges.find(block) + 1, minlength=size + 1)[1:].astype(np.int64)


@dataclass(frozen=True, eq=False)
class RangeSums:
    """The sum of the rows in each range, in grid units.

    Sensitivity ``GRID_UNIT``: a row adds itself to one sum at most, and no row on the grid is longer.
    """

    ranges: CodeRanges
    sensitivity: ClassVar[int] = GRID_UNIT

    def __call__(self, block: Block) -> IntArray:
        found = self.ranges.find(block) + 1
        size = len(self.ranges.starts)
        # float64 holds these integer partial sums exactly: 2**14 rows of 22 bits stay below 2**53.
        sums = [np.bincount(found, weights=column, minlength=size + 1)[1:] for column in block.grid.T]
        return np.stack(sums, axis=1).astype(np.int64)

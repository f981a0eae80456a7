"""Some rows on the integer grid: what a statistic is called on."""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import Frame, GridArray, Projection
from pemeans.kernels.nearest import Labels, nearest


class Block:
    """A chunk of rows on the grid, with its last projection and its last nearest candidates kept at hand.

    What is kept is found again by value, because a question that travels to a worker arrives as a copy. It
    is left behind when the block itself travels.

    Parameters
    ----------
    grid : int32 array of shape (rows, features)
        Rows on the grid, none longer than ``GRID_UNIT``.
    view : Projection, optional
        A view through which the rows have been seen already.
    seen : int32 array, optional
        What was seen.
    """

    def __init__(
        self, grid: GridArray, view: Projection | None = None, seen: GridArray | None = None
    ) -> None:
        self.grid = grid
        self._view = view
        self._seen = grid if seen is None else seen
        self._question: tuple[GridArray, Projection | None] | None = None
        self._labels: Labels
        self._frame: Frame | None = None
        self._framed: Block

    def through(self, view: Projection | None) -> GridArray:
        """The rows as seen through `view`; computed once while the view stays the same."""
        if view is None:
            return self.grid
        if view != self._view:
            self._view, self._seen = view, view(self.grid)
        return self._seen

    def framed(self, frame: Frame) -> Block:
        """The rows as seen in `frame`; computed once while the frame stays the same."""
        if frame != self._frame:
            self._frame, self._framed = frame, Block(frame(self.grid))
        return self._framed

    def nearest(self, candidates: GridArray, view: Projection | None = None) -> Labels:
        """The nearest candidate of every row as seen through `view`; kept for the next question about it."""
        if not self._asked(candidates, view):
            self._labels = nearest(self.through(view), candidates)
            self._question = candidates, view
        return self._labels

    def _asked(self, candidates: GridArray, view: Projection | None) -> bool:
        """Whether this was the last question."""
        if self._question is None:
            return False
        last, through = self._question
        return through == view and (last is candidates or np.array_equal(last, candidates))

    def __reduce__(self) -> tuple[type[Block], tuple[GridArray]]:
        return Block, (self.grid,)

    def __sizeof__(self) -> int:
        """What an engine counts this block's memory by."""
        framed = 0 if self._frame is None else self._framed.__sizeof__()
        seen = 0 if self._view is None else self._seen.nbytes
        return self.grid.nbytes + seen + framed

    def __repr__(self) -> str:
        return f"<Block of {self.grid.shape[1]} features>"  # no values, no count: a repr may reach a log

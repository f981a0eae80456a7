"""Some rows on the integer grid: what a statistic is called on."""

from __future__ import annotations

from pemeans.kernels.grid import Frame, GridArray, Projection
from pemeans.kernels.nearest import Labels, nearest


class Block:
    """A chunk of rows on the grid, with its last projection and its last nearest candidates kept at hand.

    Parameters
    ----------
    grid : int32 array of shape (rows, features)
        Rows on the grid, none longer than ``GRID_UNIT``.
    """

    def __init__(self, grid: GridArray) -> None:
        self.grid = grid
        self._view: Projection | None = None
        self._seen: GridArray = grid
        self._question: tuple[GridArray, Projection | None] | None = None
        self._labels: Labels
        self._frame: Frame | None = None
        self._framed: Block

    def through(self, view: Projection | None) -> GridArray:
        """The rows as seen through `view`; computed once while the view stays the same."""
        if view is None:
            return self.grid
        if view is not self._view:
            self._view, self._seen = view, view(self.grid)
        return self._seen

    def framed(self, frame: Frame) -> Block:
        """The rows as seen in `frame`; computed once while the frame stays the same."""
        if frame is not self._frame:
            self._frame, self._framed = frame, Block(frame(self.grid))
        return self._framed

    def nearest(self, candidates: GridArray, view: Projection | None = None) -> Labels:
        """The nearest candidate of every row as seen through `view`; kept for the next question about it."""
        asked = self._question
        if asked is None or asked[0] is not candidates or asked[1] is not view:
            self._labels = nearest(self.through(view), candidates)
            self._question = candidates, view
        return self._labels

    def __repr__(self) -> str:
        return f"<Block of {self.grid.shape[1]} features>"  # no values, no count: a repr may reach a log

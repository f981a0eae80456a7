"""Some rows on the integer grid: what a statistic is called on."""

from __future__ import annotations

from pemeans.kernels.grid import GridArray, Projection
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

    def through(self, view: Projection | None) -> GridArray:
        """The rows as seen through `view`; computed once while the view stays the same."""
        if view is None:
            return self.grid
        if view is not self._view:
            self._view, self._seen = view, view(self.grid)
        return self._seen

    def nearest(self, candidates: GridArray, view: Projection | None = None) -> Labels:
        """The nearest candidate of every row as seen through `view`; kept for the next question about it."""
        asked = self._question
        if asked is None or asked[0] is not candidates or asked[1] is not view:
            self._labels = nearest(self.through(view), candidates)
            self._question = candidates, view
        return self._labels

    def __repr__(self) -> str:
        return f"<Block of {self.grid.shape[1]} features>"  # no values, no count: a repr may reach a log

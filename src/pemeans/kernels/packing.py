"""Points that keep their distance from one another, taken in the order in which they are offered."""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import FloatArray
from pemeans.kernels.native import native

LANES = 16
"""The C loop compares a candidate with 16 accepted points at once, so they are stored in panels of 16."""


class Packing:
    """A growing set of points, any two of them at least `distance` apart.

    Parameters
    ----------
    most : int
        The packing is full with so many points.
    dimensions : int
        Of the points.
    distance : float
        The least distance of two points.
    patience : int
        The packing is stuck after so many rejections in a row.

    Examples
    --------
    >>> packing = Packing(most=3, dimensions=1, distance=1.0, patience=2)
    >>> packing.offer(np.array([[0.0], [0.5], [1.0], [1.5], [0.9], [7.0]]))
    >>> packing.points.ravel().tolist(), packing.stuck
    ([0.0, 1.0], True)
    """

    def __init__(self, most: int, dimensions: int, distance: float, patience: int) -> None:
        self._panels = np.zeros((-(-most // LANES), dimensions, LANES))
        self._most, self._limit, self._patience = most, distance**2, patience
        self._count = self._rejected = 0

    @property
    def full(self) -> bool:
        """Whether there are as many points as were wanted."""
        return self._count >= self._most

    @property
    def stuck(self) -> bool:
        """Whether patience is at an end."""
        return self._rejected >= self._patience

    @property
    def points(self) -> FloatArray:
        """The points accepted so far."""
        return np.ascontiguousarray(self._by_point()[: self._count])

    def offer(self, candidates: FloatArray) -> None:
        """Accept or reject candidates one after another, until the packing is full or stuck."""
        if native is None:
            self._offer_in_numpy(candidates)
        else:
            self._offer_in_c(candidates)

    def _by_point(self) -> FloatArray:
        return self._panels.transpose(0, 2, 1).reshape(-1, self._panels.shape[1])

    def _offer_in_c(self, candidates: FloatArray) -> None:
        self._count, self._rejected = native.pack(
            np.ascontiguousarray(candidates),
            self._panels,
            self._panels.shape[1],
            self._count,
            self._rejected,
            self._most,
            self._patience,
            self._limit,
        )

    def _offer_in_numpy(self, candidates: FloatArray) -> None:
        accepted = self._by_point()
        for candidate in candidates:
            if self.full or self.stuck:
                return
            squared = np.zeros(self._count)
            for j, x in enumerate(candidate):  # column by column, in the order of the C loop
                squared += (accepted[: self._count, j] - x) ** 2
            if (squared < self._limit).any():
                self._rejected += 1
                continue
            accepted[self._count] = candidate
            self._panels[self._count // LANES, :, self._count % LANES] = candidate
            self._count += 1
            self._rejected = 0

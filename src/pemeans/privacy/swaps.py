"""Questions by which a local search for centers chooses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from pemeans.kernels.grid import GRID_BITS, FloatArray, GridArray, IntArray, Projection
from pemeans.privacy.cubes import in_ball
from pemeans.rows.block import Block

SEARCH_BITS = 12
"""Bits of a coordinate in the search: so coarse that noise can be drawn for the smallest budgets, and sums of
squared distances over a block stay below 2**53 by far."""
LARGEST_LOSS = 1 << (2 * SEARCH_BITS + 2)
"""The squared distance of two points of the unit ball is at most ``(2 R)^2``."""
CHUNK = 1 << 15
"""Numbers handled at once, so that they stay in the cache."""


def coarse(grid: GridArray) -> FloatArray:
    """Points of the unit ball on the coarser grid of the search, truncated toward zero: none gets longer."""
    return np.trunc(grid / 2.0 ** (GRID_BITS - SEARCH_BITS))


def relative_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Squared distances less ``|point|^2``: one product of whole numbers, exact in float64."""
    squared = (centers**2).sum(axis=1)
    relative: FloatArray = points @ (-2 * centers.T) + squared
    return relative


@dataclass(frozen=True, eq=False)
class SwapLosses:
    """The k-means loss after every swap: with center i replaced by candidate j.

    Spread ``(2 R)^2``: a row adds to each loss its squared distance to the nearest of some points. Rows and
    points are in the unit ball of the search's grid, so all that a row adds is between 0 and that.

    Parameters
    ----------
    centers, candidates : int32 arrays of shape (k, p) and (m, p)
        Public points of the unit ball on the grid.
    view : Projection, optional
        The public projection through which the rows are seen; they are then pulled into the unit ball.
    """

    centers: GridArray
    candidates: GridArray
    view: Projection | None = None
    spread: ClassVar[int] = LARGEST_LOSS

    def __call__(self, block: Block) -> IntArray:
        """An array of shape (k, m).

        A row whose nearest center stays has the nearer of that and the candidate; where it goes, the nearer
        of its second nearest and the candidate.
        """
        rows, candidates = coarse(in_ball(block, self.view)), coarse(self.candidates)
        gaps = relative_distances(rows, coarse(self.centers))
        labels = gaps.argmin(axis=1)
        order = np.argsort(labels, kind="stable")
        nearest = np.take_along_axis(gaps, labels[:, np.newaxis], axis=1)
        np.put_along_axis(gaps, labels[:, np.newaxis], np.inf, axis=1)
        second = gaps.min(axis=1, keepdims=True)
        stays = np.zeros(len(candidates))
        goes = np.zeros((len(self.centers), len(candidates)))
        edges = np.searchsorted(labels[order], np.arange(len(self.centers) + 1))
        step = max(1, CHUNK // len(candidates))
        for i, (first, last) in enumerate(pairwise(edges)):
            for start in range(first, last, step):
                chunk = order[start : min(start + step, last)]
                reach = relative_distances(rows[chunk], candidates)
                kept = np.minimum(reach, nearest[chunk]).sum(axis=0)
                stays += kept
                goes[i] += np.minimum(reach, second[chunk]).sum(axis=0) - kept
        return np.asarray(stays + goes + (rows**2).sum(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SetLosses:
    """The k-means loss of each of some sets of centers.

    Spread ``(2 R)^2``, as in `SwapLosses`.

    Parameters
    ----------
    sets : int32 array of shape (sets, k, p)
        Public points of the unit ball on the grid.
    view : Projection, optional
        The public projection through which the rows are seen; they are then pulled into the unit ball.
    """

    sets: GridArray
    view: Projection | None = None
    spread: ClassVar[int] = LARGEST_LOSS

    def __call__(self, block: Block) -> IntArray:
        rows = coarse(in_ball(block, self.view))
        nearest = [relative_distances(rows, coarse(centers)).min(axis=1).sum() for centers in self.sets]
        return np.asarray(np.array(nearest) + (rows**2).sum(), dtype=np.int64)

"""How far rows are from their centers: a noisy histogram, and the radii that are read off it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram

EDGES = np.rint(np.concatenate([[0.0], np.geomspace(1e-3, 2.0, 95)]) * GRID_UNIT).astype(np.int64)
"""Upper edges of the bins: 0, then 95 from a thousandth of the radius to the ball's diameter."""
MIDDLES = np.concatenate([[1.0, EDGES[1] / 2], np.sqrt(EDGES[1:-1] * EDGES[2:]), EDGES[-1:]])
"""A distance for every bin, the last one included, which is beyond the last edge."""
MOST_RESTORED = 4.0
CHEAP, WIDEST = 0.02, 8.0
"""Residuals may be so much longer that the noise on a mean is 2 % of the radius squared; at most 8 times."""


@dataclass(frozen=True, eq=False)
class Distances:
    """So many rows in every bin of `EDGES`, and in one more beyond; none of them negative."""

    counts: FloatArray

    def covering(self, part: float) -> int:
        """The distance that this part of the rows keeps from their centers, in grid units."""
        covered = np.cumsum(self.counts)[:-1] >= part * self.counts.sum()
        return int(EDGES[max(int(covered.argmax()), 1)] if covered.any() else EDGES[-1])

    def restoring(self, radius: int, d: int) -> float:
        """By how much an offset of all rows comes out too small when residuals are shortened to `radius`.

        A row at distance y from its center follows an offset in full if ``y <= radius``. If not, only across
        its own direction, and ``radius / y`` as much: on average over d directions ``(d - 1)/d radius/y``.
        """
        followed = np.where(radius >= MIDDLES, 1.0, (d - 1) / d * radius / MIDDLES)
        return float(min(self.counts.sum() / max(float(self.counts @ followed), 1e-300), MOST_RESTORED))


def find_distances(curator: Curator, centers: GridArray, share: float) -> Distances:
    """One histogram of the distances of rows to their nearest centers, made consistent with their number."""
    histogram = curator.release("distances", DistanceHistogram(centers, EDGES), share).values
    return Distances(project_to_simplex(histogram.astype(np.float64), curator.n_rows))


def project_to_simplex(values: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative vector with this sum (Duchi et al. 2008).

    Examples
    --------
    >>> project_to_simplex(np.array([3.0, 1.0, -5.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[falling > excess][-1], 0.0))


def cheap_noise(n: int, d: int, k: int, sigma: float) -> float:
    """How many times wider the residuals' radius may be, from 1 to 8, before noise of this sigma matters."""
    return min(max(sqrt(CHEAP * n**2 / (k**2 * d)) / max(sigma, 1e-300), 1.0), WIDEST)

"""A private frame: where the rows are and how far they spread, when the public domain is loose.

Users rarely know tight bounds. Two cheap releases, a mean and a histogram of distances from it, give a ball
that holds nearly all rows; everything after works in that ball. Rows outside are pulled to its edge.
"""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import GRID_UNIT, Frame, IntArray, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums

SMALLEST = 2.0**-14
"""No frame is smaller than this part of the domain's radius."""
FINE, COARSE, MUCH = 8, 2, 500
"""Bins an octave: 8 where n mu is above 500, so that their noise does not add up to much, else 2."""
ROOM, FEW = 1.5, 12
"""Up to 12 dimensions the frame is half as wide again as what is seen: room for outliers, which weigh much in
the loss. In more dimensions no center can cover them, and a wider frame costs accuracy."""
OUTSIDE = 1e-3
"""The part of the rows that may lie outside the frame, noise apart."""
SURE = 3.0
"""Standard deviations of noise that a count must exceed to be taken for rows."""


def find_frame(curator: Curator, mean_share: float, spread_share: float) -> Frame:
    """A ball around the noisy mean that holds nearly all rows."""
    d, n = curator.n_features, curator.n_rows
    origin = np.zeros((1, d), dtype=np.int32)
    answer = curator.release("mean", ResidualSums(origin, GRID_UNIT, 1), mean_share)
    mean, noise = answer.values[:, :-1] / n / GRID_UNIT, answer.sigma / n / GRID_UNIT
    believed = max(0.0, 1 - d * noise**2 / max(float((mean**2).sum()), 1e-300))
    center = to_grid(mean * believed)
    edges = _edges(FINE if n * curator.mu > MUCH else COARSE)
    histogram = curator.release("spread", DistanceHistogram(center, edges), spread_share)
    room = ROOM if d <= FEW else 1.0
    return Frame(center[0], _radius(histogram.values, histogram.sigma, edges, n, room))


def _edges(bins: int) -> IntArray:
    """Bins of the distance, so many an octave, from the smallest frame to the domain's diameter."""
    octaves = int(np.log2(2 / SMALLEST))
    return np.rint(np.geomspace(SMALLEST, 2.0, octaves * bins + 1) * GRID_UNIT).astype(np.int64)


def _radius(histogram: IntArray, sigma: float, edges: IntArray, n: int, room: float) -> int:
    """The edge beyond which chance or `OUTSIDE` explain what is seen; wider where noise hides many."""
    beyond = np.cumsum(histogram[::-1])[::-1]
    hidden = np.maximum(OUTSIDE * n, SURE * sigma * np.sqrt(np.arange(len(beyond), 0, -1)))
    seen = np.flatnonzero(beyond > hidden)
    if not seen.size:
        return GRID_UNIT
    last = min(int(seen.max()), len(edges) - 1)
    widened = edges[last] * (room + 2 * min(hidden[last] / n, 0.5))
    return int(min(widened, GRID_UNIT))

"""A private frame: where the rows are and how far they spread, when the public domain is loose.

Users rarely know tight bounds. Two cheap releases, a mean and a histogram of distances from it, give a ball
that holds nearly all rows; everything after works in that ball. Rows outside are pulled to its edge. A clump
of rows far from all others is inside if it holds more than chance explains: `SURE` sigma of the histogram.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from pemeans.kernels.grid import GRID_UNIT, Frame, GridArray, IntArray, squared_norms, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums

SMALLEST = 2.0**-14
"""No frame is smaller than this part of the domain's radius."""
FINE, COARSE, MUCH = 8, 2, 500
"""Bins an octave: 8 where n mu is above 500, so that their noise does not add up to much, else 2."""
SURE = 3.5
"""Standard deviations of noise that a window of bins must exceed to be taken for rows: with so many windows
noise alone passes in 2 % of the fits (in 6 % where bounds are 10,000 times too wide)."""
FEW = 12
"""In more dimensions no center can cover scattered outliers, and a frame that is wide for their sake costs
accuracy: there only clumps count."""


@dataclass(frozen=True)
class Care:
    """What the frame must hold.

    Parameters
    ----------
    windows : tuple of int
        Rows are looked for in so many bins at once: a clump far out fills one or two, a tail an octave.
    outside : float
        A window with less than this part of the rows may lie outside.
    room : float
        How much wider the frame is than what is seen.
    """

    windows: tuple[int, ...]
    outside: float
    room: float


FOR_OUTLIERS, FOR_CLUMPS = Care((1, 2, 4, 8), 1e-3, 1.5), Care((1, 2), 5e-3, 1.0)


def find_frame(curator: Curator, mean_share: float, spread_share: float) -> Frame:
    """A ball around the noisy mean that holds nearly all rows."""
    d, n = curator.n_features, curator.n_rows
    origin = np.zeros((1, d), dtype=np.int32)
    answer = curator.release("mean", ResidualSums(origin, np.array([GRID_UNIT]), 1), mean_share)
    mean, noise = answer.values[:, :-1] / n / GRID_UNIT, answer.sigma / n / GRID_UNIT
    believed = max(0.0, 1 - d * noise**2 / max(float((mean**2).sum()), 1e-300))
    center = to_grid(mean * believed)
    edges = _edges(FINE if n * curator.mu > MUCH else COARSE)
    histogram = curator.release("spread", DistanceHistogram(center, edges), spread_share)
    seen = _seen(histogram.values, histogram.sigma, edges, n, FOR_OUTLIERS if d <= FEW else FOR_CLUMPS)
    return Frame(center[0], int(min(max(seen, SMALLEST * GRID_UNIT), _widest(center))))


def _widest(center: GridArray) -> int:
    """So wide a ball around `center` holds the whole domain."""
    return GRID_UNIT + ceil(sqrt(squared_norms(center)[0]))


def _edges(bins: int) -> IntArray:
    """Bins of the distance, so many an octave, from the smallest frame to the domain's diameter."""
    octaves = int(np.log2(2 / SMALLEST))
    return np.rint(np.geomspace(SMALLEST, 2.0, octaves * bins + 1) * GRID_UNIT).astype(np.int64)


def _seen(histogram: IntArray, sigma: float, edges: IntArray, n: int, care: Care) -> float:
    """The end of the farthest window that holds more than chance explains; wider for what they hide."""
    before = np.concatenate([[0], np.cumsum(histogram)])
    farthest, last, hidden = -1, len(edges) - 1, 0.0
    for width in care.windows:
        explained = max(care.outside * n, SURE * sigma * sqrt(width))
        starts = np.flatnonzero(before[width:] - before[:-width] > explained)
        if starts.size and starts[-1] > farthest:
            farthest, last, hidden = int(starts[-1]), int(starts[-1]) + width - 1, explained
    if farthest < 0:
        return float(edges[-1])
    return float(edges[min(last, len(edges) - 1)] * (care.room + 2 * min(hidden / n, 0.5)))

"""Refinement: noisy sums of residuals, clipped to a radius that shrinks with what is left to gain."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from pemeans.evolution.shrink import shrink
from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram, ResidualSums

COUNT_WEIGHT = 0.25
"""A row counts a quarter of the residual radius: the count costs 3 % of the sums' noise."""
EDGES = np.rint(np.concatenate([[0.0], np.geomspace(1e-3, 2.0, 95)]) * GRID_UNIT).astype(np.int64)
"""Bins of the distances to the nearest center: 0, 95 edges to the ball's diameter, and beyond."""
QUANTILE = 0.75
"""The radius covers three quarters of the rows."""


def refine(
    curator: Curator,
    centers: FloatArray,
    basis: FloatArray,
    sizes: Sizes,
    steps: int,
    histogram_share: float,
    sums_share: float,
    first_block: int,
) -> Iterator[tuple[FloatArray, Sizes]]:
    """Equal steps, each of one histogram of distances and one release of residual sums and counts.

    Centers are in the rows' own space; their moves are shrunk along `basis`. Yields both after every step.
    """
    share = sums_share / steps
    for step in range(steps):
        asked = to_grid(centers)
        usual = usual_distance(curator, asked, histogram_share / steps)
        radius = residual_radius(usual, curator, len(centers), share)
        weight = max(1, round(COUNT_WEIGHT * radius))
        answer = curator.release("residual sums", ResidualSums(asked, radius, weight), share)
        noise = answer.sigma
        if step:
            sizes = sizes.drifted()
        sizes = sizes.with_counts(answer.values[:, -1] / weight, (noise / weight) ** 2)
        moves = shrink((answer.values[:, :-1] / GRID_UNIT) @ basis, noise / GRID_UNIT, first_block)
        centers = centers + (moves * sizes.per_row()[:, np.newaxis]) @ basis.T
        centers = centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
        yield centers, sizes


def usual_distance(curator: Curator, centers: GridArray, share: float) -> int:
    """The distance that three quarters of the rows keep from their center, in grid units."""
    n = curator.n_rows
    histogram = curator.release("distances", DistanceHistogram(centers, EDGES), share).values
    counts = project_to_simplex(histogram.astype(np.float64), n)
    covered = np.cumsum(counts)[:-1] >= QUANTILE * n
    return int(EDGES[max(int(covered.argmax()), 1)] if covered.any() else EDGES[-1])


def residual_radius(usual: int, curator: Curator, k: int, share: float) -> int:
    """The usual distance, widened up to four times where noise is cheap."""
    n, d = curator.n_rows, curator.n_features
    relative_noise = sqrt(1 + COUNT_WEIGHT**2) / (sqrt(share) * curator.mu)
    widening = sqrt(0.02 * n**2 / (k**2 * d)) / max(relative_noise, 1e-300)
    return int(min(usual * min(max(widening, 1.0), 4.0), 2 * GRID_UNIT))


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

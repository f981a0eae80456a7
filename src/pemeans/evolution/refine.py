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
MOST_UNDO = 4.0
QUANTILE = 0.5
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
    weight = round(COUNT_WEIGHT * GRID_UNIT)
    wider = np.ones(len(centers))
    for step in range(steps):
        asked = to_grid(centers)
        counts = distances(curator, asked, histogram_share / steps)
        usual = residual_radius(quantile(counts, QUANTILE), curator, len(centers), share)
        restore = restoring(counts, usual, curator.n_features)
        radii = np.rint(np.minimum(usual * wider, 2 * GRID_UNIT)).astype(np.int64)
        answer = curator.release("residual sums", ResidualSums(asked, radii, weight), share)
        sums, noise = answer.values[:, :-1] / GRID_UNIT, answer.sigma / GRID_UNIT
        if step:
            sizes = sizes.drifted()
        sizes = sizes.with_counts(answer.values[:, -1] / weight, (answer.sigma / weight) ** 2)
        moves = shrink(sums @ basis, noise, first_block) * sizes.per_row()[:, np.newaxis]
        reach = radii / GRID_UNIT * np.where(wider > 1, 1.0, restore)
        centers = centers + reach[:, np.newaxis] * (moves @ basis.T)
        centers = centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
        if WIDEN: wider = next_widening(wider, sums, noise, sizes)
        yield centers, sizes


WIDEN = True
def next_widening(wider: FloatArray, sums: FloatArray, noise: float, sizes: Sizes) -> FloatArray:
    """How much wider than usual a center's radius should be: more where all its rows pull one way."""
    d = sums.shape[1]
    power = (sums**2).sum(axis=1)
    believed = power - d * noise**2
    sure = believed > 4 * noise * np.sqrt(noise**2 * 2 * d + 4 * np.maximum(believed, 0))
    pull = np.sqrt(np.maximum(believed, 0)) / sizes.values
    common = np.sqrt(np.maximum((believed / sizes.values).sum(), 0) / sizes.values.sum())
    lost = sure & (pull > 0.7) & (common < 0.5)
    left = pull + np.sqrt(d) * noise / sizes.values
    return np.where(lost, wider * 4, np.maximum(1.0, wider * np.minimum(1.0, left)))


def usual_distance(curator: Curator, centers: GridArray, share: float) -> int:
    """The distance that three quarters of the rows keep from their center, in grid units."""
    return quantile(distances(curator, centers, share), 0.75)


def distances(curator: Curator, centers: GridArray, share: float) -> FloatArray:
    """How many rows lie how far from their center: a histogram without negative counts."""
    histogram = curator.release("distances", DistanceHistogram(centers, EDGES), share).values
    return project_to_simplex(histogram.astype(np.float64), curator.n_rows)


def quantile(counts: FloatArray, part: float) -> int:
    """The distance that this part of the rows keeps from their center, in grid units."""
    covered = np.cumsum(counts)[:-1] >= part * counts.sum()
    return int(EDGES[max(int(covered.argmax()), 1)] if covered.any() else EDGES[-1])


def restoring(counts: FloatArray, radius: int, d: int) -> float:
    """By how much shortening to `radius` has shortened a common offset of all rows, to be made good."""
    middle = np.append(np.sqrt(np.maximum(EDGES[1:] * 1.0, 1) * np.maximum(EDGES[:-1], EDGES[1])), EDGES[-1])
    middle = np.concatenate([[EDGES[1] / 2], middle])[: len(counts)]
    kept = np.where(middle <= radius, 1.0, (d - 1) / d * radius / middle)
    return float(min(counts.sum() / max((counts * kept).sum(), 1e-300), MOST_UNDO))


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

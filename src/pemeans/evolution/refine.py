"""Refinement: noisy sums of residuals, clipped to a radius that shrinks with what is left to gain."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from pemeans.evolution.distances import cheap_noise, find_distances
from pemeans.evolution.lost import next_widening
from pemeans.evolution.plan import Plan
from pemeans.evolution.shrink import shrink
from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import GRID_UNIT, FloatArray, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import ResidualSums

COUNT_WEIGHT = 0.25
"""A row counts a quarter of the residual radius: the count costs 3 % of the sums' noise."""
COVERED = 0.5
"""The radius covers half of the rows: what is clipped of the others is made good on average."""


def refine(
    curator: Curator, centers: FloatArray, basis: FloatArray, sizes: Sizes, todo: Plan
) -> Iterator[tuple[FloatArray, Sizes]]:
    """Equal steps, each of one histogram of distances and one release of residual sums and counts.

    Centers are in the rows' own space; their moves are shrunk along `basis`. Yields both after every step.
    """
    n, (k, d) = curator.n_rows, centers.shape
    share = todo.residual_share / todo.steps
    weight = round(COUNT_WEIGHT * GRID_UNIT)
    widening = np.ones(k)
    for step in range(todo.steps):
        asked = to_grid(centers)
        distances = find_distances(curator, asked, todo.distance_share / todo.steps)
        usual = distances.covering(COVERED) * cheap_noise(n, d, k, expected_sigma(curator.mu, share))
        radii = np.rint(np.minimum(usual * widening, 2.0 * GRID_UNIT)).astype(np.int64)
        answer = curator.release("residual sums", ResidualSums(asked, radii, weight), share)
        sums, noise = answer.values[:, :-1] / GRID_UNIT, answer.sigma / GRID_UNIT
        sizes = sizes.drifted() if step else sizes
        sizes = sizes.with_counts(answer.values[:, -1] / weight, (answer.sigma / weight) ** 2)
        moves = shrink(sums @ basis, noise, todo.dimensions) * sizes.per_row()[:, np.newaxis]
        restored = np.where(widening > 1, 1.0, distances.restoring(int(usual), d))
        centers = centers + (restored * radii / GRID_UNIT)[:, np.newaxis] * (moves @ basis.T)
        centers = centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
        widening = next_widening(widening, sums, noise, sizes)
        yield centers, sizes


def expected_sigma(mu: float, share: float) -> float:
    """The noise of a residual sum, in radii, for this share of the budget."""
    return sqrt(1 + COUNT_WEIGHT**2) / (sqrt(share) * mu)

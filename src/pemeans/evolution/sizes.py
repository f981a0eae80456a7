"""Cluster sizes: what is known of them, and how well, as releases come in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pemeans.evolution.explore import Votes
from pemeans.kernels.grid import FloatArray, GridArray
from pemeans.kernels.nearest import nearest

PRIOR_SPREAD = 0.15
"""Sizes are taken to differ by at least 15 % of the mean size."""
DRIFT = 0.05
"""Every move of the centers changes the sizes by about 5 % of the mean size."""
SMALLEST = 0.02
"""No cluster is taken to be smaller than a fiftieth of the mean size."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Estimated sizes with their variances; a Kalman filter in one dimension for every cluster."""

    mean: float
    values: FloatArray
    variances: FloatArray

    def per_row(self) -> FloatArray:
        """What to multiply a sum with for a mean: ``1/m``, smaller where the size m is not known well.

        ``m / (m^2 + v)`` is the factor of least squared error for a size of mean m and variance v; plain
        ``1/m`` would blow up the noise of clusters whose size happens to come out small.
        """
        return np.asarray(self.values / (self.values**2 + self.variances))

    def drifted(self) -> Sizes:
        """After the centers moved: as large, but known less well."""
        return Sizes(self.mean, self.values, self.variances + (DRIFT * self.mean) ** 2)

    def with_counts(self, counts: FloatArray, variance: float | FloatArray) -> Sizes:
        """Noisy counts taken in, each by its precision."""
        gain = self.variances / np.maximum(self.variances + variance, 1e-300)
        values = self.values + gain * (counts - self.values)
        return Sizes(
            self.mean, np.maximum(values, SMALLEST * self.mean), np.asarray(self.variances * (1 - gain))
        )


def sizes_from_votes(votes: Votes, centers: GridArray, n_rows: int) -> Sizes:
    """First sizes, from the votes of the last population: no release of their own."""
    k = len(centers)
    mean = n_rows / k
    cloud = votes.cloud
    if not len(cloud.points):
        return Sizes(mean, np.full(k, mean), np.full(k, mean**2))
    labels = nearest(cloud.points, centers)
    counts = np.bincount(labels, weights=cloud.weights, minlength=k).astype(np.float64)
    noise = votes.sigma**2 * (1.0 + np.bincount(labels, minlength=k).astype(np.float64))
    prior = max(float(counts.var() - noise.mean()), (PRIOR_SPREAD * mean) ** 2)
    return Sizes(mean, np.full(k, mean), np.full(k, prior)).with_counts(counts, noise)

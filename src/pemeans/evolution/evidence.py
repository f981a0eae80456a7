"""How much of the coreset to believe: what kept votes by chance may not cost a cluster its center.

The clean-up keeps the largest votes, so what noise has lifted passes as well as what rows have given. A far
candidate with such votes weighs on the loss like a small cluster. Its neighborhood tells them apart: the
votes of *all* candidates of a region, in all remembered rounds, before the clean-up, add up to its rows and
noise of mean zero.
"""

from __future__ import annotations

import numpy as np

from pemeans.evolution.explore import Cloud, Coreset
from pemeans.kernels.grid import FloatArray, GridArray
from pemeans.kernels.kmeans import weighted_kmeans
from pemeans.kernels.nearest import nearest

REGIONS_PER_CLUSTER, REGION_STEPS = 3, 10
"""Regions are cells of a k-means with three centers for every cluster wanted, found in 10 Lloyd steps."""
DOUBT = 16.0
"""Where the variance of a region's sum is a sixteenth of what a cluster of the mean size adds up to, squared,
half of the correction is made: with more noise it would harm more than it helps."""


def believed(core: Coreset, k: int, rng: np.random.Generator) -> Cloud:
    """The coreset, with less weight where the votes of a whole region do not bear it out."""
    cloud = core.cloud
    if len(cloud.points) <= REGIONS_PER_CLUSTER * k:
        return cloud
    middles = weighted_kmeans(cloud.points, cloud.weights, REGIONS_PER_CLUSTER * k, 1, rng, REGION_STEPS)
    region = nearest(cloud.points, middles)
    kept = np.bincount(region, weights=cloud.weights, minlength=len(middles)).astype(np.float64)
    sums, variances = region_sums(core, middles)
    weights = np.rint(cloud.weights * belief(kept, sums, variances, cloud.weights.sum() / k)[region])
    return Cloud(cloud.points[weights > 0], weights[weights > 0])


def region_sums(core: Coreset, middles: GridArray) -> tuple[FloatArray, FloatArray]:
    """All noisy votes of every region, and the variances of their noise."""
    sums, variances = np.zeros((2, len(middles)))
    for votes in core.populations:
        region = nearest(votes.population, middles)
        sums += np.bincount(region, weights=votes.noisy, minlength=len(middles))
        variances += votes.sigma**2 * np.bincount(region, minlength=len(middles))
    return sums, variances


def belief(kept: FloatArray, sums: FloatArray, variances: FloatArray, cluster: float) -> FloatArray:
    """The part of each region's kept votes to believe, from 0 to 1.

    Parameters
    ----------
    kept, sums : array of shape (n_regions,)
        The region's votes after and before the clean-up.
    variances : array of shape (n_regions,)
        Of the noise in `sums`.
    cluster : float
        What a cluster of the mean size adds up to.

    Examples
    --------
    >>> belief(np.array([90.0, 90.0]), np.array([100.0, 0.0]), np.zeros(2), cluster=500.0).tolist()
    [1.0, 0.0]
    """
    squares = np.maximum(sums, 0.0) ** 2
    mass = np.maximum(sums, 0.0) * squares / np.maximum(squares + variances, 1e-300)
    sure = cluster**2 / np.maximum(cluster**2 + DOUBT * variances, 1e-300)
    return np.asarray(1 - sure + sure * np.minimum(mass / np.maximum(kept, 1e-300), 1.0))

"""Lost centers: all their rows are far off on one side, so they must go farther than a usual radius.

The sum of residuals tells: a center in the middle of its rows has a sum of nearly nothing, one that is far
from all its rows has a sum as long as its number of rows.
"""

from __future__ import annotations

import numpy as np

from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import FloatArray

WIDER = 4.0
"""A lost center's radius grows so many times a step."""
ONE_WAY, COMMON = 0.7, 0.5
"""A center is lost if the mean of its rows' residuals is longer than 0.7 radii, unless half a radius is usual
for all centers: then the radius shrinks and grows for all of them alike."""
SURE = 4.0
"""Standard deviations of noise by which the sum must stand out."""


def next_widening(widening: FloatArray, sums: FloatArray, noise: float, sizes: Sizes) -> FloatArray:
    """For every center how many times wider than usual its next radius is; at least 1.

    Parameters
    ----------
    widening : array of shape (k,)
        How much wider it was.
    sums : array of shape (k, d)
        Noisy sums of residuals, in radii.
    noise : float
        The standard deviation of the noise in each coordinate of the sums.
    sizes : Sizes
        What is known of the clusters' sizes.
    """
    d = sums.shape[1]
    believed = np.maximum((sums**2).sum(axis=1) - d * noise**2, 0.0)
    certain = believed > SURE * noise * np.sqrt(2 * d * noise**2 + 4 * believed)
    pull = np.sqrt(believed) / sizes.values
    usual = np.sqrt((believed / sizes.values).sum() / sizes.values.sum())
    lost = certain & (pull > ONE_WAY) & (usual < COMMON)
    # A center that has arrived needs no more than what is left to go, and what noise may have added.
    left = pull + np.sqrt(d) * noise / sizes.values
    return np.where(lost, widening * WIDER, np.maximum(1.0, widening * np.minimum(1.0, left)))

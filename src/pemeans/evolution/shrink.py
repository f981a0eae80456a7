"""James-Stein gain: how much of a noisy residual sum to believe, block of coordinates by block."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pemeans.kernels.grid import FloatArray

PRIOR_WEIGHT = 100
"""A cluster's own block of b coordinates counts b, the mean over all clusters 100."""
SMALLEST_BLOCK = 4


def blocks(dimensions: int, first: int) -> list[slice]:
    """Coordinates in blocks of sizes p, p, 2p, 4p, ...; a last block under 4 joins the one before.

    Examples
    --------
    >>> [(b.start, b.stop) for b in blocks(50, 12)]
    [(0, 12), (12, 24), (24, 50)]
    """
    edges = [0, min(first, dimensions)]
    while edges[-1] < dimensions:
        edges.append(min(max(2 * edges[-1], first), dimensions))
    if len(edges) > 2 and edges[-1] - edges[-2] < SMALLEST_BLOCK:
        del edges[-2]
    return [slice(a, b) for a, b in pairwise(edges)]


def shrink(sums: FloatArray, sigma: float, first: int) -> FloatArray:
    """Every cluster's sum, each block of it times ``max(0, 1 - noise / (signal + noise))``."""
    shrunk = np.empty_like(sums)
    for block in blocks(sums.shape[1], first):
        part = sums[:, block]
        b = part.shape[1]
        power = (part**2).sum(axis=1)
        expected = (b * power + PRIOR_WEIGHT * power.mean()) / (b + PRIOR_WEIGHT)
        gain = np.maximum(0.0, 1 - b * sigma**2 / np.maximum(expected, 1e-300))
        shrunk[:, block] = gain[:, np.newaxis] * part
    return shrunk

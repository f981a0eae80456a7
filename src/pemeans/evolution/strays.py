"""Outliers: few rows far from every center, which carry much of the loss but too few votes to be found.

One cheap histogram of the distances beyond the clusters says how many there are and how far out, not where.
Points spread at such distances then stand in for them when the centers are settled: where that pays, a center
that two clusters can share is freed and moves out to cover the space.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pemeans.evolution.distances import find_distances
from pemeans.evolution.explore import Coreset, Votes
from pemeans.evolution.populate import uniform_in_ball
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray, IntArray, squared_norms, to_float, to_grid
from pemeans.kernels.nearest import nearest
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram

BEYOND, USUAL = 4, 0.75
"""Rows farther from their center than four times the distance that three quarters keep are strays."""
USUAL_PART = 1 / 7
"""The part of the share that goes into the usual distance."""
RINGS = 2
"""In how many rings around the centers they are counted, out to the ball's diameter."""
SURE = 2.5
"""Standard deviations of noise that their number must exceed."""
REACH = 1.0
"""Strays are taken to lie within 80 % of the ball: hardly any lie at its very edge."""
STAND_INS = 16
"""Points that stand in for the strays, for every cluster wanted."""


def with_strays(
    curator: Curator,
    core: Coreset,
    found: GridArray,
    basis: FloatArray,
    widths: FloatArray,
    share: float,
    rng: np.random.Generator,
) -> Coreset | None:
    """The coreset with stand-ins for outliers, or None where there is no evidence of any.

    Parameters
    ----------
    curator : Curator
        Asked for two histograms.
    core : Coreset
        What the votes left, in the subspace.
    found : int32 array of shape (k, p)
        The centers settled without strays, in the subspace.
    basis : array of shape (n_features, p)
        The subspace.
    share : float
        Of the budget.
    rng : numpy.random.Generator
        Public randomness.
    """
    centers = to_grid(to_float(found) @ basis.T)
    usual = find_distances(curator, centers, USUAL_PART * share).covering(USUAL)
    if BEYOND * usual >= GRID_UNIT:
        return None
    edges = np.rint(np.geomspace(BEYOND * usual, 2 * GRID_UNIT, RINGS + 1)).astype(np.int64)
    answer = curator.release("strays", DistanceHistogram(centers, edges[:-1]), (1 - USUAL_PART) * share)
    beyond = answer.values[1:].astype(np.float64)
    if beyond.sum() <= SURE * answer.sigma * sqrt(RINGS):
        return None
    times = len(core.populations)  # the coreset counts every row once a population
    places, weights = stand_ins(found, edges, np.maximum(beyond, 0.0), basis, widths, rng)
    return Coreset((*core.populations, Votes(places, times * weights, answer.sigma)))


def stand_ins(
    centers: GridArray, edges: IntArray, counts: FloatArray, basis: FloatArray, widths: FloatArray, rng: np.random.Generator
) -> tuple[GridArray, FloatArray]:
    """Points all over the ball but for the clusters, weighted to lie as far from the centers as strays do."""
    points = to_grid(REACH * rng.uniform(-1, 1, (STAND_INS * len(centers), len(widths))) * widths @ basis)
    gaps = squared_norms(points - centers[nearest(points, centers)])
    ring = np.searchsorted(edges**2, gaps) - 1
    held = np.bincount(np.clip(ring, 0, len(counts) - 1), weights=ring >= 0, minlength=len(counts))
    outside = ring >= 0
    points, ring = points[outside], np.minimum(ring[outside], len(counts) - 1)
    return points, counts[ring] / held[ring]

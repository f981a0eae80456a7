"""Outliers: few rows far from every center, which carry much of the loss but too few votes to be found.

One cheap histogram of the distances beyond the clusters says how many there are and how far out, not where.
Points spread at such distances then stand in for them when the centers are settled: where that pays, a center
that two clusters can share is freed and moves out to cover the space.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pemeans.evolution.explore import Coreset, Votes
from pemeans.evolution.refine import usual_distance
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray, to_float, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram

BEYOND = 4
"""Rows farther from their center than four times the usual distance are strays."""
USUAL_PART = 1 / 7
"""The part of the share that goes into the usual distance."""
RINGS = 2
"""In how many rings around the centers they are counted, out to the ball's diameter."""
SURE = 2.5
"""Standard deviations of noise that their number must exceed."""
STAND_INS = 16
"""Points that stand in for the strays, for every cluster wanted."""


def with_strays(
    curator: Curator,
    core: Coreset,
    found: GridArray,
    basis: FloatArray,
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
    usual = usual_distance(curator, centers, USUAL_PART * share)
    if BEYOND * usual >= GRID_UNIT:
        return None
    edges = np.rint(np.geomspace(BEYOND * usual, 2 * GRID_UNIT, RINGS + 1)).astype(np.int64)
    answer = curator.release("strays", DistanceHistogram(centers, edges[:-1]), (1 - USUAL_PART) * share)
    beyond = answer.values[1:].astype(np.float64)
    if beyond.sum() <= SURE * answer.sigma * sqrt(RINGS):
        return None
    strays = stand_ins(found, edges / GRID_UNIT, np.maximum(beyond, 0.0), rng)
    doubled = 1 if core.before is None else 2  # the coreset counts every row once a population
    weights = np.concatenate([core.weights, np.full(len(strays), doubled * beyond.sum() / len(strays))])
    return Coreset(Votes(np.vstack([core.points, strays]), weights, answer.sigma), None)


def stand_ins(
    centers: GridArray, edges: FloatArray, counts: FloatArray, rng: np.random.Generator
) -> GridArray:
    """Points around the centers, at distances as in the histogram of strays, in all directions."""
    number = STAND_INS * len(centers)
    ring = rng.choice(len(counts), size=number, p=counts / counts.sum())
    distance = edges[ring] * (edges[ring + 1] / edges[ring]) ** rng.random(number)
    direction = rng.standard_normal((number, centers.shape[1]))
    direction *= (distance / np.linalg.norm(direction, axis=1))[:, np.newaxis]
    return to_grid(to_float(centers)[rng.integers(len(centers), size=number)] + direction)

"""Outliers: few rows far from every center, which carry much of the loss but too few votes to be found.

One cheap count of the rows beyond the clusters says how many there are, not where. Points spread as wide as
the rows are in every column then stand in for them when the centers are settled: where that pays, a center
that two clusters can share is freed and moves out to cover the space.
"""

from __future__ import annotations

import numpy as np

from pemeans.evolution.distances import find_distances
from pemeans.evolution.explore import Cloud
from pemeans.evolution.subspace import Subspace
from pemeans.kernels.grid import GRID_UNIT, GridArray, squared_norms, to_float, to_grid
from pemeans.kernels.nearest import nearest
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DistanceHistogram

BEYOND, USUAL = 4, 0.75
"""Rows farther from their center than four times the distance that three quarters keep are strays."""
USUAL_PART = 1 / 7
"""The part of the share that goes into the usual distance."""
SURE = 2.3
"""Standard deviations of noise that their number must exceed: noise alone does in 1 % of the fits."""
STAND_INS = 16
"""Points that stand in for the strays, for every cluster wanted."""


def find_strays(
    curator: Curator, found: GridArray, space: Subspace, share: float, rng: np.random.Generator
) -> Cloud | None:
    """Stand-ins for outliers, or None where there is no evidence of any.

    Parameters
    ----------
    curator : Curator
        Asked for two histograms.
    found : int32 array of shape (k, p)
        The centers settled without strays, in the subspace.
    space : Subspace
        Of all directions there are.
    share : float
        Of the budget.
    rng : numpy.random.Generator
        Public randomness.
    """
    centers = to_grid(to_float(found) @ space.view_basis.T)
    near = BEYOND * find_distances(curator, centers, USUAL_PART * share).covering(USUAL)
    if near >= GRID_UNIT:
        return None
    edge = np.array([near], dtype=np.int64)
    answer = curator.release("strays", DistanceHistogram(centers, edge), (1 - USUAL_PART) * share)
    beyond = float(answer.values[-1])
    if beyond <= SURE * answer.sigma:
        return None
    return stand_ins(found, near, beyond, space, rng)


def stand_ins(
    centers: GridArray, near: int, number: float, space: Subspace, rng: np.random.Generator
) -> Cloud:
    """Points all over a box around the rows but for the clusters, which weigh as much as so many rows.

    The box is as wide in every column as the rows are, and its corners are at the frame's edge: outliers
    follow the columns' units, not the clusters' correlations.
    """
    widths = np.sqrt(space.view_basis**2 @ space.variances)
    places = rng.uniform(-1, 1, (STAND_INS * len(centers), len(widths))) * widths / np.linalg.norm(widths)
    points = to_grid(places @ space.view_basis)
    points = points[squared_norms(points - centers[nearest(points, centers)]) > near**2]
    return Cloud(points, np.full(len(points), number / max(len(points), 1)))

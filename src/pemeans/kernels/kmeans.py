"""Weighted k-means of a few thousand public points on the grid, as scikit-learn does it but faster.

Greedy k-means++ seeding (as many trials a center as scikit-learn: ``2 + log k``), Lloyd steps with centers
rounded to the grid, the best of several starts. scikit-learn's own KMeans spends most of its time on checks
and threads at this size, and its float sums depend on the machine; on the grid distances and sums are exact
integers, so the C loop and its NumPy twin below agree bit for bit.
"""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import FloatArray, GridArray, squared_norms
from pemeans.kernels.native import native
from pemeans.kernels.nearest import Kernel, nearest, nearest_in_numpy

STEPS = 300
"""Most Lloyd steps, as in scikit-learn."""
TOLERANCE = 1e-4
"""Stop when the centers' squared moves are below this part of the points' variance, as in scikit-learn."""


def weighted_kmeans(
    points: GridArray,
    weights: FloatArray,
    k: int,
    starts: int,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> GridArray:
    """The centers of the best of several runs of k-means.

    Parameters
    ----------
    points : int32 array of shape (n, d)
        At least `k` points.
    weights : float array of shape (n,)
        Whole, positive weights.
    k : int
        How many centers.
    starts : int
        How many runs from fresh k-means++ seeds.
    rng : numpy.random.Generator
        Picks the seeds.
    steps : int
        Most Lloyd steps of a run.

    Examples
    --------
    >>> points = np.array([[0], [2], [100], [102]], dtype=np.int32)
    >>> centers = weighted_kmeans(points, np.ones(4), 2, starts=3, rng=np.random.default_rng(0))
    >>> sorted(centers.ravel().tolist())
    [1, 101]
    """
    trials = 2 + int(np.log(k))
    uniforms = rng.random((starts, 1 + (k - 1) * trials))
    tolerance = TOLERANCE * float(points.astype(np.float64).var(axis=0).mean())
    run = kmeans_in_numpy if native is None else kmeans_in_c
    return run(
        np.ascontiguousarray(points), weights.astype(np.float64), uniforms, k, trials, steps, tolerance
    )


def kmeans_in_c(
    points: GridArray,
    weights: FloatArray,
    uniforms: FloatArray,
    k: int,
    trials: int,
    steps: int,
    tolerance: float,
) -> GridArray:
    """The loop of `kmeans_in_numpy` in C."""
    centers = np.empty((k, points.shape[1]), dtype=np.int32)
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    native.kmeans(points, columns, weights, uniforms, centers, points.shape[1], trials, steps, tolerance)
    return centers


def kmeans_in_numpy(
    points: GridArray,
    weights: FloatArray,
    uniforms: FloatArray,
    k: int,
    trials: int,
    steps: int,
    tolerance: float,
) -> GridArray:
    """Best of the starts whose seeds `uniforms` choose, one row a start."""
    best, winner = np.inf, points[:k]
    for chances in uniforms:
        seeds = _seeds(points, weights, chances, k, trials)
        centers = lloyd(points, weights, seeds, steps, tolerance, nearest_in_numpy)
        loss = weighted_loss(points, weights, centers, nearest_in_numpy)
        if loss < best:
            best, winner = loss, centers
    return winner


def _seeds(points: GridArray, weights: FloatArray, chances: FloatArray, k: int, trials: int) -> GridArray:
    """Greedy k-means++: every next seed is the best of some drawn by weighted squared distance."""
    chance = iter(chances)
    chosen = [_pick(np.cumsum(weights), next(chance))]
    gap = _gaps(points, chosen[0])
    for _ in range(1, k):
        reach = np.cumsum(weights * gap)
        tried = [_pick(reach, next(chance)) for _ in range(trials)]
        gaps = [np.minimum(gap, _gaps(points, i)) for i in tried]
        left = [float(np.cumsum(weights * g)[-1]) for g in gaps]
        best = int(np.argmin(left))
        chosen.append(tried[best])
        gap = gaps[best]
    return points[chosen]


def _pick(cumulative: FloatArray, chance: float) -> int:
    """The first index whose cumulative weight exceeds that chance of the total."""
    found = int(np.searchsorted(cumulative, chance * cumulative[-1], side="right"))
    return min(found, len(cumulative) - 1)


def _gaps(points: GridArray, chosen: int) -> FloatArray:
    """Squared distances of all points to one of them."""
    return squared_norms(points - points[chosen]).astype(np.float64)


def lloyd(
    points: GridArray,
    weights: FloatArray,
    centers: GridArray,
    steps: int,
    tolerance: float = 0.0,
    find: Kernel = nearest,
) -> GridArray:
    """Lloyd steps until the labels stay, or the centers nearly do; a center without points stays."""
    labels = np.full(len(points), -1, dtype=np.int32)
    centers = centers.copy()
    for _ in range(steps):
        previous, labels = labels, find(points, centers)
        if np.array_equal(previous, labels):
            break
        mass = np.bincount(labels, weights=weights, minlength=len(centers))
        full = mass > 0
        before = centers[full].astype(np.float64)
        sums = np.stack(
            [np.bincount(labels, weights=weights * x, minlength=len(centers)) for x in points.T], 1
        )
        after = np.rint(sums[full] / mass[full, np.newaxis])
        centers[full] = after
        if ((after - before) ** 2).sum() <= tolerance:
            break
    return centers


def weighted_loss(
    points: GridArray, weights: FloatArray, centers: GridArray, find: Kernel = nearest
) -> float:
    """Weighted sum of squared distances to the nearest center, in squared grid units."""
    return float(np.cumsum(weights * squared_norms(points - centers[find(points, centers)]))[-1])

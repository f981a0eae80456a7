"""From the coreset to k centers: k-means from good starts, some of them by Ward's agglomeration."""

from __future__ import annotations

import numpy as np

from pemeans.evolution.explore import Cloud
from pemeans.evolution.populate import uniform_in_ball
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import FloatArray, GridArray, to_grid
from pemeans.kernels.kmeans import lloyd, weighted_kmeans, weighted_loss
from pemeans.kernels.nearest import nearest

WARD_STARTS, PLAIN_STARTS = 3, 4
SEEDS_PER_CENTER, EXTRA_SEEDS, SEED_STEPS = 3, 4, 3
"""Ward's starts begin with 3 k + 4 seeds, moved by 3 Lloyd steps."""
FINAL_STEPS = 20


def settle(cloud: Cloud, k: int, rng: np.random.Generator) -> GridArray:
    """The best k centers for weighted points."""
    points, weights = cloud.points, cloud.weights
    if len(np.unique(points, axis=0)) <= k:
        return fill_up(points, k, rng)
    starts = [ward_start(points, weights, k, rng) for _ in range(WARD_STARTS)]
    found = [lloyd(points, weights, start, FINAL_STEPS) for start in starts]
    found.append(weighted_kmeans(points, weights, k, PLAIN_STARTS, rng, FINAL_STEPS))
    return min(found, key=lambda centers: weighted_loss(points, weights, centers))


def fill_up(points: GridArray, k: int, rng: np.random.Generator) -> GridArray:
    """The distinct points, and random ones where there are fewer than k."""
    distinct = np.unique(points, axis=0)[:k]
    return np.concatenate([distinct, to_grid(uniform_in_ball(k - len(distinct), points.shape[1], rng))])


def ward_start(points: GridArray, weights: FloatArray, k: int, rng: np.random.Generator) -> GridArray:
    """More centers than wanted, merged two by two until k are left."""
    seeds = min(SEEDS_PER_CENTER * k + EXTRA_SEEDS, len(points))
    many = weighted_kmeans(points, weights, seeds, 1, rng, SEED_STEPS)
    mass = np.bincount(nearest(points, many), weights=weights, minlength=seeds).astype(np.float64)
    return np.rint(ward(many[mass > 0].astype(np.float64), mass[mass > 0], k)).astype(np.int32)


def ward(centers: FloatArray, mass: FloatArray, k: int) -> FloatArray:
    """Merge the pair whose merger raises the loss least, ``w v / (w + v) |a - b|^2``, until k are left.

    SciPy's linkage knows no weights.

    Examples
    --------
    >>> ward(np.array([[0.0], [1.0], [9.0]]), np.array([3.0, 1.0, 1.0]), k=2).ravel().tolist()
    [0.25, 9.0]
    """
    centers, mass = centers.copy(), mass.copy()
    cost = squared_distances(centers, centers)
    cost *= mass[:, np.newaxis] * mass / (mass[:, np.newaxis] + mass)
    np.fill_diagonal(cost, np.inf)
    partner = cost.argmin(axis=1)  # every center's cheapest partner is kept, so that a merger costs O(m)
    lowest = cost.min(axis=1)
    alive = np.ones(len(centers), dtype=bool)
    for _ in range(len(centers) - k):
        a = int(lowest.argmin())
        b = int(partner[a])
        centers[a] = (mass[a] * centers[a] + mass[b] * centers[b]) / (mass[a] + mass[b])
        mass[a] += mass[b]
        alive[b] = False
        raised = ((centers - centers[a]) ** 2).sum(axis=1) * (mass * mass[a] / (mass + mass[a]))
        raised[~alive] = np.inf
        raised[a] = np.inf
        cost[a], cost[:, a] = raised, raised
        cost[b], cost[:, b] = np.inf, np.inf
        lost = np.flatnonzero(alive & ((partner == a) | (partner == b)))
        stale = np.union1d(lost, [a, b])
        closer = raised < lowest
        partner[closer], lowest[closer] = a, raised[closer]
        partner[stale], lowest[stale] = cost[stale].argmin(axis=1), cost[stale].min(axis=1)
    return centers[alive]

"""Selection: clean the noisy votes (end of Algorithm 2), then choose the survivors (Algorithm 1, line 5).

Everything here works on released values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pemeans.evolution.populate import uniform_in_ball
from pemeans.kernels.grid import GridArray, IntArray, to_grid
from pemeans.kernels.kmeans import weighted_kmeans
from pemeans.kernels.nearest import nearest

STARTS = 10
"""Starts of k-means++ for every selection, as in the paper's reference runs."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The survivors, and the votes that stand behind each."""

    centers: GridArray
    sizes: IntArray


Selector = Callable[[GridArray, IntArray, IntArray, int, np.random.Generator], Selection]


def keep_largest(votes: IntArray, total: int) -> IntArray:
    """Zero all but the smallest leading set of votes, in falling order, whose sum exceeds `total`.

    If no leading set does, all positive votes are kept.

    Examples
    --------
    >>> keep_largest(np.array([3, -2, 9, 1]), total=10)
    array([3, 0, 9, 0])
    """
    order = np.argsort(-votes, kind="stable")
    exceeds = np.cumsum(votes[order]) > total
    kept = int(exceeds.argmax()) + 1 if exceeds.any() else int((votes > 0).sum())
    cleaned = np.zeros_like(votes)
    cleaned[order[:kept]] = votes[order[:kept]]
    return cleaned


def signal_to_noise(cleaned: IntArray, sigma: float) -> float:
    """Squared length of the cleaned votes over that expected of the noise alone (Algorithm 1, line 7)."""
    if sigma == 0:
        return np.inf
    return float((cleaned.astype(np.float64) ** 2).sum() / (len(cleaned) * sigma**2))


def select_by_kmeans(
    population: GridArray, votes: IntArray, cleaned: IntArray, k: int, rng: np.random.Generator
) -> Selection:
    """The paper's choice: weighted k-means of the population, so that split votes still count together."""
    voted = cleaned > 0
    points, weights = population[voted], cleaned[voted]
    if not has_places(points, k):
        return select_top(population, votes, cleaned, k, rng)
    centers = weighted_kmeans(points, weights.astype(np.float64), k, STARTS, rng)
    if not has_places(centers, k):
        return select_top(population, votes, cleaned, k, rng)
    sizes = np.zeros(k, dtype=np.int64)
    np.add.at(sizes, nearest(points, centers), weights)
    return Selection(centers, sizes)


def has_places(points: GridArray, k: int) -> bool:
    """Whether there are at least k different points; mostly the first k are, and no others are looked at."""
    seen: set[bytes] = set()
    for point in points:
        if len(seen) >= k:
            break
        seen.add(point.tobytes())
    return len(seen) >= k


def select_top(
    population: GridArray, votes: IntArray, cleaned: IntArray, k: int, rng: np.random.Generator
) -> Selection:
    """The k candidates with the most votes: what earlier versions of Private Evolution do.

    Candidates at the same place count once. Where the population has fewer than k places, random points of
    the ball fill up.
    """
    order = np.argsort(-votes, kind="stable")
    _, first = np.unique(population[order], axis=0, return_index=True)
    chosen = order[np.sort(first)][:k]
    centers, sizes = population[chosen], cleaned[chosen]
    while len(centers) < k:
        extra = to_grid(uniform_in_ball(k - len(centers), population.shape[1], rng))
        centers = np.unique(np.concatenate([centers, extra]), axis=0)
        sizes = np.zeros(len(centers), dtype=np.int64)
    return Selection(centers, sizes)


SELECTORS: dict[str, Selector] = {"k-means": select_by_kmeans, "top-k": select_top}

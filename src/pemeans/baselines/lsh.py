"""LSH clustering (Chang & Kamath 2021, Google): k-means of a private coreset from a tree of hash prefixes.

(epsilon, delta)-DP. Signs of random projections give every row a code. A tree over the prefixes of the
codes branches where noisy counts are large; the noisy mean of the rows in each leaf, weighted by its noisy
count, is a point of the coreset. Put right here: exact noise on the integers in place of floating-point
Gaussians from a global generator, no exact labels, no exact loss, and one privacy account of all releases
together.

By default the number of rows is public, as in the paper: then the root of the tree costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pemeans.evolution.select import Selection
from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray, Projection, to_grid
from pemeans.kernels.kmeans import weighted_kmeans
from pemeans.kernels.nearest import nearest
from pemeans.privacy.composition import Event, PureEvent
from pemeans.privacy.curator import Curator
from pemeans.privacy.ranges import CodeRanges, RangeCounts, RangeSums

DEPTH = 20
"""Bits of a code: the tree is at most so deep."""
COUNT_NOISE = 20.0
"""The scale of the counts' noise, in multipliers of the sums' noise."""
BRANCHING = 3
"""A node branches with three times the count that it needs to be kept."""


@dataclass(frozen=True)
class Settings:
    """What LSH clustering needs to know beside the number of clusters."""

    private_root: bool = False
    """Whether the number of rows is taken from a noisy count, as in Google's library."""
    n_init: int = 10
    """Starts of the final k-means, which cost no privacy: scikit-learn's default at the library's time. The
    paper's figures are those of a single start, the default since."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of the tree at one depth: their prefixes, rising, and their noisy counts."""

    depth: int
    prefixes: IntArray
    counts: IntArray

    def where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Nodes:
        """Some of the nodes."""
        return Nodes(self.depth, self.prefixes[chosen], self.counts[chosen])

    @property
    def starts(self) -> IntArray:
        """The first code with each prefix."""
        return self.prefixes << (DEPTH - self.depth)

    @property
    def stops(self) -> IntArray:
        """The code after the last one with each prefix."""
        return (self.prefixes + 1) << (DEPTH - self.depth)


def lsh_kmeans(curator: Curator, n_clusters: int, settings: Settings, rng: np.random.Generator) -> Selection:
    """Tree, coreset, k-means; for the whole budget.

    With fewer leaves than clusters the remaining centers are copies of the first.
    """
    hashes = Projection(directions(curator.n_features, rng))
    noise = noise_multiplier(curator, settings)
    leaves = grow(curator, hashes, n_clusters, noise, settings)
    order = np.argsort(np.concatenate([nodes.starts for nodes in leaves]))
    starts, stops, counts = (
        np.concatenate([getattr(nodes, name) for nodes in leaves])[order]
        for name in ("starts", "stops", "counts")
    )
    sums = curator.release_gaussian("leaf sums", RangeSums(CodeRanges(hashes, starts, stops)), noise)
    points = to_grid(sums.values / counts[:, np.newaxis] / GRID_UNIT)
    return cluster(points, counts, n_clusters, settings.n_init, rng)


def directions(
    dimensions: int, rng: np.random.Generator
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Uniform directions; the sign of a projection does not mind that they have length one."""
    normals = rng.standard_normal((DEPTH, dimensions))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


def noise_multiplier(curator: Curator, settings: Settings) -> float:
    """The least noise for one release of sums, and one of counts for every depth with noise 20 times that."""
    counted = DEPTH + settings.private_root

    def events(noise: float) -> Sequence[Event | PureEvent]:
        return [Event(noise * GRID_UNIT, GRID_UNIT), PureEvent(1 / (COUNT_NOISE * noise), counted)]

    return curator.smallest_multiplier(events)


def grow(
    curator: Curator, hashes: Projection, n_clusters: int, noise: float, settings: Settings
) -> list[Nodes]:
    """The leaves of the tree, by depth: kept nodes without a kept child. Rows elsewhere are lost."""
    root = RangeCounts(CodeRanges(hashes, np.array([0]), np.array([1 << DEPTH])))
    total = curator.n_rows
    if settings.private_root:
        total = int(curator.release_laplace("root", root, COUNT_NOISE * noise).values[0])
    least = least_count(total, curator.n_features, n_clusters, noise)
    level = Nodes(0, np.array([0]), np.array([max(total, 1)]))
    leaves = []
    while level.depth < DEPTH:
        branching = level.prefixes[level.counts >= BRANCHING * least]
        if not len(branching):
            break
        prefixes = np.add.outer(2 * branching, [0, 1]).ravel()
        unseen = Nodes(level.depth + 1, prefixes, np.zeros_like(prefixes))
        asked = RangeCounts(CodeRanges(hashes, unseen.starts, unseen.stops))
        counts = curator.release_laplace("tree counts", asked, COUNT_NOISE * noise).values
        children = Nodes(unseen.depth, prefixes, counts).where(counts >= least)
        leaves.append(level.where(~np.isin(level.prefixes, children.prefixes >> 1)))
        level = children
    return [*leaves, level]


def least_count(total: int, dimensions: int, n_clusters: int, noise: float) -> int:
    """The noisy count that a node needs: ten times the noise of a mean, or half a cluster if that is less.

    Examples
    --------
    >>> least_count(total=20000, dimensions=16, n_clusters=26, noise=3.7), least_count(-5, 2, 3, 1.0)
    (148, 1)
    """
    return max(1, min(int(10 * sqrt(dimensions) * noise), total // (2 * n_clusters)))


def cluster(points: GridArray, weights: IntArray, k: int, starts: int, rng: np.random.Generator) -> Selection:
    """Weighted k-means of the coreset, filled up to k centers."""
    found = weighted_kmeans(points, weights.astype(np.float64), min(k, len(points)), starts, rng)
    sizes = np.bincount(nearest(points, found), weights=weights, minlength=k).astype(np.int64)
    return Selection(np.concatenate([found, np.repeat(found[:1], k - len(found), axis=0)]), sizes)

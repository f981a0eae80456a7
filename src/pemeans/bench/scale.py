"""Random clusters with a set degree of separation: the paper's ``scale`` data for any k, d and seed.

After W. Qiu and H. Joe, "Generation of random clusters with specified degree of separation" (Journal of
Classification 23, 2006), which their R package clusterGeneration implements, with the settings of A. Diaa,
T. Humphries and F. Kerschbaum ("FastLloyd", 2025): covariances with random axes and eigenvalues uniform on
[1, 10]; centers on the corners of stacked regular simplexes; every cluster as far from its nearest neighbor
as a separation index says that is uniform on [0.16, 0.26]; sizes in the ratio 1:2:...:k; up to 100 outliers.
Our own code, written from the published description: the same kind of data, not the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import ortho_group

from pemeans.bench.separation import Pairs, ratio_of
from pemeans.kernels.grid import FloatArray, IntArray

ROWS = 10_000
LEAST_SEPARATION, MOST_SEPARATION = 0.16, 0.26
MOST_OUTLIERS = 100
SMALLEST_EIGENVALUE, LARGEST_EIGENVALUE = 1.0, 10.0
OUTLIER_REACH = 4.0
"""Outliers are uniform within so many standard deviations of the mean, coordinate by coordinate."""
OUTLIER = -1
"""The label of outliers."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Normal clusters: centers, covariances, and the separation of each from its nearest neighbor."""

    centers: FloatArray
    covariances: FloatArray
    separation: float


def make_scale(k: int, d: int, seed: int) -> tuple[FloatArray, IntArray]:
    """About 10,000 rows in k clusters in random order, and their labels, -1 for outliers.

    Examples
    --------
    >>> X, y = make_scale(k=4, d=4, seed=0)
    >>> X.shape[1], int(y.max())
    (4, 3)
    """
    rng = np.random.default_rng([k, d, seed])
    outliers = int(rng.integers(0, MOST_OUTLIERS + 1))
    clusters = make_clusters(k, d, float(rng.uniform(LEAST_SEPARATION, MOST_SEPARATION)), rng)
    labels = np.repeat(np.arange(k), cluster_sizes(k, outliers))
    rows = clusters.centers[labels]
    for j, covariance in enumerate(clusters.covariances):
        mine = labels == j
        rows[mine] += rng.standard_normal((mine.sum(), d)) @ np.linalg.cholesky(covariance).T
    mean, reach = rows.mean(axis=0), OUTLIER_REACH * rows.std(axis=0)
    rows = np.concatenate([rows, rng.uniform(mean - reach, mean + reach, size=(outliers, d))])
    labels = np.concatenate([labels, np.full(outliers, OUTLIER)])
    order = rng.permutation(len(rows))
    return rows[order], labels[order]


def cluster_sizes(k: int, outliers: int) -> IntArray:
    """Sizes in the ratio 1:2:...:k of 10,000, each reduced in proportion to leave room for the outliers.

    Rounding may leave a few rows more or less than 10,000, as in the published data.

    Examples
    --------
    >>> cluster_sizes(4, outliers=65).tolist()
    [994, 1987, 2980, 3974]
    """
    sizes = np.rint(ROWS * np.arange(1, k + 1) / (k * (k + 1) / 2)).astype(np.int64)
    sizes[-1] += ROWS - sizes.sum()
    return np.asarray(sizes - np.rint(outliers * sizes / ROWS).astype(np.int64))


def make_clusters(k: int, d: int, separation: float, rng: np.random.Generator) -> Clusters:
    """Clusters each of which is that far from its nearest neighbor, by the separation index.

    The closest pair sets the scale of the centers. Then every cluster that is lonelier than that is inflated
    until it is as close to its nearest neighbor; no pair comes closer by that, so one pass does.
    """
    corners = stacked_simplexes(k, d) @ random_rotation(d, rng)
    covariances = np.array([random_covariance(d, rng) for _ in range(k)])
    if k > 1:
        pairs = Pairs(corners, covariances)
        wanted = ratio_of(separation)
        edge = wanted / pairs.ratios().min()
        corners = edge * corners
        for j in range(k):
            covariances[j] *= pairs.inflate(j, wanted / edge) ** 2
    return Clusters(corners, covariances, separation)


def stacked_simplexes(k: int, d: int) -> FloatArray:
    """So many corners of regular simplexes of edge 1, each simplex the one before, shifted by an edge.

    Examples
    --------
    >>> corners = stacked_simplexes(3, 2)
    >>> gaps = corners[:, np.newaxis] - corners
    >>> np.sqrt((gaps**2).sum(axis=2)).round(6).tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    simplex = np.zeros((d + 1, d))
    for i in range(1, d + 1):
        simplex[i] = simplex[:i].mean(axis=0)
        simplex[i, i - 1] = np.sqrt(1 - ((simplex[i] - simplex[0]) ** 2).sum())
    # The first corner stays behind: its shifted copy is a corner already.
    levels = -(-(k - 1) // d)
    shift = simplex[1] - simplex[0]
    return np.concatenate([simplex[:1], *(simplex[1:] + i * shift for i in range(max(levels, 1)))])[:k]


def random_covariance(d: int, rng: np.random.Generator) -> FloatArray:
    """Eigenvalues uniform on [1, 10] along random axes."""
    axes = random_rotation(d, rng)
    return np.asarray((axes * rng.uniform(SMALLEST_EIGENVALUE, LARGEST_EIGENVALUE, d)) @ axes.T)


def random_rotation(d: int, rng: np.random.Generator) -> FloatArray:
    """A random orthogonal matrix."""
    return np.asarray(ortho_group.rvs(d, random_state=rng)) if d > 1 else np.ones((1, 1))

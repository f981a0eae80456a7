"""Private clustering in high dimensions (Balcan, Dick, Liang, Mou & Zhang 2017), "Icml17" in the paper.

Pure epsilon-DP: project to about log(n) / 2 dimensions, collect candidate centers from partitions into cubes,
search among them by private swaps, take noisy means in the rows' own space and do three noisy Lloyd steps.

The authors' MATLAB code is not private as it stands. The three repairs of the paper are in: the Lloyd
steps' part of the budget, a sensitivity in the exponent of each choice, and Laplace noise for the L1 norm
of a row. So are these:

- (a) Three partitions share the budget of candidates; there each took half of it. The account is for zeroing
  out one row, so that a partition costs one Laplace release a depth, and all of the budget is used.
- (b) Every partition starts with the whole cube; there its width, a global, was never restored.
- (c) Empty children of a cube get noise like all others; there they could not survive, which tells of
  emptiness.
- (d) Means are of noisy sums and noisy counts; there counts were exact.
- (e) Projected rows are pulled into the ball whose diameter the search takes for the largest distance.
- (f) Choices are by noisy minimum on integers (`pemeans.privacy.choice`); there weights of ``exp``
  overflowed.
- (g) The radius is the public domain's; there it was widened to fit the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from pemeans.baselines.box import Box, half_widths
from pemeans.evolution.select import Selection
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray, IntArray, Projection, to_grid
from pemeans.privacy.cubes import EXTRA_BITS, CubeCounts
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import NearestSums, NearestVotes
from pemeans.privacy.swaps import SetLosses, SwapLosses

FOR_CANDIDATES, FOR_SEARCH, FOR_MEANS, FOR_LLOYD = 2 / 3, 1 / 12, 1 / 6, 1 / 12
"""Shares of epsilon."""
PARTITIONS = 3
"""One of the cube as it is, two shifted ones."""
PLAIN_DIMENSIONS = 5
"""Rows of so few dimensions are not projected."""
MOST_ROUNDS = 20
"""Swaps of the search are as many as clusters, but no more."""
LLOYD_STEPS = 3
MOST_CANDIDATES = 4000
"""More candidates, which only a large epsilon brings, would make the search slow: some are drawn then."""
RHO = 0.225
"""As in `dplloyd`: centers are about ``2 rho`` radii from the middle."""


@dataclass(frozen=True)
class Settings:
    """What the method needs to know beside the number of clusters."""

    box: Box = 1.0
    """Half-widths of the box around the center of the domain, in units of its radius; the largest counts."""


def balcan_kmeans(
    curator: Curator, n_clusters: int, settings: Settings, rng: np.random.Generator
) -> Selection:
    """Project, partition, search, take means; for the whole of a budget with a delta of 0."""
    view = projection(curator, rng)
    found = candidates(curator, view, settings, rng)
    centers = search(curator, view, found, n_clusters, rng)
    means = noisy_means(curator, "first", centers, view, FOR_MEANS)
    for _ in range(LLOYD_STEPS):
        means = noisy_means(curator, "Lloyd", means.centers, None, FOR_LLOYD / LLOYD_STEPS)
    return means


def projection(curator: Curator, rng: np.random.Generator) -> Projection | None:
    """``x -> G x / sqrt(p)`` with standard normal G to ``log(n) / 2`` dimensions; none for few features."""
    d = curator.n_features
    if d <= PLAIN_DIMENSIONS:
        return None
    p = max(1, int(0.5 * log(curator.n_rows)))
    return Projection(rng.standard_normal((p, d)) / sqrt(p))


def candidates(
    curator: Curator, view: Projection | None, settings: Settings, rng: np.random.Generator
) -> GridArray:
    """Centers of cubes with many rows, from one partition that is centered and two that are shifted."""
    p = curator.n_features if view is None else len(view.matrix)
    half = ceil(half_widths(settings.box, curator.n_features).max() * GRID_UNIT)
    shifts = [np.zeros(p, dtype=np.int64)]
    shifts += [rng.integers(-half, half, size=p, endpoint=True) for _ in range(PARTITIONS - 1)]
    share = FOR_CANDIDATES / PARTITIONS
    points = np.concatenate([partition(curator, view, half, shift, share) for shift in shifts])
    distinct = np.unique(to_grid(points), axis=0)
    if len(distinct) > MOST_CANDIDATES:
        distinct = distinct[rng.choice(len(distinct), MOST_CANDIDATES, replace=False)]
    return distinct


def partition(
    curator: Curator, view: Projection | None, half: int, shift: IntArray, share: float
) -> FloatArray:
    """Halve cubes in all dimensions while they have rows enough, ``log n`` deep; the centers of all cubes."""
    depths = min(max(1, ceil(log(curator.n_rows)) - 1), EXTRA_BITS)
    least = 2 * log(curator.n_rows) / (curator.epsilon * share / depths)
    directions = 2.0 * (np.arange(1 << len(shift))[:, np.newaxis] >> np.arange(len(shift)) & 1) - 1
    centers = np.zeros((1, len(shift)))
    collected = [centers]
    kept: list[IntArray] = []
    for depth in range(1, depths + 1):
        asked = CubeCounts(half, shift, tuple(kept), view)
        counts = curator.release_pure("cubes", asked, share / depths).values
        parents, children = np.nonzero(counts > least)
        if not len(parents):
            break
        numbers = np.full(counts.shape, -1, dtype=np.int64)
        numbers[parents, children] = np.arange(len(parents))
        kept.append(numbers)
        centers = centers[parents] + half / 2**depth * directions[children]
        collected.append(centers)
    return np.asarray((np.concatenate(collected) - shift) / GRID_UNIT)


def search(
    curator: Curator, view: Projection | None, found: GridArray, k: int, rng: np.random.Generator
) -> GridArray:
    """Start anywhere, swap one center for one candidate at a time, keep the best set on the way."""
    rounds = min(k, MOST_ROUNDS)
    share = FOR_SEARCH / (rounds + 1)
    centers = found[rng.integers(len(found), size=k)]
    sets = []
    for _ in range(rounds):
        swap = curator.choose("swap", SwapLosses(centers, found, view), share)
        centers = centers.copy()
        centers[swap // len(found)] = found[swap % len(found)]
        sets.append(centers)
    return sets[curator.choose("best of swaps", SetLosses(np.stack(sets), view), share)]


def noisy_means(
    curator: Curator, name: str, centers: GridArray, view: Projection | None, share: float
) -> Selection:
    """Noisy sum over noisy count of the rows nearest to each center, pulled into the ball."""
    ratio = count_weight(curator.n_features)
    for_counts = share * ratio / (1 + ratio)
    counts = curator.release_pure(f"{name} counts", NearestVotes(centers, view), for_counts).values
    sums = curator.release_pure(f"{name} sums", NearestSums(centers, view), share - for_counts).values
    sizes = np.maximum(counts, 1)
    return Selection(to_grid(sums / sizes[:, np.newaxis] / GRID_UNIT), sizes)


def count_weight(d: int) -> float:
    """The budget of a count over that of a sum: ``(2 rho / d)^(2/3)``.

    With budgets e and s the noise moves a center by ``2 d^2 / s^2 + 2 (2 rho)^2 / e^2`` in the mean square,
    in units of radius over size, because a row of the ball has an L1 length of up to ``sqrt(d)``.
    """
    return float((2 * RHO / d) ** (2 / 3))

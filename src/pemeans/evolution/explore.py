"""Vote rounds in the subspace that keep many more candidates alive than there are clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pemeans.evolution.select import keep_largest, signal_to_noise
from pemeans.evolution.subspace import Subspace
from pemeans.kernels.grid import FloatArray, GridArray, IntArray, to_float, to_grid
from pemeans.kernels.kmeans import weighted_kmeans
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import NearestVotes

POPULATION = 1500
"""Candidates in a vote, where n/8 or 2k does not say otherwise: the cost stays linear in n."""
REMEMBERED = 2
"""Populations whose votes make up the coreset."""
FAR = 8
"""Every eighth of the first candidates is far out."""
SURVIVORS_PER_CLUSTER, SURVIVING_PART = 6, 0.6
"""At most 6 k survivors, and at most 60 % of the candidates with votes."""
SELECTION_STEPS = 25
WIDEST, NARROWEST = 0.4, 0.12
"""Spread of the variations in the first and in the last round, in expected cluster radii."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted points: a small stand-in for the rows."""

    points: GridArray
    weights: FloatArray

    def __add__(self, other: Cloud) -> Cloud:
        return Cloud(np.vstack([self.points, other.points]), np.concatenate([self.weights, other.weights]))


@dataclass(frozen=True, eq=False)
class Votes:
    """A population and the noisy votes for it, before and after the clean-up."""

    population: GridArray
    noisy: IntArray
    cleaned: IntArray
    sigma: float

    @property
    def cloud(self) -> Cloud:
        """The candidates that kept votes."""
        kept = self.cleaned > 0
        return Cloud(self.population[kept], self.cleaned[kept].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Coreset:
    """The latest populations with their votes, the last one last; every row has voted once in each."""

    populations: tuple[Votes, ...]

    @property
    def last(self) -> Votes:
        return self.populations[-1]

    @property
    def cloud(self) -> Cloud:
        """The candidates of all populations that kept votes."""
        first, *others = (votes.cloud for votes in self.populations)
        return sum(others, first)


def explore(
    curator: Curator,
    space: Subspace,
    k: int,
    rounds: int,
    share: float,
    rng: np.random.Generator,
    watch: Callable[[int], None],
) -> Coreset:
    """So many votes, each for `share` of the budget; what is left of the last two is the coreset."""
    n = curator.n_rows
    size = max(2 * k, min(max(n // 8, 4 * k), max(POPULATION, 2 * k)))
    population = start(size, space.variances, rng)
    spreads = np.outer(np.geomspace(WIDEST, NARROWEST, max(rounds - 1, 1)), space.cluster_spread(k))
    core: Coreset | None = None
    for number in range(rounds):
        answer = curator.release("votes", NearestVotes(population, space.view), share)
        cleaned = keep_largest(answer.values, n)
        if signal_to_noise(cleaned, answer.sigma) < 1:
            size = max(size // 2, 4 * k)
        last = Votes(population, answer.values, cleaned, answer.sigma)
        core = Coreset(((core.populations if core else ()) + (last,))[-REMEMBERED:])
        watch(number + 1)
        cloud = core.cloud
        if number < rounds - 1 and len(cloud.points):
            population = next_population(cloud, k, size, spreads[number], rng)
    assert core is not None
    return core


def start(size: int, variances: FloatArray, rng: np.random.Generator) -> GridArray:
    """Gaussian draws as wide as the rows; some of them farther out, at any scale up to the frame's edge.

    A small clump many standard deviations out has no candidate near it otherwise, and would never get one.
    """
    draws = rng.standard_normal((size, len(variances))) * np.sqrt(variances)
    edge = max(1.0, 1 / float(np.sqrt(variances.sum())))
    far = draws[::FAR]
    far *= edge ** rng.random((len(far), 1))
    return to_grid(draws)


def next_population(
    cloud: Cloud, k: int, size: int, spread: FloatArray, rng: np.random.Generator
) -> GridArray:
    """Survivors of the coreset, several for every cluster wanted, and Gaussian variations of each."""
    there = len(cloud.points)
    wanted = min(SURVIVORS_PER_CLUSTER * k, max(k, int(SURVIVING_PART * there)), there)
    survivors = weighted_kmeans(cloud.points, cloud.weights, wanted, 1, rng, SELECTION_STEPS)
    copies = np.repeat(to_float(survivors), max(size // wanted, 2), axis=0)
    children = to_grid(copies + spread * rng.standard_normal(copies.shape))
    return np.concatenate([survivors, children])

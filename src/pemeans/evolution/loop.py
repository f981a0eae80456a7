"""Algorithm 1 of the paper: PE-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, sqrt

import numpy as np

from pemeans.evolution.populate import populate
from pemeans.evolution.select import SELECTORS, Selection, keep_largest, signal_to_noise
from pemeans.evolution.vary import vary
from pemeans.kernels.grid import GridArray, IntArray, Projection
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import NearestVotes

LEAST_VARIATIONS = 4
"""L is never halved below 4, nor chosen below it."""
LEAST_SIGNAL = 1.0
"""Below this ratio of signal to noise the population is halved (Algorithm 1, line 7)."""


@dataclass(frozen=True)
class Settings:
    """What steers the evolution; all of it public.

    None stands for the paper's rule, which looks at n, d, k and epsilon only.
    """

    n_clusters: int
    n_iterations: int | None = None
    n_variations: int | None = None
    variation_scale: float = 0.01
    levy_index: float = 1.75
    selection: str = "k-means"
    max_candidates: int = 1 << 14

    def iterations(self, dimensions: int, epsilon: float) -> int:
        """T: ``4 sqrt(d)``, times epsilon where that is above 1 (section 4.3)."""
        if self.n_iterations is not None:
            return self.n_iterations
        growth = max(epsilon, 1.0) if np.isfinite(epsilon) else 1.0
        return max(floor(4 * sqrt(dimensions) * growth), 1)

    def variations(self, n_rows: int) -> int:
        """L: a fifth of the rows shared out among the clusters, capped so that the vote stays linear in n."""
        if self.n_variations is not None:
            return self.n_variations
        cap = self.max_candidates // self.n_clusters - 1
        return max(min(n_rows // (5 * self.n_clusters), cap), LEAST_VARIATIONS)


@dataclass(frozen=True, eq=False)
class Iteration:
    """One round of the evolution, for whoever watches: released values only, in grid units."""

    number: int
    of: int
    population: GridArray
    votes: IntArray
    survivors: Selection


Watcher = Callable[[Iteration], None]


def pe_means(
    curator: Curator, settings: Settings, rng: np.random.Generator, watch: Watcher | None = None
) -> Selection:
    """Evolve k centers in the unit ball of the rows' own space, for the whole budget."""
    d = curator.n_features
    iterations = settings.iterations(d, curator.epsilon)
    return evolve(curator, settings, d, iterations, 1 / iterations, rng, watch=watch)


def evolve(
    curator: Curator,
    settings: Settings,
    dimensions: int,
    iterations: int,
    share: float,
    rng: np.random.Generator,
    view: Projection | None = None,
    watch: Watcher | None = None,
) -> Selection:
    """Algorithm 1: so many rounds, each for `share` of the budget, on the rows as seen through `view`.

    Returns
    -------
    Selection
        The centers selected in the last round, on the grid of the view.
    """
    k = settings.n_clusters
    variations = settings.variations(curator.n_rows)
    select = SELECTORS[settings.selection]
    population = populate(k * (variations + 1), dimensions, rng)
    for number in range(1, iterations + 1):
        votes = curator.release("votes", NearestVotes(population, view), share)
        cleaned = keep_largest(votes.values, curator.n_rows)
        survivors = select(population, votes.values, cleaned, k, rng)
        if watch is not None:
            watch(Iteration(number, iterations, population, votes.values, survivors))
        if signal_to_noise(cleaned, votes.sigma) < LEAST_SIGNAL:
            variations = max(variations // 2, min(variations, LEAST_VARIATIONS))
        if number < iterations:
            children = vary(survivors.centers, variations, settings.variation_scale, settings.levy_index, rng)
            population = np.concatenate([survivors.centers, children])
    return survivors

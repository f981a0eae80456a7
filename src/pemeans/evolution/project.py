"""Algorithm 3 of the paper: HDPE-means, evolution in a random projection and one noisy mean to lift it."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pemeans.evolution.loop import Settings, Watcher, evolve, pe_means
from pemeans.evolution.select import Selection
from pemeans.kernels.grid import GRID_UNIT, Projection, to_grid
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import NearestSums, NearestVotes

PROJECTED = 16
"""The paper's p: data of more dimensions is projected to 16."""
LIFT_RELEASES = 2
"""The sums and the counts of the lift take the place of two iterations."""


def hdpe_means(
    curator: Curator, settings: Settings, rng: np.random.Generator, watch: Watcher | None = None
) -> Selection:
    """Evolve in R^16 with all but two of the iterations, then lift the centers by one noisy mean each."""
    if curator.n_features <= PROJECTED:
        return pe_means(curator, settings, rng, watch)
    iterations = max(settings.iterations(PROJECTED, curator.epsilon), LIFT_RELEASES + 1)
    share = 1 / iterations
    view = random_projection(curator.n_features, rng)
    found = evolve(curator, settings, PROJECTED, iterations - LIFT_RELEASES, share, rng, view, watch)
    return lift(curator, found, view, share)


def random_projection(dimensions: int, rng: np.random.Generator) -> Projection:
    """``x -> G x / sqrt(p)`` with standard normal G, drawn anew for every fit; keeps lengths on average."""
    return Projection(rng.standard_normal((PROJECTED, dimensions)) / sqrt(PROJECTED))


def lift(curator: Curator, found: Selection, view: Projection, share: float) -> Selection:
    """Noisy sum over noisy count of the rows nearest to each projected center, pulled into the ball.

    Every cluster yields a center, whether or not any row is in it: nothing looks at exact counts.
    """
    sums = curator.release("lifted sums", NearestSums(found.centers, view), share).values
    counts = curator.release("lifted counts", NearestVotes(found.centers, view), share).values
    sizes = np.maximum(counts, 1)
    return Selection(to_grid(sums / sizes[:, np.newaxis] / GRID_UNIT), sizes)

"""DPKMeans: evolution finds where the clusters are, small residual sums then say it exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.evidence import believed
from pemeans.evolution.explore import Cloud, Coreset, explore
from pemeans.evolution.frame import find_frame
from pemeans.evolution.plan import plan
from pemeans.evolution.refine import refine
from pemeans.evolution.select import Selection
from pemeans.evolution.sizes import sizes_from_votes
from pemeans.evolution.strays import find_strays
from pemeans.evolution.subspace import Subspace, find_subspace
from pemeans.kernels.grid import GridArray, to_float, to_grid
from pemeans.privacy.curator import Curator

Report = Callable[[int, int, GridArray | None], None]
"""Called after every step with its number, their number, and the centers where there are any."""


def dp_kmeans(curator: Curator, k: int, rng: np.random.Generator, report: Report) -> Selection:
    """All of DPKMeans: frame, second moment, votes, centers, refinement."""
    todo = plan(curator.n_rows, curator.n_features, k, curator.mu)
    of = todo.rounds + todo.steps
    frame = find_frame(curator, todo.mean_share, todo.spread_share)
    curator = curator.framed(frame)
    space = find_subspace(curator, todo.dimensions, todo.moment_share)
    share = todo.vote_share / todo.rounds
    core = explore(curator, space, k, todo.rounds, share, rng, lambda number: report(number, of, None))
    found = settle_with_strays(curator, core, k, space, todo.stray_share, rng)
    sizes = sizes_from_votes(core.last, found, curator.n_rows)
    centers = to_float(found) @ space.view_basis.T
    for number, state in enumerate(refine(curator, centers, space.basis, sizes, todo), todo.rounds + 1):
        centers, sizes = state
        report(number, of, to_grid(frame.to_domain(centers)))
    return Selection(to_grid(frame.to_domain(centers)), np.rint(sizes.values).astype(np.int64))


def settle_with_strays(
    curator: Curator, core: Coreset, k: int, space: Subspace, share: float, rng: np.random.Generator
) -> GridArray:
    """The best centers for the coreset, and for outliers where there is evidence of any."""
    cloud = believed(core, k, rng)
    found = settle(cloud, k, rng)
    strays = find_strays(curator, found, space, share, rng) if share else None
    if strays is None:
        return found
    every_vote = Cloud(strays.points, len(core.populations) * strays.weights)
    return settle(cloud + every_vote, k, rng)

"""DPKMeans: evolution finds where the clusters are, small residual sums then say it exactly."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.explore import explore
from pemeans.evolution.frame import find_frame
from pemeans.evolution.refine import refine
from pemeans.evolution.select import Selection
from pemeans.evolution.sizes import sizes_from_votes
from pemeans.evolution.strays import with_strays
from pemeans.evolution.subspace import find_subspace
from pemeans.kernels.grid import to_float, to_grid
from pemeans.privacy.curator import Curator

SUBSPACE = 12
"""Dimensions in which the votes are cast."""

ENOUGH_FOR_STRAYS = 1500
"""Below this n mu outliers can't be told from noise; in many dimensions they can't be covered."""


@dataclass(frozen=True)
class Plan:
    """How the budget is shared out; a function of public facts alone."""

    dimensions: int
    frame_share: float
    moment_share: float
    stray_share: float
    histogram_share: float
    vote_share: float
    rounds: int
    steps: int

    @property
    def refine_share(self) -> float:
        """What is left for the residual sums."""
        spent = self.frame_share + self.moment_share + self.stray_share + self.histogram_share
        return 1 - spent - self.vote_share


def plan(n: int, d: int, k: int, mu: float) -> Plan:
    """Shares, vote rounds and refinement steps for data of this public size."""
    relative_noise = k**2 * d / (n * mu) ** 2
    votes = 0.4
    if d > SUBSPACE:
        votes = min(max(0.45 - 0.25 * log(max(relative_noise, 1e-300) / 0.002) / log(25), 0.2), 0.45)
    rounds = round(min(max(votes * (mu * n / (4 * k)) ** 2, 3), 14))
    steps = min(max(round(k * d / 16), 3), 8)
    frame = float(np.clip((25 / (n * mu)) ** 2, 0.02, 0.15))
    strays = 0.035 if d <= SUBSPACE and n * mu > ENOUGH_FOR_STRAYS else 0.0
    return Plan(min(d, SUBSPACE), frame, 0.06, strays, 0.03, votes, rounds, steps)


def dp_kmeans(curator: Curator, n_clusters: int, rng: np.random.Generator) -> Selection:
    """All of DPKMeans: second moment, votes, centers, refinement."""
    k = n_clusters
    todo = plan(curator.n_rows, curator.n_features, k, curator.mu)
    frame = find_frame(curator, todo.frame_share / 2, todo.frame_share / 2)
    curator = curator.framed(frame)
    space = find_subspace(curator, todo.dimensions, todo.moment_share)
    core = explore(curator, space, k, todo.rounds, todo.vote_share / todo.rounds, rng)
    found = settle(core, k, rng)
    basis = space.basis[:, : todo.dimensions]
    if todo.stray_share:
        completed = with_strays(curator, core, found, basis, todo.stray_share, rng)
        found = found if completed is None else settle(completed, k, rng)
    sizes = sizes_from_votes(core.last, found, curator.n_rows)
    lifted = to_float(found) @ basis.T
    centers, sizes = refine(
        curator,
        lifted,
        space.basis,
        sizes,
        todo.steps,
        todo.histogram_share,
        todo.refine_share,
        todo.dimensions,
    )
    return Selection(to_grid(frame.to_domain(centers)), np.rint(sizes.values).astype(np.int64))

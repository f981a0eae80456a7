"""DPKMeans: evolution finds where the clusters are, small residual sums then say it exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from pemeans.evolution.agglomerate import settle
from pemeans.evolution.explore import Coreset, explore
from pemeans.evolution.frame import find_frame
from pemeans.evolution.refine import refine
from pemeans.evolution.select import Selection
from pemeans.evolution.sizes import sizes_from_votes
from pemeans.evolution.strays import with_strays
from pemeans.evolution.subspace import find_subspace
from pemeans.kernels.grid import FloatArray, GridArray, to_float, to_grid
from pemeans.privacy.curator import Curator

ROUND_SNR, LEAST_ROUNDS, MOST_ROUNDS = 4.0, 3, 14
MOST_STEPS = 8
LOWD_VOTES, LEAST_VOTES, HIST, STEPS_PER = 0.4, .2, .03, 8
SUBSPACE = 12
"""Dimensions in which the votes are cast."""

Report = Callable[[int, int, GridArray | None], None]
"""Called after every step with its number, their number, and the centers where there are any."""
SPREAD_PART = 0.75
"""The part of the frame's share that looks for far rows: what it overlooks is lost."""
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
    votes = LOWD_VOTES
    if d > SUBSPACE:
        votes = min(max(0.45 - 0.25 * log(max(relative_noise, 1e-300) / 0.002) / log(25), LEAST_VOTES), 0.45)
    rounds = round(min(max(votes * (mu * n / (ROUND_SNR * k)) ** 2, LEAST_ROUNDS), MOST_ROUNDS))
    steps = min(max(round(k * d / STEPS_PER), 4), MOST_STEPS)
    frame = float(np.clip((25 / (n * mu)) ** 2, 0.04, 0.15))
    strays = 0.06 if d <= SUBSPACE and n * mu > ENOUGH_FOR_STRAYS else 0.0
    return Plan(min(d, SUBSPACE), frame, 0.04, strays, HIST, votes, rounds, steps)


def dp_kmeans(curator: Curator, k: int, rng: np.random.Generator, report: Report) -> Selection:
    """All of DPKMeans: frame, second moment, votes, centers, refinement."""
    todo = plan(curator.n_rows, curator.n_features, k, curator.mu)
    of = todo.rounds + todo.steps
    frame = find_frame(curator, (1 - SPREAD_PART) * todo.frame_share, SPREAD_PART * todo.frame_share)
    curator = curator.framed(frame)
    space = find_subspace(curator, todo.dimensions, todo.moment_share)
    vote_share = todo.vote_share / todo.rounds
    core = explore(
        curator, space, k, todo.rounds, vote_share, rng, watch=lambda number: report(number, of, None)
    )
    found = settle_with_strays(curator, core, k, space.view_basis, todo.stray_share, rng)
    sizes = sizes_from_votes(core.last, found, curator.n_rows)
    centers = to_float(found) @ space.view_basis.T
    steps = refine(
        curator,
        centers,
        space.basis,
        sizes,
        todo.steps,
        todo.histogram_share,
        todo.refine_share,
        todo.dimensions,
    )
    for number, state in enumerate(steps, start=todo.rounds + 1):
        centers, sizes = state
        report(number, of, to_grid(frame.to_domain(centers)))
    return Selection(to_grid(frame.to_domain(centers)), np.rint(sizes.values).astype(np.int64))


def settle_with_strays(
    curator: Curator, core: Coreset, k: int, basis: FloatArray, share: float, rng: np.random.Generator
) -> GridArray:
    """The best centers for the coreset, and for outliers where there is evidence of any."""
    found = settle(core, k, rng)
    if share == 0:
        return found
    completed = with_strays(curator, core, found, basis, share, rng)
    return found if completed is None else settle(completed, k, rng)

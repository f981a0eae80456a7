"""How DPKMeans shares out its budget: a function of public facts alone.

What decides is the relative noise of sums, ``nu^2 = k^2 d / (n mu)^2``: the squared length of the noise on
the mean of one cluster, if the whole budget went into one release of all clusters' sums, in squared radii.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

VOTE_DIMENSIONS = 12
"""Votes are cast in at most so many dimensions: a few random ones tell clusters apart as well as all do."""
MOMENT_SHARE, DISTANCE_SHARE = 0.04, 0.03

LEAST_FRAME, MOST_FRAME, SURE_FRAME = 0.04, 0.15, 25.0
"""The frame's share grows from 4 % to 15 % where n mu is small: a wrong frame spoils all that follows."""
SPREAD_PART = 0.75
"""The part of the frame's share that looks for far rows: what it overlooks is lost."""

STRAY_SHARE, ENOUGH_FOR_STRAYS = 0.1, 1500
"""Below this n mu outliers can't be told from noise; in many dimensions they can't be covered."""

VOTES, LEAST_VOTES, MOST_VOTES = 0.4, 0.2, 0.45
"""Votes take 40 %; in many dimensions less, the more the noise of the sums hurts."""
CHEAP, DEAR = 0.002, 0.05
"""Relative noise from which on votes take less, and at which they take the least."""
ROUND_SIGNAL, LEAST_ROUNDS, MOST_ROUNDS = 4.0, 3, 14
"""So many rounds that a cluster of the mean size is four standard deviations of noise in every vote."""
NEEDED_ROUNDS, NEEDED_VOTES = 10, 0.35
"""Clusters that ten rounds can't find are not worth refining: up to 35 % goes into that many rounds."""

STEPS, MOST_STEPS, ENOUGH_SIGNAL = 8, 16, 0.1
"""Steps of refinement; up to twice as many where the relative noise is below a tenth."""
FEWEST_STEPS, NUMBERS_A_STEP = 4, 8
"""Where all centers together have few coordinates there is little to refine: one step for every eight."""


@dataclass(frozen=True)
class Plan:
    """Shares of the budget, numbers of releases, and the dimensions of the votes."""

    dimensions: int
    mean_share: float
    spread_share: float
    moment_share: float
    stray_share: float
    vote_share: float
    distance_share: float
    rounds: int
    steps: int

    @property
    def residual_share(self) -> float:
        """What is left for the residual sums."""
        found = self.mean_share + self.spread_share + self.moment_share + self.stray_share
        return 1 - found - self.vote_share - self.distance_share


def plan(n: int, d: int, k: int, mu: float) -> Plan:
    """Shares, rounds and steps for data of this public size and this budget.

    Examples
    --------
    >>> plan(n=20_000, d=64, k=16, mu=0.2).rounds
    14
    """
    noise = max(k**2 * d / (n * mu) ** 2, 1e-300)
    many = d > VOTE_DIMENSIONS
    a_round = max((ROUND_SIGNAL * k / (n * mu)) ** 2, 1e-300)
    votes = max(_votes(noise), min(NEEDED_ROUNDS * a_round, NEEDED_VOTES)) if many else VOTES
    steps = _clip(STEPS * sqrt(ENOUGH_SIGNAL / noise), STEPS, MOST_STEPS)
    frame = _clip((SURE_FRAME / (n * mu)) ** 2, LEAST_FRAME, MOST_FRAME)
    return Plan(
        dimensions=min(d, VOTE_DIMENSIONS),
        mean_share=(1 - SPREAD_PART) * frame,
        spread_share=SPREAD_PART * frame,
        moment_share=MOMENT_SHARE,
        stray_share=0.0 if many or n * mu <= ENOUGH_FOR_STRAYS else STRAY_SHARE,
        vote_share=votes,
        distance_share=DISTANCE_SHARE,
        rounds=round(_clip(votes / a_round, LEAST_ROUNDS, MOST_ROUNDS)),
        steps=round(min(max(k * d / NUMBERS_A_STEP, FEWEST_STEPS), steps)),
    )


def _votes(noise: float) -> float:
    """From the most at `CHEAP` to the least at `DEAR`, on a logarithmic scale."""
    lost = (MOST_VOTES - LEAST_VOTES) * log(noise / CHEAP) / log(DEAR / CHEAP)
    return _clip(MOST_VOTES - lost, LEAST_VOTES, MOST_VOTES)


def _clip(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)

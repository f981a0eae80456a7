"""Curators for tests: one with rows, and one whose answers are written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.domain import Domain
from pemeans.evolution.explore import Votes
from pemeans.evolution.subspace import Subspace
from pemeans.kernels.grid import FloatArray, GridArray, Projection
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import Statistic
from pemeans.rows.memory import MemoryRows


def curator_of(rows: FloatArray, epsilon: float = 1.0, seed: int = 0) -> Curator:
    """Rows of the unit ball behind a curator with seeded noise."""
    domain = Domain.ball(1.0).bind(*rows.shape)
    ledger = Ledger(epsilon, len(rows) ** -1.1)
    noise = NoiseSampler(SeededBits(seed), ledger.tail_bits)
    return Curator(MemoryRows(rows, domain, 1), domain, ledger, noise)


def votes_for(points: GridArray, votes: npt.ArrayLike, sigma: float = 1.0) -> Votes:
    """A population that got these votes, all of which were kept."""
    numbers = np.asarray(votes, dtype=np.int64)
    return Votes(points, numbers, numbers, sigma)


def space_along_axes(variances: FloatArray) -> Subspace:
    """Rows that vary so much along each of their columns."""
    basis = np.eye(len(variances))
    return Subspace(basis, variances, Projection(basis))


@dataclass
class Scripted(Curator):
    """A curator that answers by a function of the question, or from a list, and keeps what it was asked."""

    n_rows: int
    n_features: int
    answers: Callable[[Statistic], npt.NDArray[Any]]
    sigma: float = 1.0
    its_mu: float = 1.0
    asked: list[tuple[str, Statistic, float]] = field(default_factory=list)

    @property
    def mu(self) -> float:
        return self.its_mu

    def release(self, name: str, statistic: Statistic, share: float) -> Answer:
        self.asked.append((name, statistic, share))
        return Answer(np.asarray(self.answers(statistic), dtype=np.int64), self.sigma)

"""A curator over rows of the unit ball, made as an estimator makes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.domain import Domain
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.rows.memory import MemoryRows

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]


@pytest.fixture
def curate() -> MakeCurator:
    """Rows, epsilon, delta and a seed of the noise to a curator."""

    def make(rows: Floats, epsilon: float, delta: float = 1e-5, seed: int = 0, n_jobs: int = 1) -> Curator:
        domain = Domain.ball(1.0).bind(*rows.shape)
        ledger = Ledger(epsilon, delta)
        private = MemoryRows(rows, domain, n_jobs)
        return Curator(private, domain, ledger, NoiseSampler(SeededBits(seed), ledger.tail_bits))

    return make


@pytest.fixture
def blobs() -> Callable[..., tuple[Floats, Floats]]:
    """Well separated balls of rows around known centers."""

    def make(n: int = 3000, d: int = 2, k: int = 4, seed: int = 0) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(seed)
        centers = rng.standard_normal((k, d))
        centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
        while k > 1 and min(np.linalg.norm(a - b) for i, a in enumerate(centers) for b in centers[:i]) < 0.5:
            centers = rng.standard_normal((k, d))
            centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
        return centers[np.arange(n) % k] + 0.03 / np.sqrt(d) * rng.standard_normal((n, d)), centers

    return make

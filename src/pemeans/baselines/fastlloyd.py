"""FastLloyd (Diaa, Humphries & Kerschbaum 2025): Lloyd steps by noisy residuals within a trusted distance.

(epsilon, delta)-DP, the variant with one client and Gaussian noise. Put right here, in comparison with the
authors' code as the paper ran it:

- The noise of counts and sums is independent, and new in every run; there one seed made them the same
  numbers.
- Residuals are relative to a center, so the sums' noise is for the trusted distance, or for the farthest
  that a row of the unit ball can be from the centers if that is less. The paper's runs bounded it by the
  data alone.
- Distances scale with the box of the data; there the box is [-1, 1] whatever the data, and so are all
  distances.
- The number of steps follows the authors' rule; the paper's runs always took six (``n_iterations=6``).
- Exact integers, no fixed-point centers left by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, sqrt

import numpy as np

from pemeans.baselines.box import Box, fold, half_widths, on_grid, pack
from pemeans.evolution.select import Selection
from pemeans.kernels.grid import GRID_UNIT, FloatArray
from pemeans.privacy.accounting import mu_of
from pemeans.privacy.curator import Curator
from pemeans.privacy.lloyd import TrustedCounts, TrustedSums

ALPHA = 0.8
"""How far centers are trusted to move, in distances between k well-spread centers."""
FEWEST_STEPS, MOST_STEPS = 2, 7


@dataclass(frozen=True)
class Settings:
    """What FastLloyd needs to know beside the number of clusters."""

    n_iterations: int | None = None
    """Steps; None for the authors' rule. The paper's runs took six."""
    box: Box = 1.0
    """Half-widths of the box around the center of the domain, in units of its radius."""


def fast_lloyd(curator: Curator, n_clusters: int, settings: Settings, rng: np.random.Generator) -> Selection:
    """So many steps from a well-spread start, each for an equal share of the budget."""
    d, k = curator.n_features, n_clusters
    half = half_widths(settings.box, d)
    diagonal = float(np.linalg.norm(half))
    steps = settings.n_iterations or iterations(curator.n_rows, d, k, curator.epsilon)
    for_sums = sqrt(4 * d) / (1 + sqrt(4 * d))
    centers = pack(k, half, rng)
    for step in range(steps):
        trust = diagonal if step == 0 else 2 * diagonal * shrinkage(k, d)
        asked, radius = on_grid(centers), int(trust * GRID_UNIT)
        sums = curator.release("residual sums", TrustedSums(asked, radius), for_sums / steps)
        counts = curator.release("counts", TrustedCounts(asked, radius), (1 - for_sums) / steps)
        sizes = np.maximum(counts.values, 1)
        moves = sums.values / GRID_UNIT / sizes[:, np.newaxis]
        centers = fold(centers + at_most(trust, moves), half)
    return Selection(on_grid(centers), sizes)


def shrinkage(k: int, d: int) -> float:
    """What a cluster takes of the box's half-diagonal, times alpha / 2.

    Examples
    --------
    >>> shrinkage(k=4, d=2)
    0.2
    """
    return float(ALPHA / (2 * k ** (1 / d)))


def iterations(n: int, d: int, k: int, epsilon: float) -> int:
    """The authors' rule: as many steps as keep the error of a center small; from 2 to 7.

    Examples
    --------
    >>> [iterations(25000, 2, 100, epsilon) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)]
    [2, 2, 3, 7, 7]
    """
    if not isfinite(epsilon):
        return MOST_STEPS
    mu = mu_of(epsilon, 1 / (n * log(n))) if n > 2 else 0.0
    reach = 2 * sqrt(d) * shrinkage(k, d)
    useful = 0.016 * (n * mu) ** 2 / (k**3 * reach**2 * (1 + sqrt(4 * d)) ** 2)
    return int(max(min(useful, MOST_STEPS), FEWEST_STEPS))


def at_most(length: float, moves: FloatArray) -> FloatArray:
    """Moves shortened to this length where they are longer."""
    norms = np.linalg.norm(moves, axis=1, keepdims=True)
    return np.asarray(moves * (length / np.maximum(norms, length)))

"""The scale and the main directions of the rows, from one noisy second moment."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from pemeans.kernels.grid import FloatArray, Projection
from pemeans.privacy.curator import Curator
from pemeans.privacy.statistics import DIAGONAL, MOMENT_BITS, OFF_DIAGONAL, SecondMoments

LEAST_VARIANCE = 1e-5
"""No direction is taken to vary less, in squared radii a row."""
NOISE_FLOOR = 0.1
"""Eigenvalues below this part of the noise's spectral norm say nothing."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """An orthonormal basis by falling variance, and the variances along its first directions."""

    basis: FloatArray
    variances: FloatArray
    view: Projection
    """The rows in the first directions; one object, so that the rows are projected once."""

    @property
    def view_basis(self) -> FloatArray:
        """The first directions, as columns."""
        return self.basis[:, : len(self.variances)]

    def cluster_spread(self, k: int) -> FloatArray:
        """The standard deviation of a cluster along each direction, if k clusters share the variance well.

        Reverse water-filling: k clusters buy log k nats, spent where the variance is above a common level,
        ``sum_j max(0, log(l_j / level)) / 2 = log k``. With equal variances l that is ``sqrt(l) k**(-1/p)``.
        """
        falling = np.sort(self.variances)[::-1]
        used = np.arange(1, len(falling) + 1)
        levels = np.exp((np.cumsum(np.log(falling)) - 2 * np.log(k)) / used)
        # The level is right for the largest number of directions that are all above it.
        level = levels[np.flatnonzero(falling >= levels).max(initial=0)]
        return np.asarray(np.sqrt(np.minimum(self.variances, level)))


def find_subspace(curator: Curator, dimensions: int, share: float) -> Subspace:
    """Principal directions of the noisy second moment; its noise floor keeps the variances honest."""
    d, n = curator.n_features, curator.n_rows
    answer = curator.release("second moment", SecondMoments(d), share)
    unit = float(1 << (2 * MOMENT_BITS))
    moments = np.zeros((d, d))
    upper = np.triu_indices(d)
    moments[upper] = answer.values / np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL) / unit
    moments = np.triu(moments) + np.triu(moments, 1).T
    eigenvalues, vectors = np.linalg.eigh(moments)
    noise = answer.sigma / (DIAGONAL * unit)
    floor = min(NOISE_FLOOR * sqrt(2 * d) * noise, n)
    falling = np.clip(eigenvalues[::-1][:dimensions], floor, n)
    variances = np.clip(falling / n, LEAST_VARIANCE, 1.0)
    basis = np.ascontiguousarray(vectors[:, ::-1])
    return Subspace(basis, variances, Projection(np.ascontiguousarray(basis[:, :dimensions].T)))

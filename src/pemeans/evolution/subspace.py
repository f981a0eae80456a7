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
"""Variances below this part of the noise's spectral norm can't be told from it."""


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
    edge = sqrt(2 * d) * noise
    falling = np.clip(without_noise(eigenvalues[::-1], edge)[:dimensions], min(NOISE_FLOOR * edge, n), n)
    variances = np.clip(falling / n, LEAST_VARIANCE, 1.0)
    basis = np.ascontiguousarray(vectors[:, ::-1])
    return Subspace(basis, variances, Projection(np.ascontiguousarray(basis[:, :dimensions].T)))


def without_noise(falling: FloatArray, edge: float) -> FloatArray:
    """What the rows vary along the eigenvectors of a moment with symmetric Gaussian noise.

    Noise alone has eigenvalues within `edge` of 0 (Wigner's semicircle), so the largest ones of a noisy
    moment are too large, and their vectors partly noise. A strength t beyond the usual level, the median, is
    seen as ``t + edge^2 / 4t``, and the rows vary by ``t - edge^2 / 4t`` along the vector found; strengths
    below ``edge / 2`` are not seen at all (Benaych-Georges and Nadakuditi 2011). So what is seen within the
    edge may be noise, or up to half as strong: that half is believed, since candidates that spread too little
    never reach a small cluster far out.

    Examples
    --------
    >>> without_noise(np.array([9.0, 3.0, 1.0, 0.5, 0.2]), edge=2.0).round(2).tolist()
    [8.75, 2.0, 1.0, 0.75, 0.6]
    """
    level = float(np.median(falling))
    seen = falling - level
    strength = (np.abs(seen) + np.sqrt(np.maximum(seen**2 - edge**2, 0.0))) / 2
    followed = strength - edge**2 / 4 / np.maximum(strength, max(edge / 2, 1e-300))
    hidden = np.minimum(np.abs(seen), edge) / 2
    return np.asarray(level + np.sign(seen) * np.maximum(followed, hidden))

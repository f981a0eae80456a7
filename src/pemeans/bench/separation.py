"""How far apart two normal clusters are: the separation index of Qiu and Joe.

W. Qiu and H. Joe, "Separation index and partial membership for clustering" (Computational Statistics and
Data Analysis 50, 2006). Along a direction the index is the gap between the two clusters' outer quantiles over
their whole span, ``J = (r - z) / (r + z)``, where z is the 97.5 % point of the normal distribution and r the
distance of the centers over the sum of the standard deviations along that direction. The index of a pair is
the largest over all directions.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.stats import norm

from pemeans.kernels.grid import FloatArray

OUTER = float(norm.ppf(0.975))
"""z: 5 % of a cluster lie outside its outer quantiles."""
GOLDEN = (np.sqrt(5) - 1) / 2
STEPS = 45
"""Golden-section steps: 0.618**45 is 4e-10."""


def separation_of(ratio: float) -> float:
    """The separation index of a pair whose best ratio is this.

    Examples
    --------
    >>> round(separation_of(6 / 2), 2)  # the package's documentation: N(0, 1) and N(6, 1) have 0.21
    0.21
    """
    return (ratio - OUTER) / (ratio + OUTER)


def ratio_of(separation: float) -> float:
    """The ratio that has this separation index."""
    return OUTER * (1 + separation) / (1 - separation)


def best_ratios(gaps: FloatArray, variances: FloatArray) -> FloatArray:
    """The largest ratio over all directions, for many pairs at once.

    The best direction solves ``(t S1 + (1 - t) S2) a = c2 - c1`` for some t in [0, 1] (Anderson and Bahadur,
    "Classification into two multivariate normal distributions", 1962), so one number is left to search.

    Parameters
    ----------
    gaps, variances : arrays of shape (pairs, d)
        Differences of the centers, and variances of the second cluster, in axes in which the first cluster's
        covariance is the identity and the second's is diagonal.
    """

    def ratio(t: FloatArray) -> FloatArray:
        direction = gaps / (t + (1 - t) * variances)
        spread = np.sqrt((direction**2).sum(axis=1)) + np.sqrt((variances * direction**2).sum(axis=1))
        return np.asarray((direction * gaps).sum(axis=1) / spread)

    low, high = np.zeros((len(gaps), 1)), np.ones((len(gaps), 1))
    for _ in range(STEPS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        rising = (ratio(left) < ratio(right))[:, np.newaxis]
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    return ratio((low + high) / 2)


class Pairs:
    """All pairs of some normal clusters, whose covariances can be inflated one by one.

    Parameters
    ----------
    centers : array of shape (k, d)
        The clusters' centers.
    covariances : array of shape (k, d, d)
        Their covariances.
    """

    def __init__(self, centers: FloatArray, covariances: FloatArray) -> None:
        self._first, self._second = np.triu_indices(len(centers), 1)
        self._widths = np.ones(len(centers))
        gaps, variances = [], []
        for i, j in zip(self._first, self._second, strict=True):
            found, axes = eigh(covariances[j], covariances[i])
            variances.append(found)
            gaps.append(axes.T @ (centers[j] - centers[i]))
        self._gaps, self._variances = np.array(gaps), np.array(variances)

    def ratios(self) -> FloatArray:
        """The best ratio of every pair."""
        return self._ratios(np.arange(len(self._first)), self._widths)

    def inflate(self, cluster: int, ratio: float) -> float:
        """Widen one cluster until its nearest neighbor is at that ratio; how many times as wide it became.

        A cluster that has a neighbor as near as that stays as it is.
        """
        mine = np.flatnonzero((self._first == cluster) | (self._second == cluster))

        def excess(width: float) -> float:
            widths = self._widths.copy()
            widths[cluster] = width
            return float(self._ratios(mine, widths).min() - ratio)

        if excess(1.0) <= 0:
            return 1.0
        widest = 2.0
        while excess(widest) > 0:
            widest *= 2
        width = float(brentq(excess, 1.0, widest, xtol=1e-6))
        self._widths[cluster] = width
        return width

    def _ratios(self, pairs: np.typing.NDArray[np.intp], widths: FloatArray) -> FloatArray:
        first = widths[self._first[pairs]][:, np.newaxis]
        second = widths[self._second[pairs]][:, np.newaxis]
        return best_ratios(self._gaps[pairs] / first, self._variances[pairs] * (second / first) ** 2)

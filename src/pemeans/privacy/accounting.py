r"""From (epsilon, delta) to the noise, and back: Gaussian differential privacy, rounded the safe way.

A release is *mu-GDP* when telling two neighbors apart from it is at least as hard as telling N(0, 1) from
N(mu, 1). Such guarantees compose to ``sqrt(mu_1^2 + mu_2^2 + ...)``, also when a question depends on earlier
answers (Dong, Roth & Su 2022). And mu-GDP is (epsilon, delta)-DP exactly when delta is at least
``delta_of(mu, epsilon)``. The noise is the discrete Gaussian on the integers: `discrete_mu` tells which mu
it has.

Every answer errs on the side of privacy: deltas, epsilons and sigmas are rounded up, a budget's mu down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import erf, erfcx, erfinv, ndtri_exp

from pemeans.privacy.checks import (
    LARGEST,
    LARGEST_MU,
    MIN_SIGMA,
    checked,
    checked_delta,
    checked_mu,
    checked_sigma,
)

Floats = NDArray[np.float64]

SAFETY_MARGIN = 2e-5
"""Each epsilon handed out is larger than the computed one by this share of it. It covers what other
accountants round up when they discretize, so that ours is never below theirs, and the arithmetic here."""

CALIBRATION_MARGIN = 2.1e-5
"""The share of epsilon that `mu_of` keeps back. What it keeps beyond `SAFETY_MARGIN` absorbs the rounding
when shares of a budget are added up again: a spent budget never shows more than the epsilon asked for."""

# --- Continuous Gaussians: mu, epsilon, delta -----------------------------------------------------


def delta_of(mu: float, epsilon: float) -> float:
    """Return the smallest delta for which mu-GDP is (epsilon, delta)-DP, rounded up.

    It is ``Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)`` (Balle & Wang 2018; Dong et al.
    2022), with a relative error of at most 1e-11 while it is at least 1e-300 and epsilon at most 10,000.

    Examples
    --------
    >>> round(delta_of(mu=1.0, epsilon=1.0), 9)
    0.126936738
    """
    return max(math.exp(log_delta_of(mu, epsilon)), math.ulp(0.0))


def log_delta_of(mu: float, epsilon: float) -> float:
    """Return the natural logarithm of `delta_of`, which reaches far below the smallest double.

    Examples
    --------
    >>> round(log_delta_of(mu=0.01, epsilon=1.0), 3)
    -5014.235
    """
    mu = checked_mu(mu)
    epsilon = checked("epsilon", epsilon, 0.0, LARGEST, "pass a finite number that is not negative")
    return float(log_deltas(mu, np.float64(epsilon)))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu whose guarantee is (epsilon, delta)-DP, rounded down.

    Events whose mu's add up to it (in squares) have a `composition.composed_epsilon` of at most ``epsilon``.

    Examples
    --------
    >>> mu = mu_of(epsilon=1.0, delta=1e-5)
    >>> round(mu, 4)
    0.268
    >>> epsilon_of(mu, delta=1e-5) <= 1.0
    True
    """
    epsilon = checked("epsilon", epsilon, 1e-6, 1e4, "pass a privacy budget in this range")
    target = epsilon / (1.0 + CALIBRATION_MARGIN)
    log_delta = math.log(checked_delta(delta))

    def is_private(mu: float) -> bool:
        return bool(log_deltas(mu, np.float64(target)) <= log_delta)

    # This mu solves for the first term of delta_of alone, which is too large a delta: too small a mu.
    quantile = -float(ndtri_exp(log_delta))
    root = math.hypot(quantile, math.sqrt(2.0 * target))
    low = 2.0 * target / (root + quantile) if quantile > 0 else root - quantile
    high = 2.0 * low
    while is_private(high):
        low, high = high, 2.0 * high
    return _last(is_private, low, high)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest epsilon for which mu-GDP is (epsilon, delta)-DP, rounded up; 0 if none is needed.

    Examples
    --------
    >>> round(epsilon_of(mu=1.0, delta=1e-5), 3)
    4.377
    >>> epsilon_of(mu=0.001, delta=0.01)
    0.0
    """
    return (1.0 + SAFETY_MARGIN) * computed_epsilon(checked_mu(mu), checked_delta(delta))


def computed_epsilon(mu: float, delta: float) -> float:
    """Return `epsilon_of` without its margin."""
    log_delta = math.log(delta)

    def is_private(epsilon: float) -> bool:
        return bool(log_deltas(mu, np.float64(epsilon)) <= log_delta)

    if is_private(0.0):
        return 0.0
    enough = mu * (mu / 2.0 - float(ndtri_exp(log_delta)))  # solves for the first term of delta_of alone
    return _last(is_private, max(enough, 0.0), 0.0)


def _last(holds: Callable[[float], bool], start: float, stop: float) -> float:
    """Return the last number from ``start``, where ``holds`` is true, towards ``stop``, where it is false."""
    for _ in range(128):
        middle = start + (stop - start) / 2.0
        if middle in (start, stop):
            break
        if holds(middle):
            start = middle
        else:
            stop = middle
    return start


_NARROW = 0.1
"""Below this mu four Gauss-Legendre nodes are exact to 1e-15."""

_NODES, _WEIGHTS = (leggauss(4)[0] + 1.0) / 2.0, leggauss(4)[1] / 2.0


def log_deltas(mu: float, epsilon: Floats | np.float64) -> Floats:
    r"""Return ``log(delta_of(mu, epsilon))`` for each epsilon >= 0, rounded up.

    Let ``a = epsilon/mu - mu/2``, ``b = a + mu``, and ``m(x) = Phi(-x)/phi(x)`` be the ratio of Mills. The
    terms of delta share a factor, since ``e^epsilon phi(b) = phi(a)``, and delta is ``phi(a) (m(a) - m(b))``.
    For a narrow mu that difference would cancel, and the integral of ``-m'(x) = 1 - x m(x)`` from a to b
    takes its place.
    """
    # At a = -37 delta is 1 to 1e-298, and m(a) is still finite.
    a: Floats = np.maximum(epsilon / mu - mu / 2.0, -37.0)
    b: Floats = np.asarray(epsilon / mu + mu / 2.0)
    if mu < _NARROW:
        gap: Floats = mu * (_mills_descent(np.add.outer(a, mu * _NODES)) @ _WEIGHTS)
    else:
        gap = _mills(a) - _mills(b)
    # The rounding of a and b is felt in a^2/2, in 1 - x m(x) and in m(a) - m(b), a few a b units in each.
    rounding = 8.0 * 2.0**-53 * (8.0 + np.abs(a) * b)
    log_delta: Floats = np.log(gap) - a * a / 2.0 - math.log(2.0 * math.pi) / 2.0 + rounding
    return np.minimum(log_delta, 0.0)


def _mills(x: Floats) -> Floats:
    """Return ``Phi(-x)/phi(x)``."""
    ratio: Floats = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return ratio


def _mills_descent(x: Floats) -> Floats:
    """Return ``1 - x m(x)``, by its asymptotic series where it would cancel."""
    inverse = 1.0 / np.maximum(x, 25.0) ** 2
    series = np.zeros_like(x)
    for odd in (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):  # 1/x^2 - 3/x^4 + 15/x^6 - 105/x^8 + ...
        series = odd * inverse * (1.0 - series)
    return np.where(x < 25.0, 1.0 - x * _mills(x), series)


# --- One discrete Gaussian: mu, sigma -------------------------------------------------------------


def discrete_mu(sigma: float) -> float:
    r"""Return the smallest mu for which discrete Gaussian noise hides a shift by one as mu-GDP, rounded up.

    Notes
    -----
    Let F be the distribution function of the noise, p(k) its probabilities, and ``g(t) = Phi^-1(F(t))``. The
    best tests between the noise and its shift by one are thresholds, so their trade-off function is piecewise
    linear with vertices ``(1 - F(t), F(t-1))``. That of mu-GDP, ``x -> Phi(Phi^-1(1-x) - mu)``, is convex,
    hence below the chords once it is below the vertices, which says ``g(t) - g(t-1) <= mu`` for all t. **The
    largest of these steps is the one at the center**, so mu is ``g(0) - g(-1) = 2 g(0)``, which is
    ``2 sqrt(2) erfinv(p(0))``, about ``(1 + 1/(24 sigma^2)) / sigma``.

    *Proof.* Write ``c = g(0)``. As ``g(-1-t) = -g(t)``, it is enough to look at t >= 0. By induction, let
    ``s = t + 1/2 - g(t)/(2c) >= 0`` (it is 0 at t = 0). Lay cells of width 2c side by side from g(t) to the
    right. The j-th of them, with its middle at ``m = g(t) + (2j-1) c``, has a Gaussian mass q(j). Since
    ``t + j = m/(2c) + s`` and log p(k) is a parabola, ``log(q(j)/p(t+j))`` is
    ``r(m) = h(m) - h(0) + (m/(2c) + s)^2/(2 sigma^2)``, where ``h(m) = log(Phi(m+c) - Phi(m-c))``. Now h is
    even, and ``h''(m) = Var(N | m-c < N < m+c) - 1``, with N standard normal, falls while m > 0 grows (the
    GHS inequality; Ellis, Monroe & Newman 1976). So r, which starts with r(0) >= 0 and r'(0) >= 0, is first
    convex and then concave on m > 0, and changes its sign at most once, from + to -. The q(j) and the p(t+j)
    have the same sum, 1 - F(t); hence q(1) >= p(t+1). That is ``Phi(g(t) + 2c) >= F(t+1)``, or
    ``g(t+1) <= g(t) + 2c``, which also keeps s >= 0 for t + 1.

    Examples
    --------
    >>> round(discrete_mu(0.5), 4), round(discrete_mu(10.0), 6)
    (2.4884, 0.100042)
    """
    rounding = 1.0 + 1e-13  # a hundred times the error of erfinv at its worst, near p(0) = 1
    return rounding * math.sqrt(8.0) * float(erfinv(center_mass(checked_sigma(sigma))))


@lru_cache(maxsize=256)  # rounds of an algorithm mostly have equal shares
def sigma_for(mu: float) -> float:
    """Return the smallest sigma, from `MIN_SIGMA` on, that hides a shift by one as mu-GDP, rounded up.

    A statistic of sensitivity s gets ``sigma_for(mu / s)``, as `composition.mu_of_event` proves.

    Examples
    --------
    >>> sigma = sigma_for(0.1)
    >>> round(sigma, 4), discrete_mu(sigma) <= 0.1
    (10.0042, True)
    """
    mu = checked("mu", mu, 1.0 / LARGEST, LARGEST_MU, "pass a positive number, not below 2^-64")

    def is_private(sigma: float) -> bool:
        return discrete_mu(sigma) <= mu

    if is_private(MIN_SIGMA):
        return MIN_SIGMA
    # p(0) is below 1/(sigma sqrt(2 pi)), so discrete_mu with that in its place is a little too large.
    enough = (1.0 + 1e-12) / (math.sqrt(2.0 * math.pi) * float(erf(mu / math.sqrt(8.0))))
    return _last(is_private, enough, max(enough / 2.0, MIN_SIGMA))


def center_mass(sigma: float) -> float:
    """Return the probability of 0: ``1/sum(exp(-k^2/(2 sigma^2)))``, the sum taken by Poisson's formula."""
    waves = math.fsum(math.exp(-2.0 * (math.pi * sigma * j) ** 2) for j in range(1, 7))
    return 1.0 / (sigma * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * waves))

"""Privacy losses that take few values, as those of small integer noise do: summed over one by one."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from pemeans.privacy.accounting import Floats, center_mass, log_deltas

Losses = list[tuple[Floats, Floats]]
"""The probabilities and the values of privacy losses that add up."""

TAIL_SHARE = 1e-9
"""The share of delta that pays for the far tails of the noise, which are left out of the sums."""


def lattice_epsilon(losses: Losses, mu: float, delta: float, ceiling: float) -> float:
    """Return the epsilon of such losses together with a Gaussian of ``mu``, which may be 0."""
    probability, loss = np.ones(1), np.zeros(1)
    for one_probability, one_loss in losses:
        probability = np.multiply.outer(probability, one_probability).ravel()
        loss = np.add.outer(loss, one_loss).ravel()
    left_out = len(losses) * TAIL_SHARE * delta

    def excess(epsilon: float) -> float:
        return math.log((left_out + float(probability @ _gaussian_delta(mu, epsilon - loss))) / delta)

    if excess(0.0) <= 0.0:
        return 0.0
    if excess(ceiling) >= 0.0:
        return ceiling
    return float(brentq(excess, 0.0, ceiling, xtol=1e-15 * ceiling, rtol=1e-10))


def _gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """Return delta for each epsilon of either sign: ``delta(-e) = 1 - exp(-e) + exp(-e) delta(e)``."""
    size = np.abs(epsilon)
    delta = np.zeros_like(size)
    near = size < mu * (40.0 + mu / 2.0)  # farther out delta is below exp(-800)
    delta[near] = np.exp(log_deltas(mu, size[near])) if mu > 0.0 else 0.0
    return np.where(epsilon < 0.0, np.exp(-size) * delta - np.expm1(-size), delta)


def gaussian_loss(sigma: float, count: int, delta: float) -> tuple[Floats, Floats]:
    """Return the probabilities and values of the privacy loss, but for a tail of ``TAIL_SHARE * delta``."""
    probability = _sum_of_noises(sigma, count, tail_of(count, delta))
    reach = len(probability) // 2
    loss: Floats = (np.arange(-reach, reach + 1, dtype=np.float64) + count / 2.0) / (sigma * sigma)
    return probability, loss


def pure_loss(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """Return the probabilities and values of the privacy loss of ``count`` releases, each epsilon-DP."""
    truths = np.arange(count + 1, dtype=np.float64)
    ways = gammaln(count + 1.0) - gammaln(truths + 1.0) - gammaln(count - truths + 1.0)
    probability: Floats = np.exp(ways + truths * epsilon - count * float(np.logaddexp(0.0, epsilon)))
    return probability, (2.0 * truths - count) * epsilon


def _sum_of_noises(sigma: float, count: int, tail: float) -> Floats:
    """Return the probabilities of the sum of ``count`` noises, from minus to plus its `reach_of`.

    Nothing is subtracted, and no Fourier transform taken, so the relative accuracy holds far into the tails.
    From sigma = 2 on the sum is itself a discrete Gaussian, each probability right to a share of
    ``5 count exp(-pi^2 sigma^2)``: adding one noise to k of them multiplies by a sum over all integers x of
    ``exp(-(x - y)^2/(2 tau^2))`` with ``tau^2 = sigma^2 k/(k+1)``, which is the same for all y to within
    ``2 exp(-2 pi^2 tau^2)`` and what is far smaller, by the formula of Poisson.
    """
    reach = reach_of(sigma, count, tail)
    if count == 1 or sigma >= 2.0:
        width = sigma * math.sqrt(count)
        return center_mass(width) * np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    half = _sum_of_noises(sigma, count // 2, tail)
    whole = np.convolve(half, half)
    if count % 2:
        whole = np.convolve(whole, _sum_of_noises(sigma, 1, tail))
    surplus = max(len(whole) // 2 - reach, 0)
    return whole[surplus : len(whole) - surplus]


def reach_of(sigma: float, count: int, tail: float) -> int:
    """Return how far the sum of ``count`` noises gets but for ``tail``: it is sub-Gaussian."""
    return math.ceil(sigma * math.sqrt(2.0 * count * math.log(2.0 / tail)))


def tail_of(count: int, delta: float) -> float:
    """Return what may be cut off at each of the fewer than 2 count steps to the sum of ``count`` noises."""
    return TAIL_SHARE * delta / (2.0 * count)

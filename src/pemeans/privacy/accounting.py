r"""From (epsilon, delta) to the noise, and back: Gaussian differential privacy, rounded the safe way.

A release is *mu-GDP* when telling two neighbors apart from it is at least as hard as telling N(0, 1) from
N(mu, 1). Such guarantees compose to ``sqrt(mu_1^2 + mu_2^2 + ...)``, also when a question depends on earlier
answers (Dong, Roth & Su 2022). And mu-GDP is (epsilon, delta)-DP exactly when delta is at least
``delta_of(mu, epsilon)``.

The noise is the discrete Gaussian on the integers: `discrete_mu` tells which mu it has, and
`composed_epsilon` accounts for it exactly where the integers are too coarse for a formula to be tight.
Releases that are epsilon-DP by themselves, a `PureEvent` each, compose with these, and exactly.

Every answer errs on the side of privacy: deltas, epsilons and sigmas are rounded up, a budget's mu down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erf, erfcx, erfinv, gammaln, ndtri_exp

from pemeans.errors import ParameterError

Floats = NDArray[np.float64]

SAFETY_MARGIN = 2e-5
"""Each epsilon handed out is larger than the computed one by this share of it. It covers what other
accountants round up when they discretize, so that ours is never below theirs, and the arithmetic here."""

CALIBRATION_MARGIN = 2.1e-5
"""The share of epsilon that `mu_of` keeps back. What it keeps beyond `SAFETY_MARGIN` absorbs the rounding
when shares of a budget are added up again: a spent budget never shows more than the epsilon asked for."""

MIN_SIGMA = 0.3
"""The least noise that is ever drawn."""

_LARGEST = 2.0**64  # beyond every sigma and sensitivity in use, and far from overflow
_SMALLEST_MU, _LARGEST_MU = 1e-100, 1e100


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
    mu = _checked_mu(mu)
    epsilon = _checked("epsilon", epsilon, 0.0, _LARGEST, "pass a finite number that is not negative")
    return float(_log_delta(mu, np.float64(epsilon)))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu whose guarantee is (epsilon, delta)-DP, rounded down.

    Events whose mu's add up to it (in squares) have a `composed_epsilon` of at most ``epsilon``.

    Examples
    --------
    >>> mu = mu_of(epsilon=1.0, delta=1e-5)
    >>> round(mu, 4)
    0.268
    >>> epsilon_of(mu, delta=1e-5) <= 1.0
    True
    """
    epsilon = _checked("epsilon", epsilon, 1e-6, 1e4, "pass a privacy budget in this range")
    target = epsilon / (1.0 + CALIBRATION_MARGIN)
    log_delta = math.log(_checked_delta(delta))

    def is_private(mu: float) -> bool:
        return bool(_log_delta(mu, np.float64(target)) <= log_delta)

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
    return (1.0 + SAFETY_MARGIN) * _epsilon(_checked_mu(mu), _checked_delta(delta))


def _epsilon(mu: float, delta: float) -> float:
    log_delta = math.log(delta)

    def is_private(epsilon: float) -> bool:
        return bool(_log_delta(mu, np.float64(epsilon)) <= log_delta)

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


def _log_delta(mu: float, epsilon: Floats | np.float64) -> Floats:
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
    return _discrete_mu(_checked_sigma(sigma))


@lru_cache(maxsize=256)  # rounds of an algorithm mostly have equal shares
def sigma_for(mu: float) -> float:
    """Return the smallest sigma, from `MIN_SIGMA` on, that hides a shift by one as mu-GDP, rounded up.

    A statistic of sensitivity s gets ``sigma_for(mu / s)``, as `mu_of_event` proves.

    Examples
    --------
    >>> sigma = sigma_for(0.1)
    >>> round(sigma, 4), discrete_mu(sigma) <= 0.1
    (10.0042, True)
    """
    mu = _checked("mu", mu, 1.0 / _LARGEST, _LARGEST_MU, "pass a positive number, not below 2^-64")

    def is_private(sigma: float) -> bool:
        return _discrete_mu(sigma) <= mu

    if is_private(MIN_SIGMA):
        return MIN_SIGMA
    # p(0) is below 1/(sigma sqrt(2 pi)), so discrete_mu with that in its place is a little too large.
    enough = (1.0 + 1e-12) / (math.sqrt(2.0 * math.pi) * float(erf(mu / math.sqrt(8.0))))
    return _last(is_private, enough, max(enough / 2.0, MIN_SIGMA))


def _discrete_mu(sigma: float) -> float:
    rounding = 1.0 + 1e-13  # a hundred times the error of erfinv at its worst, near p(0) = 1
    return rounding * math.sqrt(8.0) * float(erfinv(_center_mass(sigma)))


def _center_mass(sigma: float) -> float:
    """Return the probability of 0: ``1/sum(exp(-k^2/(2 sigma^2)))``, the sum taken by Poisson's formula."""
    waves = math.fsum(math.exp(-2.0 * (math.pi * sigma * j) ** 2) for j in range(1, 7))
    return 1.0 / (sigma * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * waves))


# --- Events and their composition -----------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """``count`` releases of an integer statistic, with discrete Gaussian noise in every coordinate.

    Parameters
    ----------
    sigma
        Parameter of the noise.
    sensitivity
        How far one row can move the statistic, in the L2 norm. Integers that move at all move by 1 or more.
    count
        How many times.

    Examples
    --------
    >>> Event(sigma=20.0, sensitivity=1.0, count=4)
    Event(sigma=20.0, sensitivity=1.0, count=4)
    """

    sigma: float
    sensitivity: float
    count: int = 1

    def __post_init__(self) -> None:
        fix = "pass the L2 sensitivity of an integer statistic"
        sensitivity = _checked("sensitivity", self.sensitivity, 1.0, _LARGEST, fix)
        object.__setattr__(self, "sigma", _checked_sigma(self.sigma))
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "count", _checked_count(self.count))


@dataclass(frozen=True)
class PureEvent:
    """``count`` releases that are each epsilon-DP, whatever the mechanism.

    No such release tells more than randomized response: a coin that tells the truth ``exp(epsilon)`` times as
    often as not (Kairouz, Oh & Viswanath 2015). Discrete Laplace noise of scale 1/epsilon on a statistic that
    a row moves by 1 tells exactly as much: its privacy loss is plus or minus epsilon, nothing in between.

    Parameters
    ----------
    epsilon
        Of one release.
    count
        How many times.

    Examples
    --------
    >>> PureEvent(epsilon=0.1, count=21)
    PureEvent(epsilon=0.1, count=21)
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        fix = "pass the sensitivity of the statistic over the scale of the noise"
        object.__setattr__(self, "epsilon", _checked("epsilon", self.epsilon, 1.0 / _LARGEST, _LARGEST, fix))
        object.__setattr__(self, "count", _checked_count(self.count))


def mu_of_event(event: Event | PureEvent) -> float:
    """Return the mu of all releases of an event together: ``sqrt(count) * sensitivity * discrete_mu(sigma)``.

    For a `PureEvent` it is ``sqrt(count)`` times the mu that `_pure_mu` has for one.

    Notes
    -----
    One row moves the statistic by an integer vector v. In coordinate i the noise has to hide a shift by the
    integer ``|v_i|``. Thresholds are again the best tests, so its mu is the largest ``g(t) - g(t - |v_i|)``
    in the terms of `discrete_mu`: a sum of ``|v_i|`` steps of at most ``discrete_mu(sigma)``. The coordinates
    have independent noise and compose to ``sqrt(sum |v_i|^2)``, at most the sensitivity, times that.

    Examples
    --------
    >>> round(mu_of_event(Event(sigma=20.0, sensitivity=1.0, count=4)), 5)
    0.10001
    """
    if isinstance(event, PureEvent):
        return math.sqrt(event.count) * _pure_mu(event.epsilon)
    return math.sqrt(event.count) * event.sensitivity * _discrete_mu(event.sigma)


def _pure_mu(epsilon: float) -> float:
    """Return the smallest mu for which every epsilon-DP release is mu-GDP, rounded up.

    The trade-off function of randomized response is piecewise linear with one vertex inside, at
    ``(x, x)`` with ``x = 1/(1 + e^epsilon)``. That of mu-GDP is convex, hence below the two chords once it is
    not above the vertex: ``Phi(Phi^-1(1 - x) - mu) <= x``, or ``mu >= -2 Phi^-1(x)``.
    """
    rounding = 1.0 + 1e-13
    if epsilon < 1.0:  # 1 - 2 x = tanh(epsilon / 2), which is all that is left of x for a small epsilon
        return rounding * math.sqrt(8.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    return rounding * -2.0 * float(ndtri_exp(-float(np.logaddexp(0.0, epsilon))))


_LATTICE_SIGMA = 64.0
"""From here on the formula is tight: mu is too large by a share of 1/(24 sigma^2) = 1e-5, epsilon by up to
twice that."""

_MAX_ATOMS = 2**16
"""The most values of the privacy loss that are summed over: a composition takes milliseconds."""

_MIN_LATTICE_DELTA = 1e-250
"""Below it single probabilities would leave the range of a double."""

_TAIL_SHARE = 1e-9
"""The share of delta that pays for the far tails of the noise, which are left out of the sums."""


def composed_epsilon(events: Sequence[Event | PureEvent], delta: float) -> float:
    r"""Return the epsilon at ``delta`` of all events together, rounded up; never above what their mu's give.

    Releases of sensitivity 1 with equal and small sigma are accounted for exactly, and so are pure ones of
    equal epsilon. All else, and what would be too much to sum over, enters as one Gaussian by `mu_of_event`,
    which is rigorous and only less tight. At a delta of 0 the epsilons of pure events add up, and Gaussian
    noise has none.

    Notes
    -----
    A row moves a statistic of sensitivity 1 by plus or minus 1 in one coordinate, so its worst case is the
    noise X against X + 1. Given X the privacy loss is ``(1 - 2 X)/(2 sigma^2)``, and X is symmetric. So T
    releases lose ``L = (T + 2 S)/(2 sigma^2)``, where S is the sum of T noises, and with a Gaussian of mu for
    all the rest ``delta(epsilon) = sum over S of P(S) delta_of(mu, epsilon - L(S))``. The mirror image (x to
    1 - x) swaps the two neighbors, hence both directions have the same delta.

    T pure releases of ``epsilon_1`` lose ``(2 K - T) epsilon_1``, where K, the number of coins that tell the
    truth, is binomial; they enter the sum in the same way, and are symmetric as well.

    Examples
    --------
    >>> votes = Event(sigma=0.5, sensitivity=1.0)
    >>> round(composed_epsilon([votes], delta=1e-5), 3), round(epsilon_of(mu_of_event(votes), delta=1e-5), 3)
    (9.962, 13.129)
    """
    gaussian = [event for event in events if isinstance(event, Event)]
    pure = [event for event in events if isinstance(event, PureEvent)]
    if delta == 0.0:
        return math.inf if gaussian else _sum_of_epsilons(pure)
    delta = _checked_delta(delta)
    if not events:
        return 0.0
    ceiling = _gdp_epsilon(events, delta)
    if pure:
        ceiling = min(ceiling, _gdp_epsilon(gaussian, delta) + _sum_of_epsilons(pure))
    losses, rest = _split(gaussian, pure, delta)
    epsilon = _lattice_epsilon(losses, _root_of_squares(rest), delta, ceiling) if losses else ceiling
    return (1.0 + SAFETY_MARGIN) * epsilon


def smallest_scale(
    events: Callable[[float], Sequence[Event | PureEvent]], epsilon: float, delta: float
) -> float:
    """Return the smallest number at which these events together cost at most ``epsilon``, rounded up.

    Parameters
    ----------
    events
        The events at a noise of this size; the smaller it is, the more they cost.
    epsilon, delta
        The guarantee to keep.

    Examples
    --------
    >>> scale = smallest_scale(lambda scale: [PureEvent(1 / scale, 21)], epsilon=1.0, delta=1e-5)
    >>> round(scale, 2), composed_epsilon([PureEvent(1 / scale, 21)], delta=1e-5) <= 1.0
    (16.3, True)
    """

    def excess(scale: float) -> float:
        return composed_epsilon(events(scale), delta) - epsilon

    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
        if high > _LARGEST:
            raise ParameterError(f"epsilon={epsilon!r} can't be kept by any noise: pass a larger budget")
    while excess(high / 2.0) <= 0.0:
        high /= 2.0
    scale, step = float(brentq(excess, high / 2.0, high, xtol=1e-12 * high, rtol=1e-12)), 1e-12
    while excess(scale) > 0.0:
        scale, step = min(scale * (1.0 + step), high), 2.0 * step
    return scale


def _gdp_epsilon(events: Sequence[Event | PureEvent], delta: float) -> float:
    return _epsilon(_root_of_squares([mu_of_event(event) for event in events]), delta) if events else 0.0


def _sum_of_epsilons(events: Sequence[PureEvent]) -> float:
    return (1.0 + 1e-15) * math.fsum(event.count * event.epsilon for event in events)


def _root_of_squares(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


_Losses = list[tuple[Floats, Floats]]  # the probabilities and the values of privacy losses that add up


def _split(gaussian: Sequence[Event], pure: Sequence[PureEvent], delta: float) -> tuple[_Losses, list[float]]:
    """Return the privacy losses to be accounted for exactly, and the mu's of all else."""
    rest = []
    sigmas: Counter[float] = Counter()
    epsilons: Counter[float] = Counter()
    for event in gaussian:
        if event.sensitivity == 1.0 and event.sigma < _LATTICE_SIGMA and delta >= _MIN_LATTICE_DELTA:
            sigmas[event.sigma] += event.count
        else:
            rest.append(mu_of_event(event))
    for one in pure:
        epsilons[one.epsilon] += one.count
    losses: _Losses = []
    room = _MAX_ATOMS
    # The formula for pure events loses most: they come first. For Gaussian ones it adds 1/(12 sigma^2) of it
    # to mu^2 = count/sigma^2: the groups where that is most come before the others.
    for epsilon, count in sorted(epsilons.items(), reverse=True):
        if len(losses) < 2 and count < room and delta >= _MIN_LATTICE_DELTA:
            losses.append(_pure_loss(epsilon, count))
            room //= count + 1
        else:
            rest.append(mu_of_event(PureEvent(epsilon, count)))
    for sigma, count in sorted(sigmas.items(), key=lambda group: group[1] / group[0] ** 4, reverse=True):
        size = 2 * _reach(sigma, count, _tail(count, delta)) + 1
        if len(losses) < 2 and size <= room:
            losses.append(_privacy_loss(sigma, count, delta))
            room //= size
        else:
            rest.append(mu_of_event(Event(sigma, 1.0, count)))
    return losses, rest


def _lattice_epsilon(losses: _Losses, mu: float, delta: float, ceiling: float) -> float:
    """Return the epsilon of such losses together with a Gaussian of ``mu``, which may be 0."""
    probability, loss = np.ones(1), np.zeros(1)
    for one_probability, one_loss in losses:
        probability = np.multiply.outer(probability, one_probability).ravel()
        loss = np.add.outer(loss, one_loss).ravel()
    left_out = len(losses) * _TAIL_SHARE * delta

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
    delta[near] = np.exp(_log_delta(mu, size[near])) if mu > 0.0 else 0.0
    return np.where(epsilon < 0.0, np.exp(-size) * delta - np.expm1(-size), delta)


def _privacy_loss(sigma: float, count: int, delta: float) -> tuple[Floats, Floats]:
    """Return the probabilities and values of the privacy loss, but for a tail of ``_TAIL_SHARE * delta``."""
    probability = _sum_of_noises(sigma, count, _tail(count, delta))
    reach = len(probability) // 2
    loss: Floats = (np.arange(-reach, reach + 1, dtype=np.float64) + count / 2.0) / (sigma * sigma)
    return probability, loss


def _pure_loss(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """Return the probabilities and values of the privacy loss of ``count`` releases, each epsilon-DP."""
    truths = np.arange(count + 1, dtype=np.float64)
    ways = gammaln(count + 1.0) - gammaln(truths + 1.0) - gammaln(count - truths + 1.0)
    probability: Floats = np.exp(ways + truths * epsilon - count * float(np.logaddexp(0.0, epsilon)))
    return probability, (2.0 * truths - count) * epsilon


def _sum_of_noises(sigma: float, count: int, tail: float) -> Floats:
    """Return the probabilities of the sum of ``count`` noises, from minus to plus its `_reach`.

    Nothing is subtracted, and no Fourier transform taken, so the relative accuracy holds far into the tails.
    From sigma = 2 on the sum is itself a discrete Gaussian, each probability right to a share of
    ``5 count exp(-pi^2 sigma^2)``: adding one noise to k of them multiplies by a sum over all integers x of
    ``exp(-(x - y)^2/(2 tau^2))`` with ``tau^2 = sigma^2 k/(k+1)``, which is the same for all y to within
    ``2 exp(-2 pi^2 tau^2)`` and what is far smaller, by the formula of Poisson.
    """
    reach = _reach(sigma, count, tail)
    if count == 1 or sigma >= 2.0:
        width = sigma * math.sqrt(count)
        return _center_mass(width) * np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    half = _sum_of_noises(sigma, count // 2, tail)
    whole = np.convolve(half, half)
    if count % 2:
        whole = np.convolve(whole, _sum_of_noises(sigma, 1, tail))
    surplus = max(len(whole) // 2 - reach, 0)
    return whole[surplus : len(whole) - surplus]


def _reach(sigma: float, count: int, tail: float) -> int:
    """Return how far the sum of ``count`` noises gets but for ``tail``: it is sub-Gaussian."""
    return math.ceil(sigma * math.sqrt(2.0 * count * math.log(2.0 / tail)))


def _tail(count: int, delta: float) -> float:
    """Return what may be cut off at each of the fewer than 2 count steps to the sum of ``count`` noises."""
    return _TAIL_SHARE * delta / (2.0 * count)


# --- Parameters -----------------------------------------------------------------------------------


def _checked(name: str, value: float, low: float, high: float, fix: str) -> float:
    """Return the value as a Python float, because single precision would spread through all that follows."""
    if not (isinstance(value, Real) and low <= value <= high):
        raise ParameterError(f"{name}={value!r} is not a number from {low:g} to {high:g}: {fix}")
    return float(value)


def _checked_mu(mu: float) -> float:
    return _checked("mu", mu, _SMALLEST_MU, _LARGEST_MU, "pass a positive number")


def _checked_sigma(sigma: float) -> float:
    return _checked("sigma", sigma, MIN_SIGMA, _LARGEST, f"pass the noise of a release, at least {MIN_SIGMA}")


def _checked_count(count: int) -> int:
    whole = _checked("count", count, 1.0, 2.0**53, "pass the number of releases")
    if not whole.is_integer():
        raise ParameterError(f"count={count!r} is not a whole number: pass the number of releases")
    return int(whole)


def _checked_delta(delta: float) -> float:
    fix = "pass a probability above 0 and below 1, such as n_samples**-1.1"
    return _checked("delta", delta, 1e-305, math.nextafter(1.0, 0.0), fix)

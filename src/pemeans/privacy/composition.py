"""What several releases cost together, rounded up.

Gaussian differential privacy adds them up. Where integers are too coarse for its formula to be tight, and for
releases that are epsilon-DP by themselves, the sum is taken exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfinv, ndtri_exp

from pemeans.errors import ParameterError
from pemeans.privacy.accounting import SAFETY_MARGIN, computed_epsilon, discrete_mu
from pemeans.privacy.checks import LARGEST, checked, checked_count, checked_delta, checked_sigma
from pemeans.privacy.lattice import Losses, gaussian_loss, lattice_epsilon, pure_loss, reach_of, tail_of

_LATTICE_SIGMA = 64.0
"""From here on the formula is tight: mu is too large by a share of 1/(24 sigma^2) = 1e-5, epsilon by up to
twice that."""

_MAX_ATOMS = 2**16
"""The most values of the privacy loss that are summed over: a composition takes milliseconds."""

_MIN_LATTICE_DELTA = 1e-250
"""Below it single probabilities would leave the range of a double."""


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
        sensitivity = checked("sensitivity", self.sensitivity, 1.0, LARGEST, fix)
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "count", checked_count(self.count))


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
        object.__setattr__(self, "epsilon", checked("epsilon", self.epsilon, 1.0 / LARGEST, LARGEST, fix))
        object.__setattr__(self, "count", checked_count(self.count))


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
    return math.sqrt(event.count) * event.sensitivity * discrete_mu(event.sigma)


def _pure_mu(epsilon: float) -> float:
    """Return the smallest mu for which every epsilon-DP release is mu-GDP, rounded up.

    The trade-off function of randomized response is piecewise linear with one vertex inside, at
    ``(x, x)`` with ``x = 1/(1 + e^epsilon)``. That of mu-GDP is convex, hence below the two chords once it is
    not above the vertex: ``Phi(Phi^-1(1 - x) - mu) <= x``, or ``mu >= -2 Phi^-1(x)``.
    """
    rounding = 1.0 + 1e-13
    if epsilon < 1.0:  # 1 - 2 x = tanh(epsilon / 2), which is all that is left of x for a small epsilon
        return rounding * math.sqrt(8.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    log_x = -(epsilon + math.log1p(math.exp(-epsilon)))
    return rounding * -2.0 * float(ndtri_exp(log_x))


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
    >>> from pemeans.privacy.accounting import epsilon_of
    >>> votes = Event(sigma=0.5, sensitivity=1.0)
    >>> round(composed_epsilon([votes], delta=1e-5), 3), round(epsilon_of(mu_of_event(votes), delta=1e-5), 3)
    (9.962, 13.129)
    """
    gaussian = [event for event in events if isinstance(event, Event)]
    pure = [event for event in events if isinstance(event, PureEvent)]
    if delta == 0.0:
        return math.inf if gaussian else _sum_of_epsilons(pure)
    delta = checked_delta(delta)
    if not events:
        return 0.0
    ceiling = _gdp_epsilon(events, delta)
    if pure:
        ceiling = min(ceiling, _gdp_epsilon(gaussian, delta) + _sum_of_epsilons(pure))
    with np.errstate(under="ignore"):  # a probability too small for a float is taken for none
        losses, rest = _split(gaussian, pure, delta)
        epsilon = lattice_epsilon(losses, _root_of_squares(rest), delta, ceiling) if losses else ceiling
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
        if high > LARGEST:
            raise ParameterError(f"epsilon={epsilon!r} can't be kept by any noise: pass a larger budget")
    while excess(high / 2.0) <= 0.0:
        high /= 2.0
    scale, step = float(brentq(excess, high / 2.0, high, xtol=1e-12 * high, rtol=1e-12)), 1e-12
    while excess(scale) > 0.0:
        scale, step = min(scale * (1.0 + step), high), 2.0 * step
    return scale


def _gdp_epsilon(events: Sequence[Event | PureEvent], delta: float) -> float:
    mu = _root_of_squares([mu_of_event(event) for event in events])
    return computed_epsilon(mu, delta) if events else 0.0


def _sum_of_epsilons(events: Sequence[PureEvent]) -> float:
    return (1.0 + 1e-15) * math.fsum(event.count * event.epsilon for event in events)


def _root_of_squares(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


def _split(gaussian: Sequence[Event], pure: Sequence[PureEvent], delta: float) -> tuple[Losses, list[float]]:
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
    losses: Losses = []
    room = _MAX_ATOMS
    # The formula for pure events loses most: they come first. For Gaussian ones it adds 1/(12 sigma^2) of it
    # to mu^2 = count/sigma^2: the groups where that is most come before the others.
    for epsilon, count in sorted(epsilons.items(), reverse=True):
        if len(losses) < 2 and count < room and delta >= _MIN_LATTICE_DELTA:
            losses.append(pure_loss(epsilon, count))
            room //= count + 1
        else:
            rest.append(mu_of_event(PureEvent(epsilon, count)))
    for sigma, count in sorted(sigmas.items(), key=lambda group: group[1] / group[0] ** 4, reverse=True):
        size = 2 * reach_of(sigma, count, tail_of(count, delta)) + 1
        if len(losses) < 2 and size <= room:
            losses.append(gaussian_loss(sigma, count, delta))
            room //= size
        else:
            rest.append(mu_of_event(Event(sigma, 1.0, count)))
    return losses, rest

"""The accounting against formulas at high precision, brute force, and another library; and its rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.errors import ParameterError
from pemeans.privacy.accounting import (
    MIN_SIGMA,
    SAFETY_MARGIN,
    Event,
    composed_epsilon,
    delta_of,
    discrete_mu,
    epsilon_of,
    log_delta_of,
    mu_of,
    mu_of_event,
    sigma_for,
)

epsilons = st.floats(math.log(1e-3), math.log(100)).map(math.exp)
deltas = st.floats(math.log(1e-300), math.log(0.5)).map(math.exp)
log_grid = settings(deadline=None, max_examples=200, derandomize=True)


def exact_log_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """The textbook formula, with digits enough for what cancels."""
    with mpmath.workdps(700):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        terms = mpmath.ncdf(-epsilon / mu + mu / 2), mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
        return mpmath.log(terms[0] - terms[1])


# --- Continuous Gaussians -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    [(1.0, 1.0, 0.12693673750664392), (1.0, 0.0, 0.3829249225480262)],
)
def test_delta_has_the_known_values(mu: float, epsilon: float, delta: float) -> None:
    assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-9, 1e-3, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e4])
def test_delta_is_right_to_eleven_digits_and_rounded_up(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)

    error = float(log_delta_of(mu, epsilon) - exact_log_delta(mu, epsilon))

    assert 0 <= error < 1e-11
    assert delta_of(mu, epsilon) == pytest.approx(math.exp(log_delta_of(mu, epsilon)), rel=1e-15)


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.0999999, 3.0), (0.1, 3.0), (0.04, 0.99), (0.04, 1.01), (1e-9, 0.0)]
)
def test_delta_is_right_where_its_formula_changes(mu: float, epsilon: float) -> None:
    assert 0 <= float(log_delta_of(mu, epsilon) - exact_log_delta(mu, epsilon)) < 1e-11


def test_delta_never_rounds_to_zero_nor_above_one() -> None:
    assert 0 < delta_of(1e-3, 100.0) < 1e-300
    assert delta_of(1e6, 0.0) == 1.0


@log_grid
@given(epsilons, deltas)
def test_the_way_to_mu_and_back_never_gains_epsilon(epsilon: float, delta: float) -> None:
    back = epsilon_of(mu_of(epsilon, delta), delta)

    assert epsilon * (1 - 1e-4) <= back <= epsilon


@log_grid
@given(st.floats(-6.0, 2.0).map(lambda x: 10**x), deltas)
def test_the_way_to_epsilon_and_back_never_gains_mu(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta)

    assert delta_of(mu, epsilon) <= delta
    if 1e-6 <= epsilon <= 1e4:
        assert mu * (1 - 1e-4) <= mu_of(epsilon, delta) <= mu


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.1])
def test_epsilon_grows_with_mu_and_shrinks_with_delta(delta: float) -> None:
    mus = np.geomspace(1e-3, 30, 200)
    curve = [epsilon_of(mu, delta) for mu in mus]

    assert all(low < high for low, high in pairwise(curve) if high > 0)
    assert all(
        epsilon_of(mu, 2 * delta) < epsilon for mu, epsilon in zip(mus, curve, strict=True) if epsilon > 0
    )


@log_grid
@given(epsilons, deltas, st.floats(1.001, 1.9))
def test_mu_grows_with_epsilon_and_with_delta(epsilon: float, delta: float, factor: float) -> None:
    assert mu_of(epsilon, delta) < mu_of(epsilon * factor, delta)
    assert mu_of(epsilon, delta) < mu_of(epsilon, delta * factor)


def test_no_epsilon_is_needed_when_delta_pays_for_all() -> None:
    mu = 0.01
    limit = math.erf(mu / math.sqrt(8))  # delta_of(mu, 0), the total variation of the two Gaussians

    assert epsilon_of(mu, limit * (1 + 1e-9)) == 0
    assert 0 < epsilon_of(mu, limit * (1 - 1e-9)) < 1e-8


# --- One discrete Gaussian ------------------------------------------------------------------------


def noise(sigma: float, reach: int) -> list[mpmath.mpf]:
    """The probabilities of -reach to reach."""
    weights = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)
    ]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


@pytest.mark.parametrize("sigma", [0.3, 0.45, 0.7, 1.0, 1.7, 3.0, 12.0, 200.0])
def test_discrete_mu_is_the_largest_step_between_quantiles(sigma: float) -> None:
    with mpmath.workdps(80):
        pmf = noise(sigma, math.ceil(20 * sigma) + 2)
        center = len(pmf) // 2
        upper = mpmath.fsum(pmf[center:])
        quantiles = []
        for t in range(min(math.ceil(9 * sigma) + 1, 25)):
            quantiles.append(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * upper))
            upper -= pmf[center + t]
        steps = [high - low for low, high in pairwise(quantiles)]

        assert 0 <= discrete_mu(sigma) / max(steps) - 1 < 1e-12
        assert max(steps) == steps[0]


@pytest.mark.parametrize("sigma", [64.0, 1e3, 1e6, 2.0**40, 2.0**45])
def test_discrete_mu_of_a_large_sigma_is_that_of_the_continuous_gaussian(sigma: float) -> None:
    series = (1 + 1 / (24 * sigma**2) + 7 / (1920 * sigma**4)) / sigma

    assert 0 <= discrete_mu(sigma) / series - 1 < 1e-12


@settings(deadline=None, derandomize=True)
@given(st.floats(-13.0, math.log10(5.3)).map(lambda x: 10**x))
def test_sigma_is_the_smallest_that_keeps_mu(mu: float) -> None:
    sigma = sigma_for(mu)

    assert discrete_mu(sigma) <= mu
    assert discrete_mu(sigma * (1 - 1e-12)) > mu


def test_sigma_is_never_below_what_the_noise_can_do() -> None:
    assert sigma_for(100.0) == MIN_SIGMA
    assert discrete_mu(MIN_SIGMA) == pytest.approx(5.335, abs=0.02)


@pytest.mark.parametrize("sigma", [0.3, 0.6, 1.0, 4.0])
@pytest.mark.parametrize("shift", [(2,), (3,), (1, 1), (2, 1)])
def test_a_vector_is_hidden_as_well_as_its_length_promises(sigma: float, shift: tuple[int, ...]) -> None:
    length = math.hypot(*shift)
    pmf = np.array([float(p) for p in noise(sigma, math.ceil(12 * sigma) + 4)])
    before, after = np.ones(1), np.ones(1)
    for step in shift:
        before = np.multiply.outer(before, np.pad(pmf, (0, step))).ravel()
        after = np.multiply.outer(after, np.pad(pmf, (step, 0))).ravel()

    mu = mu_of_event(Event(sigma, length))

    for epsilon in np.linspace(0, min(3 * mu**2, 300), 60):
        assert np.maximum(before - math.exp(epsilon) * after, 0).sum() <= delta_of(mu, epsilon) + 1e-14


# --- Composition ----------------------------------------------------------------------------------


def hockey_stick(events: Sequence[Event], epsilon: float, direction: int) -> mpmath.mpf:
    """The delta of events of sensitivity 1, from all their joint outcomes, for one order of the neighbors."""
    mass: dict[tuple[int, ...], mpmath.mpf] = {(): mpmath.mpf(1)}
    for event in events:
        reach = math.ceil(26 * event.sigma) + 2
        total = {0: mpmath.mpf(1)}
        for _ in range(event.count):
            grown: dict[int, mpmath.mpf] = {}
            for k, p in zip(range(-reach, reach + 1), noise(event.sigma, reach), strict=True):
                for s, q in total.items():
                    grown[s + k] = grown.get(s + k, mpmath.mpf(0)) + p * q
            total = grown
        mass = {(*key, s): p * q for key, p in mass.items() for s, q in total.items()}
    delta = mpmath.mpf(0)
    for sums, p in mass.items():
        # One way round x = S is drawn, with ratio p(x)/p(x - 1); the other way x = S + 1, with its inverse.
        loss = mpmath.fsum(
            (e.count - 2 * s if direction > 0 else 2 * s + e.count) / (2 * mpmath.mpf(e.sigma) ** 2)
            for e, s in zip(events, sums, strict=True)
        )
        delta += p * max(0, 1 - mpmath.exp(epsilon - loss))
    return delta


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6, 1e-100])
@pytest.mark.parametrize(
    "events",
    [
        [Event(0.3, 1)],
        [Event(0.5, 1)],
        [Event(0.5, 1, 2)],
        [Event(0.8, 1, 3)],
        [Event(1, 1, 3)],
        [Event(2.5, 1)],
        [Event(0.5, 1), Event(0.7, 1)],
    ],
    ids=str,
)
def test_small_noise_is_accounted_for_exactly(events: list[Event], delta: float, direction: int) -> None:
    epsilon = composed_epsilon(events, delta) / (1 + SAFETY_MARGIN)
    if epsilon == 0:
        assert hockey_stick(events, 0, direction) <= delta
        return

    at_most = hockey_stick(events, epsilon * (1 + 1e-8), direction)
    at_least = hockey_stick(events, epsilon * (1 - 1e-8), direction)

    assert at_most <= delta <= at_least


def theirs(events: Sequence[Event], delta: float, interval: float) -> float:
    """The epsilon of dp-accounting; events of another sensitivity than 1 are continuous Gaussians there."""
    parts = []
    for event in events:
        if event.sensitivity == 1:
            part = privacy_loss_distribution.from_discrete_gaussian_mechanism(
                event.sigma, value_discretization_interval=interval, use_connect_dots=True
            )
        else:
            part = privacy_loss_distribution.from_gaussian_mechanism(
                event.sigma / event.sensitivity, value_discretization_interval=interval, use_connect_dots=True
            )
        parts.append(part.self_compose(event.count) if event.count > 1 else part)
    composed = parts[0]
    for part in parts[1:]:
        composed = composed.compose(part)
    return float(composed.get_epsilon_for_delta(delta))


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize(
    ("sigma", "count"),
    [
        *[(0.5, 1), (0.5, 2), (0.5, 64), (0.7, 1), (0.7, 8), (1, 1), (1, 2), (1, 64), (1.5, 1), (1.5, 16)],
        *[(2, 1), (2, 8), (3, 1), (3, 64), (5, 2), (5, 16), (10, 1), (10, 64), (20, 8), (50, 1), (50, 64)],
        *[(63.9, 16), (64, 16), (200, 1), (200, 64)],
    ],
)
def test_agrees_with_dp_accounting_and_is_never_below(sigma: float, count: int, delta: float) -> None:
    ours = composed_epsilon([Event(sigma, 1, count)], delta)

    assert 0 <= ours / theirs([Event(sigma, 1, count)], delta, interval=4e-5 * ours) - 1 <= 1e-4


@pytest.mark.parametrize("delta", [1e-4, 1e-9])
@pytest.mark.parametrize(
    ("epsilon", "count"), [(1e-3, 1), (1e-3, 8), (1e-2, 1), (1e-2, 8), (0.1, 8), (1, 64), (10, 16), (100, 64)]
)
def test_agrees_with_dp_accounting_at_a_calibrated_sigma(epsilon: float, count: int, delta: float) -> None:
    event = Event(sigma_for(mu_of(epsilon, delta) / math.sqrt(count)), 1, count)

    ours = composed_epsilon([event], delta)

    assert ours <= epsilon
    assert 0 <= ours / theirs([event], delta, interval=5e-5 * ours) - 1 <= 1e-4


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
@pytest.mark.parametrize(
    "events",
    [
        [Event(0.6, 1), Event(2e6, 1e6)],
        [Event(1, 1, 4), Event(1e8, 5e6)],
        [Event(2, 1, 16), Event(1.2, 1, 2), Event(1e6, 5e5)],
        [Event(5, 1, 8), Event(3e5, 1e5, 2)],
        [Event(0.5, 1, 2), Event(0.8, 1, 3)],
    ],
    ids=str,
)
def test_mixed_noise_agrees_with_dp_accounting(events: list[Event], delta: float) -> None:
    ours = composed_epsilon(events, delta)

    assert 0 <= ours / theirs(events, delta, interval=4e-5 * ours) - 1 <= 1e-4
    assert ours < epsilon_of(math.hypot(*map(mu_of_event, events)), delta)


def test_a_third_small_sigma_costs_a_little_and_stays_safe() -> None:
    events = [Event(0.5, 1, 2), Event(0.8, 1, 3), Event(6.0, 1, 3)]

    ours = composed_epsilon(events, 1e-6)

    assert 1 <= ours / theirs(events, 1e-6, interval=1e-4 * ours) <= 1.001


@pytest.mark.parametrize("event", [Event(0.7, 2), Event(3, 2**0.5, 5), Event(20, 30)], ids=str)
def test_more_than_one_step_is_never_taken_for_one(event: Event) -> None:
    assert composed_epsilon([event], 1e-5) == epsilon_of(mu_of_event(event), 1e-5)


def test_counts_compose_by_the_square_root() -> None:
    once, often = mu_of_event(Event(100.0, 5.0)), mu_of_event(Event(100.0, 5.0, 9))

    assert often == pytest.approx(3 * once, rel=1e-14)
    assert once == pytest.approx(5 * discrete_mu(100.0), rel=1e-14)


@pytest.mark.parametrize("sigma", [0.6, 3.0, 40.0, 300.0])
def test_how_releases_are_grouped_or_ordered_does_not_matter(sigma: float) -> None:
    rest = Event(1e6, 1e5)
    together = composed_epsilon([Event(sigma, 1, 7), rest], 1e-7)

    assert composed_epsilon([Event(sigma, 1, 3), rest, *[Event(sigma, 1)] * 4], 1e-7) == pytest.approx(
        together, rel=1e-9
    )


@log_grid
@given(
    epsilons,
    deltas,
    st.lists(
        st.tuples(st.floats(0.01, 1), st.integers(1, 64), st.sampled_from([1.0, 1.0, 2.0**0.5, 2.0**30])),
        min_size=1,
        max_size=5,
    ),
)
def test_a_spent_budget_never_shows_more_than_was_asked(
    epsilon: float, delta: float, parts: list[tuple[float, int, float]]
) -> None:
    mu = mu_of(epsilon, delta)
    total = math.fsum(weight for weight, _, _ in parts)
    events = [
        Event(sigma_for(mu * math.sqrt(weight / total / count) / sensitivity), sensitivity, count)
        for weight, count, sensitivity in parts
    ]

    running = [composed_epsilon(events[:stop], delta) for stop in range(len(events) + 1)]

    assert running[0] == 0
    assert running[-1] <= epsilon
    assert running == sorted(running)
    if all(event.sigma > 64 for event in events):
        assert running[-1] >= epsilon * (1 - 1e-4)


def test_no_events_cost_nothing() -> None:
    assert composed_epsilon([], 1e-5) == 0


# --- Parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, "1", None])
@pytest.mark.parametrize("name", ["mu", "epsilon", "delta", "sigma", "sensitivity", "count"])
def test_nonsense_is_refused_by_name_and_value(name: str, bad: Any) -> None:
    calls: dict[str, list[Callable[[], object]]] = {
        "mu": [lambda: delta_of(bad, 1.0), lambda: epsilon_of(bad, 1e-5), lambda: sigma_for(bad)],
        "epsilon": [lambda: delta_of(1.0, bad), lambda: mu_of(bad, 1e-5)],
        "delta": [lambda: mu_of(1.0, bad), lambda: epsilon_of(1.0, bad), lambda: composed_epsilon([], bad)],
        "sigma": [lambda: discrete_mu(bad), lambda: Event(bad, 1.0)],
        "sensitivity": [lambda: Event(1.0, bad)],
        "count": [lambda: Event(1.0, 1.0, bad)],
    }
    for call in calls[name]:
        with pytest.raises(ParameterError, match=rf"^{name}=.*pass") as caught:
            call()
        assert f"{name}={bad!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("delta", lambda: mu_of(1.0, 0.0)),
        ("delta", lambda: epsilon_of(1.0, 1.0)),
        ("epsilon", lambda: mu_of(0.0, 0.1)),
        ("mu", lambda: sigma_for(0.0)),
        ("sigma", lambda: discrete_mu(0.29)),
        ("sensitivity", lambda: Event(1.0, 0.5)),
        ("count", lambda: Event(1.0, 1.0, 0)),
    ],
)
def test_values_at_the_edge_are_refused(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=f"^{name}="):
        call()


def test_a_broken_count_is_refused() -> None:
    half: Any = 1.5
    with pytest.raises(ParameterError, match=r"^count=1.5 is not a whole number"):
        Event(1.0, 1.0, half)


def test_single_precision_parameters_are_computed_with_in_double() -> None:
    single: Any = np.float32(0.7)

    assert discrete_mu(single) == discrete_mu(float(single))
    assert composed_epsilon([Event(single, 1)], 1e-5) == composed_epsilon([Event(float(single), 1)], 1e-5)

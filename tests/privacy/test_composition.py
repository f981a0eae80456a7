"""Composition against brute force, another library, and itself; and its rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from test_accounting import deltas, epsilons, log_grid, noise

from pemeans.privacy.accounting import SAFETY_MARGIN, delta_of, discrete_mu, epsilon_of, mu_of, sigma_for
from pemeans.privacy.composition import Event, PureEvent, composed_epsilon, mu_of_event


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


def test_probabilities_too_small_for_a_float_are_no_errors() -> None:
    """Also where a user wants to hear of every underflow: with so much budget there are some."""
    with np.errstate(all="raise"):
        assert composed_epsilon([PureEvent(800.0), Event(20.0, 1)], 1e-5) > 0

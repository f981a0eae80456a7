"""The accounting against formulas at high precision; and its rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.errors import ParameterError
from pemeans.privacy.accounting import delta_of, discrete_mu, epsilon_of, log_delta_of, mu_of, sigma_for
from pemeans.privacy.checks import MIN_SIGMA
from pemeans.privacy.composition import Event, composed_epsilon

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

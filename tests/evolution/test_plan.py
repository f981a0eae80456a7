"""The plan of the budget: all of it, no more, and by public facts alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.evolution.plan import MOST_ROUNDS, MOST_STEPS, VOTE_DIMENSIONS, plan

SIZES = st.tuples(
    st.integers(1, 10**9),
    st.integers(1, 2000),
    st.integers(1, 5000),
    st.floats(1e-4, 100) | st.just(math.inf),
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(SIZES)
def test_a_plan_spends_the_budget_and_no_more(sizes: tuple[int, int, int, float]) -> None:
    n, d, k, mu = sizes
    todo = plan(n, d, k, mu)
    frame = [todo.mean_share, todo.spread_share]
    shares = [*frame, todo.moment_share, todo.distance_share, todo.vote_share, todo.residual_share]
    assert min(shares) >= 0.01
    assert todo.stray_share >= 0
    assert sum(shares) + todo.stray_share == pytest.approx(1)
    assert todo.residual_share >= 0.25
    assert 2 <= todo.rounds <= MOST_ROUNDS
    assert 4 <= todo.steps <= MOST_STEPS
    assert todo.dimensions == min(d, VOTE_DIMENSIONS)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(SIZES, st.floats(1, 100))
def test_more_budget_never_buys_fewer_rounds_or_steps(
    sizes: tuple[int, int, int, float], more: float
) -> None:
    n, d, k, mu = sizes
    little, much = plan(n, d, k, mu), plan(n, d, k, mu * more)
    assert much.rounds >= little.rounds
    assert much.steps >= little.steps
    assert much.mean_share <= little.mean_share
    assert much.spread_share <= little.spread_share


def test_votes_get_more_where_clusters_are_hard_to_find_or_sums_are_cheap() -> None:
    scarce, middle, plenty = (plan(20_000, 64, 64, mu).vote_share for mu in (0.06, 0.12, 1.0))
    assert scarce > middle < plenty

"""Pure releases: their accounting alone and among Gaussian ones, and a budget whose delta is 0."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import mpmath  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pemeans.domain import Domain
from pemeans.errors import BudgetError, ParameterError
from pemeans.kernels.grid import GRID_UNIT, IntArray
from pemeans.privacy.accounting import delta_of, mu_of
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.composition import Event, PureEvent, composed_epsilon, mu_of_event, smallest_scale
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import GAUSSIAN, GEOMETRIC, LAPLACE, Ledger, Receipt
from pemeans.privacy.noise import NoiseSampler
from pemeans.rows.base import Question
from pemeans.rows.block import Block

FALSE_ALARM = 1e-7


def exact_epsilon(mu: float, coins: Sequence[tuple[float, int]], delta: float) -> float:
    """By the sum over all outcomes of all coins, each a Gaussian delta, in 25 digits."""
    with mpmath.workdps(25):
        gaussian = mpmath.mpf(mu)

        def delta_at(epsilon: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for truths in product(*(range(count + 1) for _, count in coins)):
                probability, loss = mpmath.mpf(1), mpmath.mpf(0)
                for (one, count), true in zip(coins, truths, strict=True):
                    chance = 1 / (1 + mpmath.exp(-mpmath.mpf(one)))
                    ways = mpmath.binomial(count, true)
                    probability *= ways * chance**true * (1 - chance) ** (count - true)
                    loss += (2 * true - count) * mpmath.mpf(one)
                left = epsilon - loss
                if mu:
                    one_delta = mpmath.ncdf(-left / gaussian + gaussian / 2)
                    one_delta -= mpmath.exp(left) * mpmath.ncdf(-left / gaussian - gaussian / 2)
                else:
                    one_delta = max(1 - mpmath.exp(left), mpmath.mpf(0))
                total += probability * one_delta
            return total

        low, high = mpmath.mpf(0), mpmath.mpf(32)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
        return float(high)


# --- accounting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mu", "coins", "delta"),
    [
        (0.0, [(0.1, 21)], 1e-5),
        (0.0, [(2.0, 3)], 1e-9),
        (0.0, [(1e-3, 40)], 1e-6),
        (0.3, [(0.014, 21)], 1.86e-5),
        (3.0, [(0.3, 21)], 1e-12),
        (0.5, [(0.1, 5), (0.4, 4)], 1e-6),
    ],
)
def test_composition_is_exact_and_rounded_up(mu: float, coins: list[tuple[float, int]], delta: float) -> None:
    events: list[Event | PureEvent] = [PureEvent(one, count) for one, count in coins]
    if mu:
        events.append(Event(GRID_UNIT / mu, GRID_UNIT))
    truth = exact_epsilon(mu, coins, delta)
    assert truth <= composed_epsilon(events, delta) <= truth * (1 + 5e-5)


@pytest.mark.parametrize(("epsilon", "n_rows"), [(1.0, 150), (4.0, 20_000)])
def test_one_gaussian_and_21_laplaces_cost_what_dp_accounting_says(epsilon: float, n_rows: int) -> None:
    delta = n_rows**-1.1
    alpha = 1.02 / mu_of(epsilon, delta)
    parameter = 1 / (20 * alpha)
    cells = math.ceil(parameter / (5e-6 * epsilon))  # the losses of Laplace noise are whole numbers of cells
    settings = {"value_discretization_interval": parameter / cells}
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(alpha, **settings)
    laplace = privacy_loss_distribution.from_discrete_laplace_mechanism(parameter, 1, **settings)
    theirs = gaussian.compose(laplace.self_compose(21)).get_epsilon_for_delta(delta)
    ours = composed_epsilon([Event(alpha * GRID_UNIT, GRID_UNIT), PureEvent(parameter, 21)], delta)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours >= exact_epsilon(1 / alpha, [(parameter, 21)], delta)


def test_without_delta_epsilons_add_up_and_gaussian_noise_has_none() -> None:
    assert composed_epsilon([PureEvent(0.25, 3), PureEvent(0.5)], 0.0) == pytest.approx(1.25, rel=1e-14)
    assert composed_epsilon([PureEvent(0.25), Event(100.0, 1)], 0.0) == math.inf
    assert composed_epsilon([], 0.0) == 0


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-4, 5), st.integers(1, 300)), min_size=1, max_size=5),
    st.floats(-250, -1).map(lambda power: 10**power),
    st.booleans(),
)
def test_pure_events_never_cost_more_than_their_sum_nor_than_their_mus(
    coins: list[tuple[float, int]], delta: float, with_gaussian: bool
) -> None:
    events: list[Event | PureEvent] = [PureEvent(one, count) for one, count in coins]
    gaussian = [Event(1000.0, 300.0)] if with_gaussian else []
    epsilon = composed_epsilon([*events, *gaussian], delta)
    apart = composed_epsilon(gaussian, delta) + sum(one * count for one, count in coins)
    assert epsilon <= apart * (1 + 3e-5)
    mu = math.sqrt(sum(mu_of_event(event) ** 2 for event in [*events, *gaussian]))
    assert epsilon <= composed_epsilon([Event(GRID_UNIT * 1e3, GRID_UNIT * 1e3 * mu)], delta) * (1 + 3e-5)


def test_more_groups_than_are_summed_over_are_still_covered() -> None:
    coins = [(0.1, 2), (0.2, 2), (0.3, 1), (0.5, 1)]
    epsilon = composed_epsilon([PureEvent(one, count) for one, count in coins], 1e-4)
    truth = exact_epsilon(0.0, coins, 1e-4)
    assert truth <= epsilon <= 1.1 * truth


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.999, 1.001, 5.0, 300.0])
def test_a_coins_mu_is_the_least_that_covers_it(epsilon: float) -> None:
    mu = mu_of_event(PureEvent(epsilon))
    with mpmath.workdps(60):
        chance = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        vertex = mpmath.ncdf(-mpmath.mpf(mu) / 2)
        assert vertex <= chance
        assert float(vertex / chance) == pytest.approx(1, rel=1e-6)
    for part in (0.0, 0.3, 0.9):
        with_coin = -math.expm1((part - 1) * epsilon) / (1 + math.exp(-epsilon))
        assert delta_of(mu, part * epsilon) >= with_coin * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_smallest_scale_is_private_and_smallest(epsilon: float) -> None:
    def events(scale: float) -> list[Event | PureEvent]:
        return [Event(scale * GRID_UNIT, GRID_UNIT), PureEvent(1 / (20 * scale), 21)]

    scale = smallest_scale(events, epsilon, 1e-6)
    assert composed_epsilon(events(scale), 1e-6) <= epsilon
    assert composed_epsilon(events(scale * (1 - 1e-8)), 1e-6) > epsilon


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_pure_events_that_make_no_sense_are_refused(bad: float) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon="):
        PureEvent(bad)


# --- the ledger -------------------------------------------------------------------------------------


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.floats(1e-3, 100),
    st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([1 / 3, 1 / 7]), st.integers(1, 2**30)), max_size=9),
)
def test_no_sequence_of_pure_shares_spends_more_than_epsilon(
    epsilon: float, wanted: list[tuple[float, int]]
) -> None:
    ledger = Ledger(epsilon, 0.0)
    for share, sensitivity in wanted:
        before = list(ledger.releases)
        try:
            ledger.charge_pure("sums", "BoxSums", sensitivity, share)
        except BudgetError:
            assert ledger.releases == before
    spent = sum(Fraction(release.sensitivity) / Fraction(release.sigma) for release in ledger.releases)
    assert spent <= Fraction(epsilon)
    assert receipt(ledger).epsilon_spent <= epsilon
    planned = epsilon * math.fsum(release.share for release in ledger.releases)
    assert float(spent) == pytest.approx(planned, rel=1e-8)


def receipt(ledger: Ledger) -> Receipt:
    return Receipt(ledger.epsilon, ledger.delta, tuple(ledger.releases), 1234, "ball of radius 1", False)


@pytest.mark.parametrize("parts", [1, 3, 7, 49, 1000])
def test_equal_pure_shares_add_up_to_the_whole(parts: int) -> None:
    ledger = Ledger(0.7, 0.0)
    for _ in range(parts):
        ledger.charge_pure("counts", "NearestVotes", 1, 1 / parts)
    assert 0.7 * (1 - 1e-6) < receipt(ledger).epsilon_spent <= 0.7
    with pytest.raises(BudgetError):
        ledger.charge_pure("one more", "NearestVotes", 1, 1 / parts)


def test_a_pure_budget_pays_for_no_gaussian_noise_and_the_other_way_round() -> None:
    pure, gaussian = Ledger(1.0, 0.0), Ledger(1.0, 1e-6)
    with pytest.raises(BudgetError, match="delta=0"):
        pure.charge("votes", "NearestVotes", 1, 0.5)
    with pytest.raises(BudgetError, match="delta=0"):
        pure.charge_noise("votes", "NearestVotes", 1, 100.0)
    with pytest.raises(BudgetError, match="delta=1e-06 "):
        gaussian.charge_pure("votes", "NearestVotes", 1, 0.5)
    assert pure.releases == gaussian.releases == []


def test_noise_of_a_given_size_is_refused_when_all_together_cost_too_much() -> None:
    ledger = Ledger(1.0, 1e-5)
    alpha = ledger.smallest_multiplier(
        lambda noise: [Event(noise * GRID_UNIT, GRID_UNIT), PureEvent(1 / (20 * noise), 2)]
    )
    ledger.charge_noise("leaf sums", "RangeSums", GRID_UNIT, alpha, GAUSSIAN)
    ledger.charge_noise("tree counts", "RangeCounts", 1, 20 * alpha)
    ledger.charge_noise("tree counts", "RangeCounts", 1, 20 * alpha)
    assert 0.9999 < receipt(ledger).epsilon_spent <= 1.0
    before = list(ledger.releases)
    with pytest.raises(BudgetError, match="epsilon=1"):
        ledger.charge_noise("tree counts", "RangeCounts", 1, 20 * alpha)
    with pytest.raises(BudgetError, match="epsilon=1"):
        ledger.charge_noise("leaf sums", "RangeSums", GRID_UNIT, 100 * alpha, GAUSSIAN)
    with pytest.raises(BudgetError):
        ledger.charge("votes", "NearestVotes", 1, 1e-3)
    assert ledger.releases == before


def test_gaussian_noise_of_a_given_size_alone_is_held_to_the_budget() -> None:
    ledger = Ledger(1.0, 1e-5)
    with pytest.raises(BudgetError):
        ledger.charge_noise("sums", "RangeSums", GRID_UNIT, 0.999 / ledger.mu, GAUSSIAN)
    ledger.charge_noise("sums", "RangeSums", GRID_UNIT, 1.001 / ledger.mu, GAUSSIAN)
    with pytest.raises(BudgetError):
        ledger.charge("votes", "NearestVotes", 1, 0.01)


def test_the_receipt_names_the_laws_and_survives_json() -> None:
    ledger = Ledger(1.0, 0.0)
    ledger.charge_pure("counts", "NearestVotes", 1, 0.5)
    ledger.charge_pure("swap", "SwapLosses", 2**30, 0.25, GEOMETRIC)
    ledger.charge_pure("swap", "SwapLosses", 2**30, 0.25, GEOMETRIC)
    made = receipt(ledger)
    document = json.loads(made.to_json())
    assert [release["law"] for release in document["releases"]] == [LAPLACE, GEOMETRIC, GEOMETRIC]
    assert [release["epsilon_so_far"] for release in document["releases"]] == pytest.approx([0.5, 0.75, 1.0])
    assert Receipt.from_dict(document) == made
    _, counts, swaps = made.table()
    assert counts[3] == "b=2"
    assert swaps[0] == "swap x 2"
    text = " ".join(str(made).split())
    assert "exact discrete Laplace and geometric" in text
    assert "epsilon 1 at delta 0" in text


def test_infinite_epsilon_means_no_noise() -> None:
    for ledger, charged in ((Ledger(math.inf, 0.0), "charge_pure"), (Ledger(math.inf, 1e-5), "charge_noise")):
        assert getattr(ledger, charged)("counts", "NearestVotes", 1, 0.5) == 0
        assert receipt(ledger).epsilon_spent == math.inf
    assert Ledger(math.inf, 1e-5).smallest_multiplier(lambda noise: [PureEvent(1 / noise)]) == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_a_budget_that_makes_no_sense_is_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon="):
        Ledger(epsilon, 0.0)


# --- the curator ------------------------------------------------------------------------------------


class Rows:
    """Rows that are asked through the curator only."""

    def total(self, statistic: Question) -> IntArray:
        return statistic(Block(np.zeros((1, 1), dtype=np.int32)))


class Constant:
    """A question whose exact answer is known."""

    sensitivity = l1_sensitivity = spread = 5

    def __init__(self, answer: IntArray) -> None:
        self.answer = answer

    def __call__(self, block: Block) -> IntArray:
        return self.answer


def curator_of(epsilon: float, delta: float, seed: int = 0) -> Curator:
    domain = Domain.ball(1.0).bind(n_rows=10, n_features=3)
    return Curator(Rows(), domain, Ledger(epsilon, delta), NoiseSampler(SeededBits(seed)))


def laplace_bins(noise: IntArray, scale: float) -> float:
    """The p-value of a chi-squared test against ``exp(-|z| / scale)``."""
    edge, q = math.ceil(5 * scale), math.exp(-1 / scale)
    inside = np.arange(1 - edge, edge)
    tail = np.array([q**edge])
    expected = np.concatenate([tail, q ** np.abs(inside) * (1 - q), tail]) / (1 + q)
    counts = np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1)
    return float(stats.chisquare(counts, expected * noise.size / expected.sum()).pvalue)


def test_pure_releases_have_the_laplace_noise_that_the_receipt_states() -> None:
    curator = curator_of(4.0, 0.0)
    exact = np.arange(200_000).reshape(2, -1)
    answer = curator.release_pure("sums", Constant(exact), 0.5)
    (release,) = curator.receipt("").releases
    assert release.sigma == answer.sigma == pytest.approx(5 / 2.0, rel=1e-6)
    assert answer.values.shape == exact.shape
    assert laplace_bins((answer.values - exact).ravel(), answer.sigma) > FALSE_ALARM


def test_releases_by_noise_have_that_noise() -> None:
    curator = curator_of(10.0, 1e-5)
    zeros = np.zeros(200_000, dtype=np.int64)
    gaussian = curator.release_gaussian("sums", Constant(zeros), 2.0)
    laplace = curator.release_laplace("counts", Constant(zeros), 0.5)
    assert (gaussian.sigma, laplace.sigma) == (10.0, 2.5)
    assert [release.law for release in curator.receipt("").releases] == [GAUSSIAN, LAPLACE]
    squares = float((gaussian.values**2).sum()) / 100
    assert FALSE_ALARM / 2 < stats.chi2.cdf(squares, zeros.size) < 1 - FALSE_ALARM / 2
    assert laplace_bins(laplace.values, 2.5) > FALSE_ALARM


def test_a_choice_is_charged_before_the_rows_are_asked_and_gives_an_index_only() -> None:
    curator = curator_of(1.0, 0.0)
    asked = []

    class Watching(Constant):
        def __call__(self, block: Block) -> IntArray:
            asked.append(len(curator.receipt("").releases))
            return super().__call__(block)

    chosen = curator.choose("swap", Watching(np.array([[10**6, 0], [10**6, 10**6]])), 0.5)
    assert type(chosen) is int
    assert chosen == 1
    assert asked == [1]
    (release,) = curator.receipt("").releases
    assert (release.law, release.sensitivity, release.share) == (GEOMETRIC, 5, 0.5)
    assert release.sigma == pytest.approx(5 / 0.5, rel=1e-6)


def test_infinite_epsilon_gives_exact_answers() -> None:
    pure, mixed = curator_of(math.inf, 0.0), curator_of(math.inf, 1e-5)
    exact = Constant(np.array([5, -7]))
    assert pure.release_pure("sums", exact, 0.5).values.tolist() == [5, -7]
    assert pure.choose("swap", exact, 0.5) == 1
    assert mixed.release_gaussian("sums", exact, 0.0).values.tolist() == [5, -7]
    assert mixed.release_laplace("sums", exact, 0.0).values.tolist() == [5, -7]

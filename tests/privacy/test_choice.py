"""The noisy minimum: its law, its privacy by exact probabilities, and the exponential mechanism beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pemeans.privacy.bits import SeededBits
from pemeans.privacy.choice import geometric, noisy_minimum
from pemeans.privacy.noise import NoiseSampler

FALSE_ALARM = 1e-7


def chances(losses: list[int], scale: float) -> npt.NDArray[np.float64]:
    """The probability of each choice, by the sum over what the winner's noise may be."""
    reach = np.arange(int(40 * scale) + max(losses) - min(losses) + 1)
    q = np.exp(-1 / scale)
    found = []
    for i, mine in enumerate(losses):
        wins = (1 - q) * q**reach
        for j, other in enumerate(losses):
            if j != i:  # the other's noise stays below this
                most = other - mine + reach + (1 if j > i else 0)
                wins = wins * np.where(most > 0, 1 - q ** np.maximum(most, 0), 0)
        found.append(wins.sum())
    return np.array(found)


def test_choices_have_their_exact_probabilities() -> None:
    losses, scale, draws = np.array([[3, 5], [3, 9]]), 2.5, 5_000
    noise = NoiseSampler(SeededBits(0))
    chosen = np.bincount([noisy_minimum(losses, scale, noise) for _ in range(draws)], minlength=4)
    expected = chances([3, 5, 3, 9], scale)
    assert expected.sum() == pytest.approx(1, abs=1e-9)
    assert stats.chisquare(chosen, expected * draws / expected.sum()).pvalue > FALSE_ALARM


def test_geometric_noise_has_its_law() -> None:
    drawn = geometric(4.0, 200_000, NoiseSampler(SeededBits(1)))
    assert drawn.size == 200_000
    q = np.exp(-1 / 4.0)
    expected = np.append((1 - q) * q ** np.arange(40), q**40)
    counts = np.bincount(np.minimum(drawn, 40), minlength=41)
    assert stats.chisquare(counts, expected * drawn.size).pvalue > FALSE_ALARM


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=2, max_size=5),
    st.floats(0.1, 3),
)
def test_no_row_changes_a_probability_by_more_than_exp_epsilon(
    choices: list[tuple[int, int]], epsilon: float
) -> None:
    with_row = [loss + added for loss, added in choices]
    without = [loss for loss, _ in choices]
    ratio = chances(with_row, 4 / epsilon) / chances(without, 4 / epsilon)
    assert np.exp(-epsilon) * (1 - 1e-9) <= ratio.min()
    assert ratio.max() <= np.exp(epsilon) * (1 + 1e-9)


def test_the_bound_is_nearly_reached() -> None:
    """Less noise than ``spread / epsilon`` would not do."""
    ratio = chances([20, 0 + 4], 4.0)[0] / chances([20 + 4, 0], 4.0)[0]
    assert ratio == pytest.approx(np.exp(2), rel=0.05)  # a range of 8 is two spreads of 4 at epsilon 1


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 400), min_size=2, max_size=6), st.floats(30, 100))
def test_it_loses_no_more_than_the_exponential_mechanism(losses: list[int], scale: float) -> None:
    weights = np.exp(-np.array(losses) / scale)
    exponential = weights @ losses / weights.sum()
    assert chances(losses, scale) @ losses <= exponential + 0.01 * scale

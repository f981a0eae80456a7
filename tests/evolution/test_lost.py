"""Lost centers go far; others do not."""

from __future__ import annotations

import numpy as np
import pytest

from pemeans.evolution.lost import WIDER, next_widening
from pemeans.evolution.sizes import Sizes
from pemeans.kernels.grid import FloatArray

SIZES = Sizes(100.0, np.full(5, 100.0), np.ones(5))


def sums_of(pulls: list[float], d: int = 3) -> FloatArray:
    """Sums of 100 residuals with means of these lengths."""
    return 100 * np.outer(pulls, np.full(d, 1 / np.sqrt(d)))


def test_a_center_whose_rows_all_pull_one_way_goes_farther() -> None:
    found = next_widening(np.ones(5), sums_of([1.0, 0.05, 0.0, 0.1, 0.0]), 1.0, SIZES)
    assert found.tolist() == [WIDER, 1, 1, 1, 1]


def test_it_goes_on_until_the_pull_is_gone() -> None:
    widening = np.ones(5)
    for pull, wanted in [(1.0, 4.0), (1.0, 16.0), (0.0, 1.0)]:
        widening = next_widening(widening, sums_of([pull, 0.0, 0.0, 0.0, 0.0]), 0.01, SIZES)
        assert widening[0] == pytest.approx(wanted)


def test_a_wide_radius_shrinks_to_what_is_left_and_what_noise_may_have_added() -> None:
    widening = np.array([16.0, 1.0, 1.0, 1.0, 1.0])
    found = next_widening(widening, sums_of([0.25, 0.0, 0.0, 0.0, 0.0]), 1.0, SIZES)
    believed = np.sqrt(25.0**2 - 3) / 100
    assert found[0] == pytest.approx(16 * (believed + np.sqrt(3) / 100))


def test_if_all_are_pulled_the_radius_itself_is_too_small() -> None:
    assert next_widening(np.ones(5), sums_of([0.9] * 5), 1.0, SIZES).tolist() == [1.0] * 5


@pytest.mark.parametrize("d", [2, 50])
def test_noise_alone_never_widens(d: int) -> None:
    """Four standard deviations: with normal tails once in 30,000; 2,000 draws of chi square stay below."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        found = next_widening(
            np.ones(5), 60 / np.sqrt(d) * rng.standard_normal((5, d)), 60 / np.sqrt(d), SIZES
        )
        assert found.tolist() == [1.0] * 5

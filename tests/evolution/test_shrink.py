"""James-Stein gains: noise is shrunk away, signal stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.evolution.shrink import PRIOR_WEIGHT, SMALLEST_BLOCK, blocks, shrink


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 600))
def test_blocks_cover_every_coordinate_once(dimensions: int) -> None:
    found = blocks(dimensions, min(12, dimensions))
    covered = [j for block in found for j in range(block.start, block.stop)]
    assert covered == list(range(dimensions))
    widths = [block.stop - block.start for block in found]
    assert all(width >= SMALLEST_BLOCK for width in widths[1:])


@pytest.mark.parametrize(
    ("dimensions", "edges"),
    [(5, [0, 5]), (12, [0, 12]), (15, [0, 15]), (16, [0, 12, 16]), (100, [0, 12, 24, 48, 96, 100])],
)
def test_blocks_double_and_short_ones_join_the_one_before(dimensions: int, edges: list[int]) -> None:
    assert [b.start for b in blocks(dimensions, min(12, dimensions))] == edges[:-1]


def test_without_noise_sums_are_believed() -> None:
    sums = np.random.default_rng(0).standard_normal((7, 40))
    assert (shrink(sums, 0.0, 12) == sums).all()
    assert (shrink(np.zeros((7, 40)), 0.0, 12) == 0).all()


def test_the_gain_is_that_of_the_formula() -> None:
    """K = max(0, 1 - b sigma^2 / ((b s_j + 100 mean s) / (b + 100)))."""
    sums = np.array([[3.0, 4.0], [0.0, 1.0]])
    b, powers = 2, np.array([25.0, 1.0])
    expected = (b * powers + PRIOR_WEIGHT * powers.mean()) / (b + PRIOR_WEIGHT)
    gain = 1 - b * 1.5**2 / expected
    np.testing.assert_allclose(shrink(sums, 1.5, 2), gain[:, np.newaxis] * sums)
    assert (shrink(sums, 3.0, 2) == 0).all()


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1e3), st.integers(1, 60), st.integers(1, 9))
def test_a_gain_never_turns_or_stretches(seed: int, sigma: float, d: int, k: int) -> None:
    sums = np.random.default_rng(seed).standard_normal((k, d)) * 10
    shrunk = shrink(sums, sigma, min(d, 12))
    assert (shrunk * sums >= 0).all()
    assert (np.abs(shrunk) <= np.abs(sums)).all()


@pytest.mark.parametrize(("signal", "most"), [(0.0, 0.05), (0.3, 0.25), (3.0, 1.0)])
def test_shrunk_sums_err_less_than_noisy_ones(signal: float, most: float) -> None:
    """How much of the noise's error is left, for 200 clusters in 64 dimensions (seeded)."""
    rng = np.random.default_rng(1)
    truth = signal * rng.standard_normal((200, 64))
    noisy = truth + rng.standard_normal((200, 64))
    error = ((shrink(noisy, 1.0, 12) - truth) ** 2).mean() / ((noisy - truth) ** 2).mean()
    assert error < most


def test_signal_in_one_block_does_not_bring_in_the_noise_of_others() -> None:
    rng = np.random.default_rng(2)
    noisy = rng.standard_normal((50, 100))
    noisy[:, :12] += 20
    shrunk = shrink(noisy, 1.0, 12)
    assert np.abs(shrunk[:, :12] - noisy[:, :12]).max() < 0.2
    assert (shrunk[:, 12:] ** 2).sum() < 0.05 * (noisy[:, 12:] ** 2).sum()

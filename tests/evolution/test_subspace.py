"""Scale and directions from one noisy second moment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, curator_of

from pemeans.evolution.subspace import LEAST_VARIANCE, NOISE_FLOOR, Subspace, find_subspace, without_noise
from pemeans.kernels.grid import FloatArray, Projection, to_grid
from pemeans.privacy.statistics import DIAGONAL, MOMENT_BITS


def rows_of(n: int, widths: list[float]) -> FloatArray:
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((len(widths), len(widths))))
    return np.asarray((rng.standard_normal((n, len(widths))) * widths) @ turn)


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_without_noise_the_basis_is_that_of_the_second_moment(dimensions: int) -> None:
    rows = rows_of(4000, [0.2, 0.1, 0.05, 0.02, 0.01])
    space = find_subspace(curator_of(rows, math.inf), dimensions, 0.5)
    values, vectors = np.linalg.eigh(rows.T @ rows / 4000)
    np.testing.assert_allclose(space.variances, values[::-1][:dimensions], rtol=0.05, atol=1e-5)
    assert np.abs((space.view_basis * vectors[:, ::-1][:, :dimensions]).sum(axis=0)).min() > 0.99
    assert space.basis.shape == (5, 5)
    assert space.view_basis.shape == (5, dimensions)
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(5), atol=1e-12)


def test_the_view_is_the_basis() -> None:
    rows = rows_of(500, [0.3, 0.2, 0.1])
    space = find_subspace(curator_of(rows), 2, 0.5)
    grid = to_grid(rows)
    assert np.abs(space.view(grid) - grid @ space.view_basis).max() < 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("d", [1, 2, 50])
def test_with_noise_the_basis_stays_orthonormal_and_variances_sane(d: int, epsilon: float) -> None:
    space = find_subspace(curator_of(rows_of(200, [0.01] * d), epsilon), min(d, 12), 0.05)
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(d), atol=1e-9)
    assert (np.diff(space.variances) <= 0).all()
    assert ((space.variances >= LEAST_VARIANCE) & (space.variances <= 1)).all()


def test_directions_are_found_in_spite_of_the_noise() -> None:
    """The share of all variance in the first 2 of 30 directions (seeded, far from the limit)."""
    rows = rows_of(10_000, [0.3, 0.3] + [0.01] * 28)
    basis = find_subspace(curator_of(rows, 1.0), 2, 0.06).view_basis
    assert ((rows @ basis) ** 2).sum() / (rows**2).sum() > 0.95


def test_what_is_below_the_noise_is_lifted_to_its_floor() -> None:
    d, n = 8, 1000
    sigma = 100.0 * DIAGONAL * 2.0 ** (2 * MOMENT_BITS)
    space = find_subspace(Scripted(n, d, lambda _: np.zeros(d * (d + 1) // 2), sigma), 4, 0.1)
    np.testing.assert_allclose(space.variances, NOISE_FLOOR * np.sqrt(2 * d) * 100 / n)
    drowned = find_subspace(Scripted(n, d, lambda _: np.zeros(d * (d + 1) // 2), 1e9 * sigma), 4, 0.1)
    assert (drowned.variances == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_taken_out_of_the_variances(seed: int) -> None:
    """All directions of 60 vary by 0.01; the largest eigenvalues of the noisy moment are four times that."""
    rows = 0.1 * np.random.default_rng(0).standard_normal((4000, 60))
    curator = curator_of(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1), 1.0, seed)
    space = find_subspace(curator, 12, 0.04)
    along = ((rows @ space.view_basis) ** 2).mean(axis=0)
    assert 0.5 < space.variances.sum() / along.sum() < 3


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.floats(-5, 50), min_size=1, max_size=20), st.floats(0, 10))
def test_variances_keep_their_order_and_lie_between_what_is_seen_and_the_usual(
    values: list[float], edge: float
) -> None:
    falling = np.sort(np.array(values))[::-1]
    kept, level = without_noise(falling, edge), np.median(falling)
    assert (np.diff(kept) <= 1e-9).all()
    assert (np.abs(kept - level) <= np.abs(falling - level) + 1e-9).all()
    np.testing.assert_allclose(without_noise(falling, 0.0), falling, atol=1e-9)


# --- how wide a cluster is -------------------------------------------------------------------------


def of_variances(variances: list[float]) -> Subspace:
    p = len(variances)
    return Subspace(np.eye(p), np.array(variances), Projection(np.eye(p)))


@pytest.mark.parametrize(("p", "k"), [(1, 10), (2, 100), (12, 64), (3, 1)])
def test_equal_variances_are_shared_equally(p: int, k: int) -> None:
    np.testing.assert_allclose(of_variances([0.04] * p).cluster_spread(k), 0.2 * k ** (-1 / p) * np.ones(p))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(st.floats(1e-5, 1.0), min_size=1, max_size=12).map(lambda v: sorted(v, reverse=True)),
    st.integers(1, 1000),
)
def test_k_clusters_buy_log_k_nats(variances: list[float], k: int) -> None:
    """Reverse water-filling: log(l / spread^2) / 2 adds up to log k; lower spreads are equal."""
    spread = of_variances(variances).cluster_spread(k)
    kept = spread**2
    assert (kept <= np.array(variances) * (1 + 1e-9)).all()
    assert np.log(np.array(variances) / kept).sum() / 2 == pytest.approx(np.log(k), abs=1e-6)
    lowered = kept < np.array(variances) * (1 - 1e-9)
    if lowered.any():
        np.testing.assert_allclose(kept[lowered], kept.max(), rtol=1e-6)


def test_narrow_directions_are_left_alone() -> None:
    """A line: two clusters halve its length, and its width stays."""
    spread = of_variances([0.25, 1e-4]).cluster_spread(2)
    np.testing.assert_allclose(spread, [0.25, 0.01])

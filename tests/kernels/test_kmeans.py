"""Weighted k-means: the twins agree bit for bit, and the centers are as good as scikit-learn's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from pemeans.kernels.grid import FloatArray, GridArray, to_float, to_grid
from pemeans.kernels.kmeans import STEPS, kmeans_in_c, kmeans_in_numpy, lloyd, weighted_kmeans, weighted_loss
from pemeans.kernels.native import native


def instance(seed: int) -> tuple[GridArray, FloatArray, int]:
    """Points as in a selection: blobs or noise, with votes of very different size."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.choice([1, 2, 3, 8, 16, 40])), int(rng.choice([1, 2, 4, 9, 16]))
    n = int(rng.integers(k, 40 * k + 20))
    if seed % 3:
        blobs, _ = make_blobs(n, d, centers=k + seed % 4, cluster_std=1.0, random_state=seed)
        points = to_grid(blobs / np.abs(blobs).max() / np.sqrt(d))
    else:
        points = to_grid(rng.standard_normal((n, d)) / np.sqrt(d) / 3)
    weights = np.ceil(rng.pareto(1.0, size=n) * 10) + 1
    return points, weights, k


def inertia(points: GridArray, weights: FloatArray, centers: FloatArray) -> float:
    gaps = ((to_float(points)[:, np.newaxis] - centers) ** 2).sum(axis=2)
    return float((weights * gaps.min(axis=1)).sum())


@pytest.mark.skipif(native is None, reason="without a C compiler there is only the NumPy twin")
@pytest.mark.parametrize("seed", range(60))
def test_twins_agree_bit_for_bit(seed: int) -> None:
    points, weights, k = instance(seed)
    if seed % 5 == 0:
        points[: len(points) // 2] = points[0]  # duplicates: ties in seeding and in assignment
    rng = np.random.default_rng(seed)
    trials = 2 + int(np.log(k))
    uniforms = rng.random((3, 1 + (k - 1) * trials))
    if seed % 7 == 0:
        uniforms[:] = np.nextafter(1, 0)
    tolerance = 0.0 if seed % 2 else 1e-4 * float(points.astype(float).var(axis=0).mean())
    arguments = (points, weights, uniforms, k, trials, STEPS, tolerance)
    assert (kmeans_in_c(*arguments) == kmeans_in_numpy(*arguments)).all()


@pytest.mark.skipif(native is None, reason="without a C compiler there is only the NumPy twin")
@pytest.mark.parametrize("seed", range(20))
def test_twins_agree_on_ties(seed: int) -> None:
    """On a lattice of equal weights many seeds are equally good, and many points halfway."""
    rng = np.random.default_rng(seed)
    lattice = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 2), axis=-1).reshape(-1, 2) * 1000
    points = rng.permutation(lattice).astype(np.int32)
    uniforms = rng.random((5, 1 + 5 * 3))
    arguments = (points, np.ones(25), uniforms, 6, 3, seed % 3, 0.0)
    assert (kmeans_in_c(*arguments) == kmeans_in_numpy(*arguments)).all()


def test_centers_are_as_good_as_those_of_scikit_learn() -> None:
    """The same number of starts: on average not more than 2 % worse, over 80 instances."""
    ratios = []
    for seed in range(80):
        points, weights, k = instance(seed)
        if len(np.unique(points, axis=0)) <= k:
            continue
        ours = weighted_kmeans(points, weights, k, 10, np.random.default_rng(seed))
        theirs = KMeans(k, n_init=10, random_state=seed).fit(to_float(points), sample_weight=weights)
        ratios.append(
            inertia(points, weights, to_float(ours)) / inertia(points, weights, theirs.cluster_centers_)
        )
    assert len(ratios) > 60
    assert np.mean(ratios) < 1.02
    assert np.max(ratios) < 1.25


def test_weights_count_as_repeated_points() -> None:
    points = np.array([[0], [100], [1000]], dtype=np.int32)
    (center,) = weighted_kmeans(points, np.array([3.0, 1.0, 1.0]), 1, 1, np.random.default_rng(0))
    assert center.tolist() == [220]


def test_as_many_centers_as_points() -> None:
    points = np.array([[5, 5], [5, 6], [-7, 0]], dtype=np.int32)
    centers = weighted_kmeans(points, np.array([1.0, 1e6, 3.0]), 3, 10, np.random.default_rng(0))
    assert sorted(centers.tolist()) == sorted(points.tolist())


def test_the_same_seed_gives_the_same_centers() -> None:
    points, weights, k = instance(4)
    one, other = (weighted_kmeans(points, weights, k, 2, np.random.default_rng(1)) for _ in range(2))
    assert (one == other).all()


def test_lloyd_never_makes_things_worse_and_leaves_empty_centers() -> None:
    points, weights, _ = instance(8)
    start = np.concatenate([points[:3], [points[0] + 1_000_000]]).astype(np.int32)
    losses = [weighted_loss(points, weights, lloyd(points, weights, start, steps)) for steps in range(6)]
    # Rounding to the grid moves a center by at most half a unit in every coordinate.
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(losses))
    far = np.array([[4_000_000]], dtype=np.int32)
    near = np.array([[10], [12]], dtype=np.int32)
    assert lloyd(near, np.ones(2), np.concatenate([near[:1], far]), 10).tolist() == [[11], [4_000_000]]

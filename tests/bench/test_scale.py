from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.cluster import KMeans

from pemeans.bench.datasets import normalize
from pemeans.bench.scale import (
    MOST_OUTLIERS,
    OUTLIER,
    cluster_sizes,
    make_clusters,
    make_scale,
    random_covariance,
    stacked_simplexes,
)
from pemeans.bench.separation import Pairs, ratio_of, separation_of


def test_ratio_is_the_largest_over_all_directions() -> None:
    rng = np.random.default_rng(0)
    centers = 10 * rng.standard_normal((2, 5))
    covariances = np.array([random_covariance(5, rng) for _ in range(2)])

    def minus_ratio(a: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        spread = sum(np.sqrt(a @ covariance @ a) for covariance in covariances)
        return -float(abs(a @ (centers[1] - centers[0])) / spread)

    best = max(-minimize(minus_ratio, rng.standard_normal(5)).fun for _ in range(20))
    assert Pairs(centers, covariances).ratios()[0] == pytest.approx(best, rel=1e-6)


def test_separation_index_of_the_packages_documentation() -> None:
    # Two unit variance clusters at distance A: 0.01 for A = 4, 0.21 for A = 6, 0.34 for A = 8.
    assert [round(separation_of(distance / 2), 2) for distance in (4, 6, 8)] == [0.01, 0.21, 0.34]
    assert separation_of(ratio_of(0.2)) == pytest.approx(0.2)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (4, 4), (16, 4), (8, 32)])
def test_every_cluster_is_as_far_from_its_nearest_neighbor_as_wanted(k: int, d: int) -> None:
    clusters = make_clusters(k, d, 0.2, np.random.default_rng(k * d))
    ratios = Pairs(clusters.centers, clusters.covariances).ratios()
    matrix = np.full((k, k), np.inf)
    matrix[np.triu_indices(k, 1)] = ratios
    nearest = np.minimum(matrix, matrix.T).min(axis=1)
    assert [separation_of(float(r)) for r in nearest] == pytest.approx([0.2] * k, abs=1e-5)


def test_simplexes_have_equal_edges_and_are_stacked() -> None:
    corners = stacked_simplexes(9, 4)
    gaps = np.linalg.norm(corners[:, np.newaxis] - corners, axis=2)
    assert gaps[:5, :5][~np.eye(5, dtype=bool)] == pytest.approx(1.0)
    assert gaps[1:5, 5:9].diagonal() == pytest.approx(1.0)  # every corner but the first has its copy one up
    assert gaps[0, 5] == pytest.approx(2.0)
    assert gaps[np.triu_indices(9, 1)].min() == pytest.approx(1.0)


def test_sizes_rise_by_equal_steps_and_leave_room_for_outliers() -> None:
    # As in the published scale_16_16 and scale_64_4: sizes of clusters with 96 and 53 outliers.
    assert cluster_sizes(16, 96)[[0, 1, 2, 3, 14, 15]].tolist() == [73, 146, 219, 291, 1092, 1165]
    assert cluster_sizes(64, 53)[[0, 1, 2, 20]].tolist() == [5, 10, 14, 100]
    assert cluster_sizes(64, 53).sum() + 53 == 10_002


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_outliers(seed: int) -> None:
    X, y = make_scale(4, 8, seed)
    inside, outside = X[y != OUTLIER], X[y == OUTLIER]
    assert abs(len(X) - 10_000) <= 4
    assert len(outside) <= MOST_OUTLIERS
    reach = 4 * inside.std(axis=0)
    assert (np.abs(outside - inside.mean(axis=0)) <= reach + 1e-9).all()
    assert (np.diff(np.bincount(y[y != OUTLIER])) > 900).all()


def test_same_seed_same_data() -> None:
    assert (make_scale(4, 4, 1)[0] == make_scale(4, 4, 1)[0]).all()
    assert not np.array_equal(make_scale(4, 4, 1)[0][:100], make_scale(4, 4, 2)[0][:100])


@pytest.mark.parametrize(
    ("k", "d", "lowest", "highest"),
    [(4, 4, 0.0744, 0.1012), (4, 16, 0.1963, 0.3788), (16, 4, 0.0232, 0.0381)],
)
def test_as_hard_as_the_packages_data(k: int, d: int, lowest: float, highest: float) -> None:
    """The median non-private area of five draws lies within the range of eight draws of the R package."""
    areas = []
    for seed in range(5):
        X = normalize(make_scale(k, d, seed)[0])
        areas.append(3.75 * KMeans(k, n_init=1, random_state=0).fit(X).inertia_ / len(X))
    assert lowest < np.median(areas) < highest

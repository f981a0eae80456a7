"""The reference row is scikit-learn's own k-means with one start."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from pemeans.baselines.nonprivate import NonPrivateKMeans


def test_it_is_scikit_learns_k_means_with_one_start() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 3))
    ours = NonPrivateKMeans(5, random_state=3).fit(rows)
    theirs = KMeans(5, n_init=1, random_state=3).fit(rows)
    assert np.array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert np.array_equal(ours.predict(rows), theirs.predict(rows))
    assert np.array_equal(ours.fit_predict(rows), theirs.labels_)
    assert np.array_equal(ours.transform(rows), theirs.transform(rows))
    assert ours.score(rows) == theirs.score(rows)
    assert list(ours.get_feature_names_out()) == [f"nonprivatekmeans{i}" for i in range(5)]


def test_generators_are_taken_as_seeds() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 3))
    one, again = (
        NonPrivateKMeans(9, random_state=np.random.default_rng(1)).fit(rows).cluster_centers_
        for _ in range(2)
    )
    assert np.array_equal(one, again)


def test_it_is_composed_not_subclassed() -> None:
    assert not issubclass(NonPrivateKMeans, KMeans)
    with pytest.raises(NotFittedError):
        NonPrivateKMeans().predict([[0.0]])


def test_it_passes_scikit_learns_checks() -> None:
    check_estimator(NonPrivateKMeans(n_clusters=2))

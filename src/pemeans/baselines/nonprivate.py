"""k-means without privacy: the reference that private methods are measured by."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted


class NonPrivateKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """scikit-learn's KMeans with a single start, as in the paper's table: not private at all.

    Parameters
    ----------
    n_clusters : int, default 8
        How many centers to find.
    n_init : int, default 1
        Starts of k-means++; the best one counts.
    random_state : int, RandomState or Generator, optional
        A seed.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centers.

    Examples
    --------
    >>> model = NonPrivateKMeans(n_clusters=2, random_state=0).fit([[0.0], [2.0], [100.0], [102.0]])
    >>> sorted(model.cluster_centers_.ravel().tolist())
    [1.0, 101.0]
    """

    def __init__(self, n_clusters: int = 8, *, n_init: int = 1, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centers of the rows."""
        seed = self.random_state
        if isinstance(seed, np.random.Generator):  # scikit-learn takes none
            seed = int(seed.integers(2**32))
        self._kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed).fit(X)
        self.n_features_in_ = self._kmeans.n_features_in_
        if hasattr(self._kmeans, "feature_names_in_"):
            self.feature_names_in_ = self._kmeans.feature_names_in_
        self.cluster_centers_ = self._kmeans.cluster_centers_
        self.labels_ = self._kmeans.labels_
        return self

    def predict(self, X: Any) -> Any:
        """The number of the nearest center of every row."""
        check_is_fitted(self)
        return self._kmeans.predict(X)

    def transform(self, X: Any) -> Any:
        """Distances of every row to every center."""
        check_is_fitted(self)
        return self._kmeans.transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest center."""
        check_is_fitted(self)
        return float(self._kmeans.score(X))

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` makes, for scikit-learn to name."""
        return len(self.cluster_centers_)

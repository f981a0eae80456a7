"""scikit-learn faces: one thin class per method, all fit the same way."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pemeans.domain import Domain
from pemeans.errors import (
    ModelFileError,
    ParameterError,
    PemeansError,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from pemeans.evolution.loop import Iteration, Settings, Watcher, pe_means
from pemeans.evolution.project import hdpe_means
from pemeans.evolution.recommended import Report, dp_kmeans
from pemeans.evolution.select import Selection
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import FloatArray, GridArray, to_float
from pemeans.model import Model, read_model
from pemeans.parameters import check_parameters, check_size
from pemeans.privacy.bits import SeededBits, SystemBits
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.progress import Progress, showing_progress
from pemeans.rows.base import ReadableSource, Source, engine_of, open_readable, opened
from pemeans.rows.table import check_same_features, read_part

Labels = npt.NDArray[np.int32]
RandomState = int | np.random.RandomState | np.random.Generator | None

NO_NOISE = "inf"
"""How a model file writes an infinite epsilon."""
NOT_SAVED = ("random_state", "domain", "n_jobs", "progress")
"""Parameters that a model file leaves out: a seed would let its reader subtract the noise."""
FROM_DATA_NOTE = "the domain was read from the private rows, which the guarantee does not cover"


class PrivateKMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """What all methods share: parameters, fitting through a curator, and predictions."""

    _pure: ClassVar[bool] = False
    """Whether the method keeps pure differential privacy, with a delta of 0."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        domain: Domain | str | None = None,
        n_samples: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[Progress], None] = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.n_samples = n_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centers of private rows.

        Parameters
        ----------
        X : array-like, data frame or path, of shape (n_samples, n_features)
            The private rows: NumPy, pandas, polars or Arrow; finite numbers only. Rows that need not fit
            into memory: a Parquet file, a folder or a pattern of such files (``"visits/*.parquet"``), a
            ``pyarrow.dataset.Dataset``, or a NumPy memmap.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self
            The fitted estimator; it keeps no row, and nothing that was not released with noise.
        """
        values = check_parameters(self.get_params(deep=False))
        with opened(X, values["n_jobs"]) as source:
            n_rows = values["n_samples"] or source.n_rows
            check_size(values["n_clusters"], n_rows)
            domain = self._bound_domain(source, n_rows)
            bits, rng = self._randomness()
            ledger = Ledger(values["epsilon"], self._delta(values["delta"], n_rows))
            rows = source.rows(domain, values["n_jobs"])
            curator = Curator(rows, domain, ledger, NoiseSampler(bits, ledger.tail_bits))
            with showing_progress(self.progress) as show:
                found = self._cluster(curator, values, rng, _in_units(domain, show))
            self._remember_features(source.names, source.n_features)
            self._fitted_with = _saved(values)
            self.cluster_centers_ = domain.from_unit(to_float(found.centers))
            self.cluster_sizes_ = found.sizes
            self.domain_ = domain
            notes = (FROM_DATA_NOTE,) if domain.from_data else ()
            self.receipt_ = curator.receipt(domain.describe(source.names), notes)
        return self

    def _delta(self, asked: float | None, n_rows: int) -> float:
        """The delta of the guarantee: the paper's ``n**-1.1`` by default, and 0 where it is pure."""
        if not self._pure:
            return asked or max(n_rows, 2) ** -1.1
        if asked is not None:
            raise ParameterError(f"delta={asked!r}, but {type(self).__name__} is pure; leave it None")
        return 0.0

    @abstractmethod
    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        """The method itself: it sees the rows through the curator only."""

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit, then label the same rows: the labels are as private as the rows, handle them so."""
        return self.fit(X).predict(X)

    def predict(self, X: Any) -> Any:
        """The number of the nearest center of every row, in the domain's metric.

        Rows are taken as they are, also outside the domain. Labels of private rows are private.

        Returns
        -------
        int32 array, or a lazy column
            Of a Dask array a Dask array, of a Dask or Spark data frame a column of it, not yet computed.
        """
        engine = engine_of(X)
        if engine is None:
            return np.concatenate(list(self.iter_predict(X)))
        check_is_fitted(self)
        traveling = copy(self)
        traveling.progress = False  # what the user watches a fit with may not be able to travel
        return engine.map_rows(X, traveling._labels_of_part)

    def iter_predict(self, X: Any) -> Iterator[Labels]:
        """What `predict` says, for some rows at a time: for more labels than fit into memory."""
        yield from map(_nearest, self._squared_distances(open_readable(X)))

    def _labels_of_part(self, part: Any) -> Labels:
        """The labels of a part of the rows on a worker, which may well be empty."""
        labels = map(_nearest, self._squared_distances(read_part(part)))
        whole: Labels = np.concatenate([np.empty(0, dtype=np.int32), *labels])
        return whole

    def transform(self, X: Any) -> FloatArray:
        """Distances of every row to every center, in the domain's metric."""
        return np.concatenate([np.sqrt(squared) for squared in self._squared_distances(open_readable(X))])

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest center, as scikit-learn's KMeans has it.

        Computed on private rows it is an exact private figure: it must not be published.
        """
        return -sum(float(squared.min(axis=1).sum()) for squared in self._squared_distances(open_readable(X)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file, which holds released and public values only."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        Model(
            method=type(self).__name__,
            parameters=self._fitted_with,
            feature_names=None if names is None else tuple(names),
            domain=self.domain_,
            cluster_centers=self.cluster_centers_,
            cluster_sizes=self.cluster_sizes_,
            receipt=self.receipt_,
        ).save(path)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        plain = str(super().__repr__(N_CHAR_MAX))
        seeded = self.random_state is not None or (hasattr(self, "receipt_") and self.receipt_.seeded)
        return f"{plain}  # seeded noise: reproducible, not private" if seeded else plain

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` makes, for scikit-learn to name."""
        return len(self.cluster_centers_)

    def _bound_domain(self, source: Source, n_rows: int) -> Domain:
        """The public domain, or with a warning one read from the private rows."""
        domain = self.domain if isinstance(self.domain, Domain) else source.domain_of_rows()
        if domain.from_data:
            warnings.warn(
                f"{FROM_DATA_NOTE}: the centers can reveal the most extreme row. Pass public bounds instead, "
                "domain=Domain.box(lower, upper)",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        return domain.bind(n_rows, source.n_features)

    def _randomness(self) -> tuple[SystemBits | SeededBits, np.random.Generator]:
        """Bits for the noise, and a generator for the candidates: two streams that share nothing."""
        seed = self.random_state
        if seed is None:
            return SystemBits(), np.random.default_rng()
        warnings.warn(
            "random_state is set, so the noise can be reproduced and subtracted: this result is not private. "
            "Leave random_state=None for a release",
            SeededNoiseWarning,
            stacklevel=3,
        )
        if isinstance(seed, np.random.RandomState):
            entropy = [int(word) for word in seed.randint(0, 2**32, size=8, dtype=np.uint64)]
        elif isinstance(seed, np.random.Generator):
            entropy = [int(word) for word in seed.integers(0, 2**32, size=8)]
        else:
            entropy = [int(seed)]
        for_noise, for_candidates = np.random.SeedSequence(entropy).spawn(2)
        return SeededBits(for_noise), np.random.default_rng(for_candidates)

    def _remember_features(self, names: Sequence[str] | None, width: int) -> None:
        """Keep the width and the names of the columns, as scikit-learn does."""
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _squared_distances(self, source: ReadableSource) -> Iterator[FloatArray]:
        """Of some rows at a time, so that they need not all be in memory."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        check_same_features(source, self.n_features_in_, names, type(self).__name__)
        centers = self.domain_.measured(self.cluster_centers_)
        for chunk in source.chunks():
            yield squared_distances(self.domain_.measured(chunk), centers)


class PEMeans(PrivateKMeans):
    """Differentially private k-means by Private Evolution (Algorithm 1 of the paper).

    Every row votes for the nearest of many candidate centers; the noisy votes choose the candidates that
    survive, these are varied, and the rows vote again. The noise does not grow with the domain.

    Parameters
    ----------
    n_clusters : int, default 8
        How many centers to find.
    epsilon : float, default 1.0
        The privacy budget; infinite switches the noise off, for study.
    delta : float, optional
        The small chance that the guarantee fails; by default ``n_samples**-1.1``.
    domain : Domain or "from-data"
        Where the rows can lie, known without looking at them: `Domain.box` or `Domain.ball`. Rows outside
        are moved to its edge. ``"from-data"`` reads a ball from the rows, which is not private.
    n_samples : int, optional
        The public number of rows; by default ``len(X)``, which is public then.
    random_state : int, RandomState or Generator, optional
        A seed, for tests and studies: a seeded result is not private. By default all noise comes from the
        operating system.
    n_iterations, n_variations : int, optional
        T and L of the paper; by default its rules, which look at public facts only.
    variation_scale, levy_index : float
        Gamma and beta of the paper: the size and the tails of the variations.
    selection : {"k-means", "top-k"}
        How survivors are chosen; "top-k" is the older rule, for the study of vote splitting.
    max_candidates : int
        The most candidates in a vote.
    n_jobs : int, optional
        Threads; by default all cores. The result is the same with any number.
    progress : bool or callable, default False
        True shows a bar; a function is called with a `Progress` after every iteration.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centers, in the units of the data.
    cluster_sizes_ : array of shape (n_clusters,)
        Noisy numbers of rows, from released votes.
    receipt_ : Receipt
        What was spent on what.
    domain_ : Domain
        The domain, bound to the data's public size.

    Examples
    --------
    >>> import numpy as np
    >>> from pemeans import Domain, PEMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, size=(1000, 2)) for c in (-5, 5)])
    >>> model = PEMeans(n_clusters=2, epsilon=1.0, domain=Domain.box(-10, 10), random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.mean(axis=1).round().tolist())
    [-5.0, 5.0]
    >>> bool(model.receipt_.epsilon_spent <= 1.0)
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        domain: Domain | str | None = None,
        n_samples: int | None = None,
        random_state: RandomState = None,
        n_iterations: int | None = None,
        n_variations: int | None = None,
        variation_scale: float = 0.01,
        levy_index: float = 1.75,
        selection: str = "k-means",
        max_candidates: int = 1 << 14,
        n_jobs: int | None = None,
        progress: bool | Callable[[Progress], None] = False,
    ) -> None:
        super().__init__(
            n_clusters,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            n_samples=n_samples,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.n_iterations = n_iterations
        self.n_variations = n_variations
        self.variation_scale = variation_scale
        self.levy_index = levy_index
        self.selection = selection
        self.max_candidates = max_candidates

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        settings = Settings(**{field.name: values[field.name] for field in dataclasses.fields(Settings)})

        def watch(iteration: Iteration) -> None:
            report(iteration.number, iteration.of, iteration.survivors.centers)

        return self._evolve(curator, settings, rng, watch)

    def _evolve(
        self, curator: Curator, settings: Settings, rng: np.random.Generator, watch: Watcher
    ) -> Selection:
        return pe_means(curator, settings, rng, watch)


class HDPEMeans(PEMeans):
    """Differentially private k-means for many features (Algorithm 3 of the paper).

    Rows of more than 16 features are seen through a random projection to 16. Private Evolution finds the
    clusters there, and one noisy mean of the rows of each cluster gives its center. With up to 16 features
    it is `PEMeans`.

    Parameters
    ----------
    n_clusters, epsilon, delta, domain, n_samples, random_state
        As in `PEMeans`.
    n_iterations : int, optional
        T of the paper, which includes two for the noisy means; by default its rule, of 16 features.
    n_variations, variation_scale, levy_index, selection, max_candidates, n_jobs
        As in `PEMeans`.
    progress : bool or callable, default False
        As in `PEMeans`; while the evolution runs in the projection there are no centers to show.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from pemeans import Domain, HDPEMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, size=(2000, 64)) for c in (-2, 2)])
    >>> model = HDPEMeans(n_clusters=2, epsilon=1.0, domain=Domain.ball(radius=30), random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.mean(axis=1).round().tolist())
    [-2.0, 2.0]
    """

    def _evolve(
        self, curator: Curator, settings: Settings, rng: np.random.Generator, watch: Watcher
    ) -> Selection:
        return hdpe_means(curator, settings, rng, watch)


class DPKMeans(PrivateKMeans):
    """Differentially private k-means, nearly as accurate as without privacy: the recommended method.

    Votes find where the clusters are, as in `PEMeans`, but in at most 12 dimensions and with many more
    candidates kept alive. Then small sums of residuals, clipped to a radius that shrinks as the centers get
    better, say exactly where each center is. Loose bounds cost little: the scale of the rows is found
    privately first.

    Parameters
    ----------
    n_clusters, epsilon, delta, domain, n_samples, random_state, n_jobs
        As in `PEMeans`.
    progress : bool or callable, default False
        As in `PEMeans`; during the votes there are no centers to show.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from pemeans import Domain, DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, size=(1000, 8)) for c in (-2, 2)])
    >>> model = DPKMeans(n_clusters=2, epsilon=1.0, domain=Domain.box(-50, 50), random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.mean(axis=1).round().tolist())
    [-2.0, 2.0]
    """

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        return dp_kmeans(curator, values["n_clusters"], rng, report)


METHODS: dict[str, type[PrivateKMeans]] = {
    method.__name__: method for method in (DPKMeans, PEMeans, HDPEMeans)
}


MORE_METHODS: dict[str, type[PrivateKMeans]] = {}
"""Methods of modules that build on this one, which add them when they are imported."""


def load(path: str | os.PathLike[str]) -> PrivateKMeans:
    """Read a fitted model from a file that `save` wrote.

    Raises
    ------
    ModelFileError
        The file is missing, damaged, of a newer version, or something else altogether.
    """
    model = read_model(path)
    known = METHODS | MORE_METHODS
    if model.method not in known:
        raise ModelFileError(
            f"{path} holds a {model.method[:40]!r}, which this pemeans does not know; "
            "upgrade pemeans, or import pemeans.peers first if it is a method from there"
        )
    estimator = _with_parameters(known[model.method], model)
    if estimator is None:
        raise ModelFileError(f"{path} is damaged: its parameters make no sense; save the model again")
    estimator._fitted_with = model.parameters
    estimator._remember_features(model.feature_names, model.domain.n_features)
    estimator.cluster_centers_ = model.cluster_centers
    estimator.cluster_sizes_ = model.cluster_sizes
    estimator.receipt_ = model.receipt
    estimator.domain_ = model.domain
    return estimator


def _nearest(squared: FloatArray) -> Labels:
    """The number of the nearest center, from the squared distances to all."""
    return np.asarray(squared.argmin(axis=1), dtype=np.int32)


def _with_parameters(method: type[PrivateKMeans], model: Model) -> PrivateKMeans | None:
    """An estimator with the parameters of a model file, or None if they can't be right."""
    given: dict[str, Any] = {
        name: math.inf if value == NO_NOISE else value for name, value in model.parameters.items()
    }
    try:
        values = check_parameters(method(**given, domain=model.domain).get_params(deep=False))
    except (TypeError, PemeansError):
        return None
    right = given.keys() <= _saved(values).keys() and values["n_clusters"] == len(model.cluster_centers)
    return method(**values) if right else None


def _saved(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a model file holds; JSON knows no infinity."""
    return {
        name: NO_NOISE if value == math.inf else value
        for name, value in values.items()
        if name not in NOT_SAVED
    }


def _in_units(domain: Domain, show: Callable[[Progress], None] | None) -> Report:
    """Translate what a method says of its steps into the user's units."""

    def report(number: int, of: int, centers: GridArray | None) -> None:
        if show is None:
            return
        own_space = centers is not None and centers.shape[1] == domain.n_features
        in_units = domain.from_unit(to_float(centers)) if centers is not None and own_space else None
        show(Progress(number, of, in_units))

    return report

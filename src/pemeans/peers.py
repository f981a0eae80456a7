"""scikit-learn faces of the methods that the paper compares with: for study, and to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pemeans.baselines import balcan, dplloyd, fastlloyd, lsh
from pemeans.domain import Domain
from pemeans.estimators import MORE_METHODS, PrivateKMeans, RandomState
from pemeans.evolution.recommended import Report
from pemeans.evolution.select import Selection
from pemeans.privacy.curator import Curator
from pemeans.progress import Progress

Box = float | None


class LSHKMeans(PrivateKMeans):
    """Google's private k-means: a tree of hyperplanes, and k-means of its leaves (Chang and Kamath 2021).

    Parameters
    ----------
    n_clusters, epsilon, delta, domain, n_samples, random_state, n_jobs, progress
        As in `PEMeans`.
    private_root : bool, default False
        Whether the number of rows is counted with noise, as in Google's library, instead of being public.
    n_init : int, default 10
        Starts of the final k-means of the coreset, which cost no privacy. The paper's runs had 1.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(5000, 2)) for c in (-0.5, 0.5)])
    >>> model = LSHKMeans(2, epsilon=4.0, domain=Domain.ball(1.0), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (2, 2)
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
        private_root: bool = False,
        n_init: int = 10,
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
        self.private_root = private_root
        self.n_init = n_init

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        settings = lsh.Settings(private_root=values["private_root"], n_init=values["n_init"])
        return lsh.lsh_kmeans(curator, values["n_clusters"], settings, rng)


class _BoxedKMeans(PrivateKMeans):
    """Methods that pack and fold centers in a box around the origin."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        domain: Domain | str | None = None,
        n_samples: int | None = None,
        random_state: RandomState = None,
        box: Box = None,
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
        self.box = box


class FastLloyd(_BoxedKMeans):
    """Lloyd's steps with Gaussian noise on moves from the last centers (Diaa et al. 2025).

    Parameters
    ----------
    n_clusters, epsilon, delta, domain, n_samples, random_state, n_jobs, progress
        As in `PEMeans`.
    box : float, optional
        Half the width of the box in which all coordinates lie, in radii of the domain and public; by default
        that of the ball.
    n_iterations : int, optional
        Lloyd steps; by default the method's own rule. The paper's runs used 6 always.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(5000, 2)) for c in (-0.5, 0.5)])
    >>> model = FastLloyd(2, epsilon=4.0, domain=Domain.ball(1.0), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (2, 2)
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
        box: Box = None,
        n_iterations: int | None = None,
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
            box=box,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.n_iterations = n_iterations

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        settings = fastlloyd.Settings(n_iterations=values["n_iterations"], box=values["box"] or 1.0)
        return fastlloyd.fast_lloyd(curator, values["n_clusters"], settings, rng)


class DPLloyd(_BoxedKMeans):
    """Lloyd's steps with Laplace noise on sums and counts (Su et al. 2016, as in diffprivlib): delta is 0.

    Parameters
    ----------
    n_clusters, epsilon, domain, n_samples, random_state, n_jobs, progress
        As in `PEMeans`.
    delta : None
        The guarantee is pure: there is no delta.
    box : float, optional
        As in `FastLloyd`.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(5000, 2)) for c in (-0.5, 0.5)])
    >>> DPLloyd(2, epsilon=4.0, domain=Domain.ball(1.0), random_state=0).fit(X).receipt_.delta
    0.0
    """

    _pure = True

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        return dplloyd.dp_lloyd(
            curator, values["n_clusters"], dplloyd.Settings(box=values["box"] or 1.0), rng
        )


class BalcanKMeans(_BoxedKMeans):
    """Candidates from a private partition, and a private local search (Balcan et al. 2017): delta is 0.

    Parameters
    ----------
    n_clusters, epsilon, domain, n_samples, random_state, n_jobs, progress
        As in `PEMeans`.
    delta : None
        The guarantee is pure: there is no delta.
    box : float, optional
        As in `FastLloyd`.

    Attributes
    ----------
    cluster_centers_, cluster_sizes_, receipt_, domain_
        As in `PEMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(5000, 2)) for c in (-0.5, 0.5)])
    >>> BalcanKMeans(2, epsilon=4.0, domain=Domain.ball(1.0), random_state=0).fit(X).receipt_.delta
    0.0
    """

    _pure = True

    def _cluster(
        self, curator: Curator, values: dict[str, Any], rng: np.random.Generator, report: Report
    ) -> Selection:
        return balcan.balcan_kmeans(
            curator, values["n_clusters"], balcan.Settings(box=values["box"] or 1.0), rng
        )


# So that `pemeans.load` knows their files.
MORE_METHODS.update({face.__name__: face for face in (LSHKMeans, FastLloyd, DPLloyd, BalcanKMeans)})

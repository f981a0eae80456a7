"""Losses of diffprivlib's k-means, for `baselines_against_peers.py`, under a Python that has diffprivlib.

Run it as ``python peer_diffprivlib.py ROWS.npy CLUSTERS SEEDS HALF_WIDTH [VARIANT]``; prints JSON: for every
epsilon the losses of all seeds. In the variant ``mended`` the budgets of counts and of coordinates are not
swapped, sums have the sensitivity that counts have (one row more or less moves them by half the width of the
box), and empty clusters get noise like others. In the variant ``folded`` sums get plain Laplace noise
besides, folded into the box, in place of the bounded kind.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import numpy.typing as npt
from diffprivlib.mechanisms import GeometricFolded, LaplaceBoundedDomain, LaplaceFolded  # type: ignore[import-not-found]
from diffprivlib.models import KMeans  # type: ignore[import-not-found]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)

Floats = npt.NDArray[np.float64]


class Mended(KMeans):  # type: ignore[misc]
    """The same within its budget, with half the noise in sums, and with noise in every cluster."""

    mechanism = LaplaceBoundedDomain

    def _update_centers(
        self,
        X: Floats,
        centers: Floats,
        labels: npt.NDArray[np.integer],
        dims: int,
        total_iters: int,
        random_state: np.random.RandomState,
    ) -> Floats:
        for_sum, for_count = self._split_epsilon(dims, total_iters)
        count = GeometricFolded(
            epsilon=for_count, sensitivity=1, lower=0.5, upper=float("inf"), random_state=random_state
        )
        for cluster in range(self.n_clusters):
            mine = X[labels == cluster]
            noisy_count = count.randomise(len(mine))
            for i, (low, high) in enumerate(zip(*self.bounds)):  # noqa: B905
                coordinate = self.mechanism(
                    epsilon=for_sum,
                    sensitivity=(high - low) / 2,
                    lower=noisy_count * low,
                    upper=noisy_count * high,
                    random_state=random_state,
                )
                centers[cluster, i] = coordinate.randomise(float(mine[:, i].sum())) / noisy_count
        return centers


class Folded(Mended):
    mechanism = LaplaceFolded


KINDS = {"": KMeans, "mended": Mended, "folded": Folded}


def loss(rows: Floats, centers: Floats) -> float:
    squared = [((rows - center) ** 2).sum(axis=1) for center in centers]
    return float(np.min(squared, axis=0).mean())


def main(path: str, k: str, seeds: str, half_width: str, variant: str = "") -> None:
    rows = np.load(path)
    walls = np.full(rows.shape[1], float(half_width))

    def fitted(epsilon: float, seed: int) -> Floats:
        own_seed = 1000 * seed + round(100 * epsilon)
        model = KINDS[variant](int(k), epsilon=epsilon, bounds=(-walls, walls), random_state=own_seed)
        return np.asarray(model.fit(rows).cluster_centers_)

    print(json.dumps([[loss(rows, fitted(e, seed)) for seed in range(int(seeds))] for e in EPSILONS]))


if __name__ == "__main__":
    main(*sys.argv[1:])

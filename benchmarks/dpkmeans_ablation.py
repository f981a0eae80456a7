"""What each part of DPKMeans buys, and what loose bounds cost: two Markdown tables.

Every part is switched off by itself; what it leaves of the budget is not given to others. Losses are areas
under the loss over epsilon by the paper's protocol, as multiples of those of the full method, seed by seed;
the error is over the seeds, of the mean logarithm over the data sets.

Run it as ``python benchmarks/dpkmeans_ablation.py [SEEDS]``, with ``PEMEANS_DATA`` naming the data's folder.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from pemeans import Domain, DPKMeans
from pemeans.bench.analysis import area
from pemeans.bench.datasets import prepared
from pemeans.bench.evaluate import mean_loss, nearest_centers
from pemeans.bench.suites import EPSILONS
from pemeans.evolution import agglomerate, explore, plan, recommended, refine, subspace
from pemeans.kernels.grid import GRID_UNIT, FloatArray, Frame, GridArray
from pemeans.kernels.kmeans import weighted_kmeans

FIRST_SEED = 500
"""None of these seeds was used while the method was tuned."""
HARD = (
    "birch2", "iris", "letter", "gas", "scale_16_4", "scale_64_4", "scale_16_16", "scale_64_16",
    "scale_64_64", "sklearn_16_4", "sklearn_64_16", "sklearn_64_64", "sklearn_64_128",
)  # fmt: skip
LOOSE = ("sklearn_16_16", "letter", "scale_16_4", "sklearn_64_64", "adult")
TIMES = (1, 2, 5, 10)


def planned(**changes: Any) -> Any:
    """The plan, with some of it changed."""
    return mock.patch.object(recommended, "plan", lambda *sizes: replace(plan.plan(*sizes), **changes))


def whole_domain(curator: Any, *_: float) -> Frame:
    return Frame(np.zeros(curator.n_features, dtype=np.int32), GRID_UNIT)


def random_basis(moments: FloatArray) -> Any:
    """The eigenvalues, and a random basis in the vectors' place."""
    values = np.linalg.eigvalsh(moments)
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal(moments.shape))
    return values, turn


def mean_only(sums: FloatArray, sigma: float, first: int) -> FloatArray:
    return sums


def fill(cloud: explore.Cloud, k: int, rng: np.random.Generator) -> GridArray:
    """Plain k-means of the coreset, one start."""
    one = weighted_kmeans(cloud.points, cloud.weights, k, 1, rng, 20)
    return one if len(cloud.points) > k else agglomerate.fill_up(cloud.points, k, rng)


PARTS: dict[str, Callable[[], Any]] = {
    "no refinement": lambda: mock.patch.object(recommended, "refine", return_value=()),
    "one step of refinement": lambda: planned(steps=1),
    "four steps": lambda: planned(steps=4),
    "no James-Stein gain": lambda: mock.patch.object(refine, "shrink", mean_only),
    "residuals cut at their 75 % quantile": lambda: mock.patch.object(refine, "COVERED", 0.75),
    "radius never widened": lambda: mock.patch.object(refine, "cheap_noise", return_value=1.0),
    "votes not weighed by evidence": lambda: mock.patch.object(
        recommended, "believed", lambda core, k, rng: core.cloud
    ),
    "no stand-ins for outliers": lambda: planned(stray_share=0.0),
    "eigenvalues as they are seen": lambda: mock.patch.object(
        subspace, "without_noise", lambda falling, edge: falling
    ),
    "random directions": lambda: mock.patch.object(np.linalg, "eigh", random_basis),
    "no frame": lambda: mock.patch.object(recommended, "find_frame", whole_domain),
    "k survivors a round": lambda: mock.patch.object(explore, "SURVIVORS_PER_CLUSTER", 1),
    "three k survivors": lambda: mock.patch.object(explore, "SURVIVORS_PER_CLUSTER", 3),
    "one population remembered": lambda: mock.patch.object(explore, "REMEMBERED", 1),
    "six rounds of votes": lambda: planned(rounds=6),
    "variations of one width": lambda: mock.patch.object(explore, "NARROWEST", explore.WIDEST),
    "one k-means start for the coreset": lambda: mock.patch.object(recommended, "settle", fill),
}


def losses(dataset: str, seed: int, times: float = 1.0) -> list[float]:
    """The losses at all budgets, in a ball that is so many times too wide."""
    points = prepared(dataset)
    found = []
    for epsilon in EPSILONS:
        model = DPKMeans(points.k, epsilon=epsilon, domain=Domain.ball(times), random_state=seed, n_jobs=1)
        centers = model.fit(points.X).cluster_centers_
        found.append(mean_loss(points.X, centers, nearest_centers(points.X, centers)))
    return found


def logarithms(seeds: range) -> FloatArray:
    """Logarithms of the areas, a row a seed and a column a data set."""
    return np.array([[np.log(area(losses(name, seed))) for name in HARD] for seed in seeds])


def ablation(seeds: range) -> Iterator[str]:
    full = logarithms(seeds)
    yield "| without | area over that of the full method | data set that it costs most |"
    yield "| --- | ---: | --- |"
    for name, part in PARTS.items():
        with part():
            lost = logarithms(seeds) - full
        means, worst = lost.mean(axis=1), lost.mean(axis=0)
        error = means.std(ddof=1) / np.sqrt(len(means))
        dearest = int(worst.argmax())
        yield (
            f"| {name} | {np.exp(means.mean()):.3f} ± {error:.3f} | "
            f"{HARD[dearest]}, {np.exp(worst[dearest]):.2f} |"
        )


def loose(seeds: range) -> Iterator[str]:
    yield f"| data | {' | '.join(f'{times} times' for times in TIMES)} |\n| --- |{' ---: |' * len(TIMES)}"
    for name in LOOSE:
        areas = np.array([[area(losses(name, seed, times)) for times in TIMES] for seed in seeds])
        over = areas.mean(axis=0) / areas[:, 0].mean()
        errors = areas.std(axis=0, ddof=1) / np.sqrt(len(areas)) / areas[:, 0].mean()
        yield f"| {name} | {' | '.join(f'{r:.3f} ± {e:.3f}' for r, e in zip(over, errors, strict=True))} |"


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + (int(sys.argv[1]) if len(sys.argv) > 1 else 4))
    with quiet():
        for line in loose(seeds):
            print(line, flush=True)
        print()
        for line in ablation(seeds):
            print(line, flush=True)


if __name__ == "__main__":
    main()

"""Whole fits beside their peers, on one thread, in one process, on the 34 data sets of the paper's Table 1.

PEMeans at the paper's settings is measured against the plain implementation of `plain_pe_means.py`, and the
recommended DPKMeans against scikit-learn's `KMeans(n_init=10)`, which knows no privacy. Ours take their
noise from the operating system, as a release does. Epsilon is 1. Seconds are those of the processor. Losses
are mean squared distances of the rows to their nearest center; one run each, so single ratios vary.

Run it as ``python benchmarks/speed_fit.py [--only plain|kmeans] [DATASET ...]``, with ``PEMEANS_DATA``
naming the folder of the data. The plain implementation needs some minutes for all.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import faiss
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from measuring import Cost, geometric_mean, goal_line, measured, table
from pemeans import Domain, DPKMeans, PEMeans
from pemeans.bench.datasets import Points, prepared
from pemeans.bench.evaluate import mean_loss, nearest_centers
from pemeans.bench.registry import TABLE1
from pemeans.kernels.grid import FloatArray
from plain_pe_means import plain_pe_means

EPSILON = 1.0
Fit = Callable[[Points], FloatArray]


def pe_means(points: Points) -> FloatArray:
    return (
        PEMeans(points.k, epsilon=EPSILON, domain=Domain.ball(1.0), n_jobs=1).fit(points.X).cluster_centers_
    )


def dp_kmeans(points: Points) -> FloatArray:
    return (
        DPKMeans(points.k, epsilon=EPSILON, domain=Domain.ball(1.0), n_jobs=1).fit(points.X).cluster_centers_
    )


def plain(points: Points) -> FloatArray:
    return plain_pe_means(points.X, points.k, EPSILON, len(points.X) ** -1.1, seed=0)


def kmeans(points: Points) -> FloatArray:
    centers: FloatArray = KMeans(points.k, n_init=10, random_state=0).fit(points.X).cluster_centers_
    return centers


@dataclass(frozen=True)
class Race:
    """A method of ours, its peer, and the figure to reach."""

    ours: tuple[str, Fit]
    peer: tuple[str, Fit]
    about: str
    goal: float
    wanted: str
    repeats: tuple[int, int]
    """How often each of them is run; the fastest counts."""


RACES = {
    "plain": Race(
        ("PEMeans", pe_means),
        ("plain", plain),
        "PEMeans, geometric mean of how many times faster than the plain implementation",
        10.0,
        "at least",
        (2, 1),
    ),
    "kmeans": Race(
        ("DPKMeans", dp_kmeans),
        ("KMeans(n_init=10)", kmeans),
        "DPKMeans, geometric mean of its time over that of KMeans(n_init=10)",
        1.0,
        "at most",
        (3, 2),
    ),
}


@dataclass(frozen=True)
class Line:
    """What both took for one data set, and their losses."""

    dataset: str
    size: tuple[int, int, int]
    ours: Cost[FloatArray]
    peer: Cost[FloatArray]
    losses: tuple[float, float]

    def ratio(self, race: Race) -> float:
        """Times faster where that is wanted, else our part of the peer's time."""
        ours, peer = self.ours.seconds, self.peer.seconds
        return peer / ours if race.wanted == "at least" else ours / peer


def loss(points: Points, centers: FloatArray) -> float:
    return mean_loss(points.X, centers, nearest_centers(points.X, centers))


def compare(race: Race, dataset: str) -> Line:
    """Both fits of one data set."""
    points = prepared(dataset)
    costs = [
        measured(lambda fit=fit: fit(points), repeats)  # type: ignore[misc]
        for (_, fit), repeats in zip((race.ours, race.peer), race.repeats, strict=True)
    ]
    print(f"{dataset}: {costs[0].seconds:.3f} s, {costs[1].seconds:.3f} s", file=sys.stderr, flush=True)
    losses = loss(points, costs[0].result), loss(points, costs[1].result)
    return Line(dataset, points.size, costs[0], costs[1], losses)


def report(race: Race, lines: list[Line]) -> str:
    """The table, and the figure to reach."""
    ours, peer = race.ours[0], race.peer[0]
    ratio = "times faster" if race.wanted == "at least" else "time over peer's"
    columns = ["data", "n", "d", "k", f"{ours}, s", f"{peer}, s", ratio]
    columns += ["loss over peer's", f"{ours}, MiB", f"{peer}, MiB"]
    shown = [
        [
            line.dataset,
            *(f"{number:,}" for number in line.size),
            *(f"{cost.seconds:.3f}" for cost in (line.ours, line.peer)),
            f"{line.ratio(race):.2f}",
            f"{line.losses[0] / line.losses[1]:.2f}",
            *(f"{cost.mib:.0f}" for cost in (line.ours, line.peer)),
        ]
        for line in lines
    ]
    mean = geometric_mean(line.ratio(race) for line in lines)
    losses = geometric_mean(line.losses[0] / line.losses[1] for line in lines)
    goals = goal_line(race.about, mean, race.goal, race.wanted)
    goals += f"\n- {ours}, geometric mean of its loss over that of {peer}: **{losses:.3g}**."
    return table(columns, shown) + "\n\n" + goals


def main(only: str, datasets: tuple[str, ...] = TABLE1) -> str:
    faiss.omp_set_num_threads(1)
    warnings.simplefilter("ignore")
    race = RACES[only]
    with threadpool_limits(1):
        return report(race, [compare(race, dataset) for dataset in datasets])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(RACES))
    parser.add_argument("datasets", nargs="*", default=TABLE1)
    asked = parser.parse_args()
    for name in [asked.only] if asked.only else RACES:
        print(main(name, tuple(asked.datasets)), end="\n\n")

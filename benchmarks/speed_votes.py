"""The vote beside the nearest-neighbor searches of faiss, scikit-learn and SciPy, on one thread.

Rows and shapes are those of the 34 data sets of the paper's Table 1. The populations are evolved: those of
the second and the third round of PE-means at the paper's settings, epsilon 1. Ours is timed through what
a fit runs (`NearestVotes` asked of the rows), with the building of its index; the two populations take turns,
so that nothing is remembered. Peers get float32 where it helps them, and what they build is timed, too. HNSW
and other approximate searches are left out: a vote must be exact.

A peer that is hopeless on a sixteenth of many rows is not run on all; its time is extrapolated (≈) then.

Run it as ``python benchmarks/speed_votes.py [DATASET ...]``, with ``PEMEANS_DATA`` naming the folder of the
data.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import faiss
import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import threadpool_limits

from measuring import Cost, geometric_mean, goal_line, measured, table
from pemeans.bench.datasets import prepared
from pemeans.bench.registry import TABLE1
from pemeans.domain import Domain
from pemeans.evolution.loop import Iteration, Settings, evolve
from pemeans.kernels.grid import FloatArray, GridArray, to_float
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestVotes
from pemeans.rows.memory import MemoryRows

GOAL, WORST = 0.4, 1.0
ROUNDS = 3
EPSILON = 1.0
SAMPLE, MANY = 16, 5_000
HOPELESS = 2.0
"""A peer that would take so many times as long as the best is not run on all rows."""

Floats = npt.NDArray[np.floating]
Search = Callable[[Floats, Floats], object]


def by_faiss(rows: Floats, candidates: Floats) -> object:
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(candidates)
    return index.search(rows, 1)


def by_scikit_learn(rows: Floats, candidates: Floats) -> object:
    return pairwise_distances_argmin(rows, candidates)


def by_kd_tree(rows: Floats, candidates: Floats) -> object:
    return cKDTree(candidates).query(rows)


PEERS: dict[str, tuple[Search, npt.DTypeLike]] = {
    "faiss": (by_faiss, np.float32),
    "scikit-learn": (by_scikit_learn, np.float64),
    "KD-tree": (by_kd_tree, np.float64),
}


@dataclass(frozen=True)
class Line:
    """One shape: milliseconds and MiB of a vote, ours and the peers'."""

    dataset: str
    size: tuple[int, int, int]
    candidates: int
    ours: Cost[object]
    peers: dict[str, tuple[float, bool, float]]

    @property
    def best(self) -> str:
        return min(self.peers, key=lambda name: self.peers[name][0])

    @property
    def ratio(self) -> float:
        return self.ours.seconds / self.peers[self.best][0]


def evolved(rows: MemoryRows, domain: Domain, k: int) -> list[GridArray]:
    """The populations of all rounds but the first, at the paper's settings."""
    n, d = domain.n_rows or 0, domain.n_features
    settings, ledger = Settings(k), Ledger(EPSILON, n**-1.1)
    curator = Curator(rows, domain, ledger, NoiseSampler(SeededBits(0), ledger.tail_bits))
    share = 1 / settings.iterations(d, EPSILON)
    populations: list[GridArray] = []

    def watch(iteration: Iteration) -> None:
        populations.append(iteration.population)

    evolve(curator, settings, d, ROUNDS, share, np.random.default_rng(0), watch=watch)
    return populations[1:]


def peer_cost(
    name: str, X: FloatArray, populations: list[GridArray], least: float
) -> tuple[float, bool, float]:
    """Seconds for the populations, whether that is extrapolated, and MiB."""
    search, dtype = PEERS[name]
    rows = np.ascontiguousarray(X, dtype=dtype)
    candidates = [np.ascontiguousarray(to_float(population), dtype=dtype) for population in populations]
    some = rows[::SAMPLE].copy()
    tried = measured(lambda: search(some, candidates[0]))
    if len(rows) >= MANY and tried.seconds * SAMPLE * len(populations) > HOPELESS * least:
        return tried.seconds * SAMPLE * len(populations), True, tried.mib
    found = measured(lambda: [search(rows, points) for points in candidates], repeats(len(X)))
    return found.seconds, False, found.mib


def repeats(n: int) -> int:
    """More for the small ones, whose times vary."""
    return 25 if n < MANY else 3


def compare(dataset: str) -> Line:
    """All times for one data set."""
    points = prepared(dataset)
    domain = Domain.ball(1.0).bind(*points.X.shape)
    rows = MemoryRows(points.X, domain, 1)
    populations = evolved(rows, domain, points.k)
    questions = [NearestVotes(population) for population in populations]
    ours = measured(lambda: [rows.total(question) for question in questions], repeats(len(points.X)))
    peers: dict[str, tuple[float, bool, float]] = {}
    for name in PEERS:
        least = min((seconds for seconds, _, _ in peers.values()), default=np.inf)
        peers[name] = peer_cost(name, points.X, populations, least)
    return Line(dataset, points.size, max(map(len, populations)), ours, peers)


def report(lines: list[Line]) -> str:
    """The table, and the figures to reach."""
    columns = ["data", "n", "d", "k", "candidates", "ours, ms", *(f"{name}, ms" for name in PEERS)]
    columns += ["ratio to the best", "ours, MiB", "best, MiB"]
    votes = ROUNDS - 1
    shown = [
        [
            line.dataset,
            *(f"{number:,}" for number in (*line.size, line.candidates)),
            f"{1e3 * line.ours.seconds / votes:.2f}",
            *(f"{'≈' * guess}{1e3 * seconds / votes:.2f}" for seconds, guess, _ in line.peers.values()),
            f"{line.ratio:.2f}",
            f"{line.ours.mib:.0f}",
            f"{line.peers[line.best][2]:.0f}",
        ]
        for line in lines
    ]
    ratios = [line.ratio for line in lines]
    goals = [
        goal_line(
            "Votes, geometric mean of the ratios to the best peer", geometric_mean(ratios), GOAL, "at most"
        ),
        goal_line("Votes, largest ratio", max(ratios), WORST, "at most"),
    ]
    return table(columns, shown) + "\n\n" + "\n".join(goals)


def main(datasets: tuple[str, ...] = TABLE1) -> str:
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        return report([compare(dataset) for dataset in datasets])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=TABLE1)
    print(main(tuple(parser.parse_args().datasets)))

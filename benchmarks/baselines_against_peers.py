"""Our baselines against the paper's Table 1, a plain second writing, and diffprivlib itself.

Areas under the mean loss over epsilon, from the same rows and budgets.

Every data set is centered by its mean and divided by its largest norm; the box is the largest coordinate;
delta is ``n**-1.1``. Losses are means over seeds, areas by the trapezoid rule, errors are standard errors.

Run it as ``python benchmarks/baselines_against_peers.py``, with PEMEANS_DATA set for data that are not
generated. Options: ``--diffprivlib`` names a Python in which diffprivlib 0.6.6 runs (with scikit-learn 1.5,
say); ``--seeds``, ``--datasets``, ``--methods``. Google's library and FastLloyd are not on the package index:
`plain_baselines.py` has both and DP-Lloyd from their description, and FastLloyd with its published defects.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from pemeans.baselines import balcan, dplloyd, fastlloyd, lsh
from pemeans.bench.datasets import prepared
from pemeans.bench.rendering import NONE
from pemeans.bench.tables import paper_table
from pemeans.domain import Domain
from pemeans.evolution.select import Selection
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import to_float
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.rows.memory import MemoryRows
from plain_baselines import PLAIN, Plain

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
AREA = np.array([0.125, 0.375, 0.75, 1.5, 1.0])
"""The trapezoid rule over `EPSILONS`."""
DATASETS = "iris,letter,g2_16,sklearn_16_16,scale_16_4,birch2"

Floats = npt.NDArray[np.float64]
Method = Callable[[Curator, int, float, np.random.Generator], Selection]
"""From curator, clusters, half-width of the box and generator to centers."""

METHODS: dict[str, tuple[str, bool, Method]] = {
    "LSH": (
        "google_lsh",
        False,
        lambda curator, k, _, rng: lsh.lsh_kmeans(curator, k, lsh.Settings(), rng),
    ),
    "LSH, 1 start": (
        "google_lsh",
        False,
        lambda curator, k, _, rng: lsh.lsh_kmeans(curator, k, lsh.Settings(n_init=1), rng),
    ),
    "LSH, private root": (
        "google_lsh",
        False,
        lambda curator, k, _, rng: lsh.lsh_kmeans(curator, k, lsh.Settings(private_root=True), rng),
    ),
    "FastLloyd": (
        "fastlloyd",
        False,
        lambda curator, k, box, rng: fastlloyd.fast_lloyd(curator, k, fastlloyd.Settings(box=box), rng),
    ),
    "FastLloyd, 6 steps": (
        "fastlloyd",
        False,
        lambda curator, k, box, rng: fastlloyd.fast_lloyd(curator, k, fastlloyd.Settings(6, box), rng),
    ),
    "FastLloyd, 6 steps, box 1": (
        "fastlloyd",
        False,
        lambda curator, k, _, rng: fastlloyd.fast_lloyd(curator, k, fastlloyd.Settings(6), rng),
    ),
    "DPLloyd": (
        "dp_lib",
        True,
        lambda curator, k, box, rng: dplloyd.dp_lloyd(curator, k, dplloyd.Settings(box), rng),
    ),
    "Balcan": (
        "icml17",
        True,
        lambda curator, k, box, rng: balcan.balcan_kmeans(curator, k, balcan.Settings(box), rng),
    ),
}
"""The column of the paper's table, whether the budget is pure, and the method."""


def fit(rows: Floats, k: int, method: Method, pure: bool, epsilon: float, seed: int) -> Floats:
    """Centers of one private run."""
    n, d = rows.shape
    domain = Domain.ball(1.0).bind(n, d)
    ledger = Ledger(epsilon, 0.0 if pure else n**-1.1)
    for_noise, for_start = np.random.SeedSequence([seed, round(100 * epsilon)]).spawn(2)
    curator = Curator(
        MemoryRows(rows, domain, 1), domain, ledger, NoiseSampler(SeededBits(for_noise), ledger.tail_bits)
    )
    found = method(curator, k, float(np.abs(rows).max()), np.random.default_rng(for_start))
    assert curator.receipt("").epsilon_spent <= epsilon
    return to_float(found.centers)


def ours(rows: Floats, k: int, method: Method, pure: bool, seeds: int) -> Floats:
    """Losses, a line for every epsilon."""
    return np.array(
        [
            [
                squared_distances(rows, fit(rows, k, method, pure, epsilon, seed)).min(axis=1).mean()
                for seed in range(seeds)
            ]
            for epsilon in EPSILONS
        ]
    )


def plain(rows: Floats, k: int, method: Plain, seeds: int) -> Floats:
    """Losses of the plain second writing."""

    def loss(epsilon: float, seed: int) -> float:
        rng = np.random.default_rng([7, seed, int(100 * epsilon)])
        return float(squared_distances(rows, method(rows, k, epsilon, rng, seed)).min(axis=1).mean())

    return np.array([[loss(epsilon, seed) for seed in range(seeds)] for epsilon in EPSILONS])


def theirs(python: str, rows: Floats, k: int, seeds: int, variant: str) -> Floats:
    """Losses of diffprivlib or a variant of it, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        script = Path(__file__).with_name("peer_diffprivlib.py")
        box = repr(float(np.abs(rows).max()))
        command = [python, str(script), str(Path(folder) / "rows.npy"), str(k), str(seeds), box, variant]
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, check=True, capture_output=True, env=one_thread)
    return np.array(json.loads(done.stdout))


def reference(rows: Floats, k: int, seeds: int) -> Floats:
    """Losses of k-means without privacy, the same for every epsilon."""
    losses = [KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_ / len(rows) for seed in range(seeds)]
    return np.tile(losses, (len(EPSILONS), 1))


def report(dataset: str, label: str, losses: Floats, paper: str, seconds: float) -> None:
    """One line: area, its standard error, the paper's figure, mean losses, seconds for each run."""
    area = float(AREA @ losses.mean(axis=1))
    error = float(np.sqrt(AREA**2 @ (losses.var(axis=1, ddof=1) / losses.shape[1])))
    means = " ".join(f"{loss:.4f}" for loss in losses.mean(axis=1))
    print(
        f"| {dataset} | {label} | {area:.4f} | {error:.4f} | {paper} | {means} | {seconds:.2f} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Baselines against the paper's table and diffprivlib.")
    parser.add_argument("--diffprivlib", metavar="PYTHON")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--methods", nargs="*", default=[*METHODS, *PLAIN])
    chosen = parser.parse_args()
    print("| data | method | area | error | paper | mean loss at epsilon 0.25, 0.5, 1, 2, 4 | seconds |")
    print("| --- | --- | ---: | ---: | ---: | --- | ---: |")
    for dataset in chosen.datasets.split(","):
        points, paper = prepared(dataset), paper_table().get(dataset, {})
        rows, k = points.X, points.k
        jobs: dict[str, tuple[str, Callable[[], Floats]]] = {
            "not private": ("nonprivate", partial(reference, rows, k, chosen.seeds))
        }
        for label in chosen.methods:
            if label in METHODS:
                column, pure, method = METHODS[label]
                jobs[label] = column, partial(ours, rows, k, method, pure, chosen.seeds)
            else:
                column, second = PLAIN[label]
                jobs[label] = column, partial(plain, rows, k, second, chosen.seeds)
        for variant in ("", "mended", "folded") if chosen.diffprivlib else ():
            label = f"diffprivlib {variant}".strip()
            jobs[label] = "dp_lib", partial(theirs, chosen.diffprivlib, rows, k, chosen.seeds, variant)
        for label, (column, job) in jobs.items():
            started = time.perf_counter()
            losses = job()
            seconds = (time.perf_counter() - started) / losses.size
            report(dataset, label, losses, f"{paper[column]:.4f}" if column in paper else NONE, seconds)


if __name__ == "__main__":
    main()

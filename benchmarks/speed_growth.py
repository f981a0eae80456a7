"""How the time of a fit grows with the rows, and what the cap on candidates costs in loss.

The slope is that of a straight line through log(seconds) over log(rows): 1 is linear. Seconds are those of the
processor, on one thread, the fastest of several fits of the same rows, so that a busy machine matters little.

The paper's rule takes n/5 candidates, which makes the cost quadratic in n; `max_candidates` caps them. The
second table compares losses under caps with that under the rule, where the rule can still be afforded: the same
rows and seeds, epsilon 1, as multiples of the loss that scikit-learn's KMeans finds without privacy.

Run it as ``python benchmarks/speed_growth.py`` (under two minutes) or with ``--full`` (an hour or more).
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from pemeans import Domain, DPKMeans, PEMeans
from pemeans.estimators import PrivateKMeans

Floats = npt.NDArray[np.float64]

COLUMNS, CLUSTERS = 16, 64
GOAL = 1.05
ROUNDS = 4
"""Votes of PEMeans in the timing: all rounds cost the same."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: dict[str, tuple[int, ...]]
    repeats: int
    losses: dict[int, tuple[int, ...]]
    seeds: int


SHORT = Plan(
    {"DPKMeans": (20_000, 60_000, 200_000), "PEMeans": (100_000, 200_000)}, 2, {20_000: (1024, 4000)}, 2
)
FULL = Plan(
    {
        "DPKMeans": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
        "PEMeans": (100_000, 1_000_000, 10_000_000),
    },
    1,
    {100_000: (1024, 4096, 16_384, 20_000), 200_000: (4096, 16_384, 40_000)},
    4,
)


def blobs(n: int, seed: int = 0) -> Floats:
    """Round clusters of equal size, as in the paper's made-up data, as far apart as they are wide or more."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, (CLUSTERS, COLUMNS))
    rows = centers[rng.integers(CLUSTERS, size=n)]
    rows += 2 * rng.standard_normal((n, COLUMNS))
    return rows


def domain_of(rows: Floats) -> Domain:
    """The paper's protocol: the smallest ball around the mean, taken as public."""
    center = rows.mean(axis=0)
    return Domain.ball(float(np.linalg.norm(rows - center, axis=1).max()), center)


def seconds(model: PrivateKMeans, rows: Floats, repeats: int) -> float:
    """Processor seconds of the fastest fit."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        model.fit(rows)
        best = min(best, time.process_time() - start)
    return float(best)


def growth(plan: Plan) -> None:
    """Times and slopes of both methods."""
    print(f"{COLUMNS} columns, k = {CLUSTERS}, one thread; PEMeans with {ROUNDS} rounds of votes.\n")
    print("| method | rows | processor seconds | microseconds a row |")
    print("| --- | --- | --- | --- |")
    slopes = {}
    for name, sizes in plan.sizes.items():
        found = []
        for n in sizes:
            rows = blobs(n)
            shared = {"domain": domain_of(rows), "random_state": 0, "n_jobs": 1}
            model: PrivateKMeans = (
                DPKMeans(CLUSTERS, **shared)
                if name == "DPKMeans"
                else PEMeans(CLUSTERS, n_iterations=ROUNDS, **shared)
            )
            found.append(seconds(model, rows, plan.repeats))
            print(f"| {name} | {n:,} | {found[-1]:.2f} | {1e6 * found[-1] / n:.2f} |", flush=True)
        slopes[name] = float(np.polyfit(np.log(sizes), np.log(found), 1)[0])
    for name, slope in slopes.items():
        print(f"\nSlope of {name}: {slope:.3f} (goal: at most {GOAL}).")


def losses(plan: Plan) -> None:
    """The loss of PEMeans under caps on its candidates; the last cap of each size is the paper's rule."""
    print(
        "\n| rows | max_candidates | loss over that of KMeans, mean ± standard error | processor seconds a fit |"
    )
    print("| --- | --- | --- | --- |")
    for n, caps in plan.losses.items():
        rows = blobs(n)
        plain = KMeans(CLUSTERS, n_init=3, random_state=0).fit(rows).inertia_
        for cap in caps:
            found, start = [], time.process_time()
            for seed in range(plan.seeds):
                model = PEMeans(
                    CLUSTERS, domain=domain_of(rows), max_candidates=cap, random_state=seed, n_jobs=1
                )
                found.append(-model.fit(rows).score(rows) / plain)
            took = (time.process_time() - start) / plan.seeds
            error = np.std(found, ddof=1) / np.sqrt(plan.seeds)
            rule = " (the paper's rule)" if cap == n // 5 else ""
            print(f"| {n:,} | {cap:,}{rule} | {np.mean(found):.3f} ± {error:.3f} | {took:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to 10 million rows")
    parser.add_argument("--only", choices=("growth", "losses"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    plan = FULL if asked.full else SHORT
    if asked.only != "losses":
        growth(plan)
    if asked.only != "growth":
        losses(plan)


if __name__ == "__main__":
    main()

"""How the time of a fit grows with the rows, and what the cap on candidates costs in loss.

The slope is that of a straight line through log(seconds) over log(rows): 1 is linear. Seconds are those of
the processor, on one thread, the fastest of several fits of the same rows: a busy machine matters little.

The paper's rule takes n/5 candidates, which makes the cost quadratic in n; `max_candidates` caps them. The
second table compares losses under caps with that under the rule, where the rule can still be afforded: the
same rows and seeds, epsilon 1, as multiples of the loss that scikit-learn's KMeans finds without privacy.

Run it as ``python benchmarks/speed_growth.py`` (two minutes or so) or with ``--full`` (half an hour).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from measuring import Cost, goal_line, machine, measured, table
from pemeans import Domain, DPKMeans, PEMeans
from pemeans.estimators import PrivateKMeans

Floats = npt.NDArray[np.float64]

COLUMNS, CLUSTERS = 16, 64
GOAL = 1.05
ROUNDS = 4
"""Votes of PEMeans in the timing: all rounds cost the same."""
ABOUT_GROWTH = f"{COLUMNS} columns, k = {CLUSTERS}, one thread; PEMeans with {ROUNDS} rounds of votes."
ABOUT_LOSSES = """PEMeans, epsilon 1. Losses are multiples of that of KMeans(n_init=3), ± standard errors.
The last line for each number of rows is the paper's rule, n/5 candidates."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: dict[str, tuple[int, ...]]
    losses: dict[int, tuple[int, ...]]
    seeds: int


SHORT = Plan(
    {"DPKMeans": (100_000, 1_000_000, 10_000_000), "PEMeans": (100_000, 1_000_000)}, {20_000: (1024, 4000)}, 2
)
FULL = Plan(
    {
        "DPKMeans": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
        "PEMeans": (100_000, 300_000, 1_000_000, 3_000_000),
    },
    {100_000: (4096, 16_384, 20_000), 200_000: (4096, 16_384, 40_000)},
    3,
)


def blobs(n: int, columns: int = COLUMNS, clusters: int = CLUSTERS) -> Floats:
    """Round clusters of equal size, as in the paper's made-up data, as far apart as they are wide or more."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, (clusters, columns))
    rows = centers[rng.integers(clusters, size=n)]
    rows += 2 * rng.standard_normal((n, columns))
    return rows


def domain_of(rows: Floats) -> Domain:
    """The paper's protocol: the smallest ball around the mean, taken as public."""
    center = rows.mean(axis=0)
    return Domain.ball(float(np.linalg.norm(rows - center, axis=1).max()), center)


def timed(method: str) -> PrivateKMeans:
    """The model whose time is taken."""
    if method == "PEMeans":
        return PEMeans(CLUSTERS, n_iterations=ROUNDS, random_state=0, n_jobs=1)
    return DPKMeans(CLUSTERS, random_state=0, n_jobs=1)


def fits(method: str, sizes: tuple[int, ...]) -> list[Cost[PrivateKMeans]]:
    """A fit of each size, the smaller ones several times: their noise would tilt the line."""
    costs = []
    for n in sizes:
        rows = blobs(n)
        model = timed(method)
        model.domain = domain_of(rows)
        repeats = max(1, min(5, 1_000_000 // n))
        costs.append(measured(lambda model=model, rows=rows: model.fit(rows), repeats))  # type: ignore[misc]
        print(f"{method}, {n:,} rows: {costs[-1].seconds:.2f} s", file=sys.stderr, flush=True)
    return costs


def growth(plan: Plan) -> str:
    """Times and slopes of both methods."""
    shown, goals = [], []
    for name, sizes in plan.sizes.items():
        costs = fits(name, sizes)
        for n, cost in zip(sizes, costs, strict=True):
            a_row = f"{1e6 * cost.seconds / n:.2f}"
            shown.append([name, f"{n:,}", f"{cost.seconds:.2f}", a_row, f"{cost.mib:.0f}"])
        slope = float(np.polyfit(np.log(sizes), np.log([cost.seconds for cost in costs]), 1)[0])
        about = f"{name}, slope of log seconds over log rows, {sizes[0]:,} to {sizes[-1]:,}"
        goals.append(goal_line(about, slope, GOAL, "at most"))
    columns = ["method", "rows", "seconds", "microseconds a row", "MiB beside the rows"]
    return "\n\n".join([ABOUT_GROWTH, table(columns, shown), "\n".join(goals)])


def losses(plan: Plan) -> str:
    """The loss of PEMeans under caps on its candidates; the last cap of each size is the paper's rule."""
    shown = []
    for n, caps in plan.losses.items():
        rows = blobs(n)
        plain = KMeans(CLUSTERS, n_init=3, random_state=0).fit(rows).inertia_
        for cap in caps:
            model = PEMeans(CLUSTERS, domain=domain_of(rows), max_candidates=cap, n_jobs=1)
            found, costs = [], []
            for seed in range(plan.seeds):
                model.random_state = seed
                costs.append(measured(lambda model=model, rows=rows: model.fit(rows)))  # type: ignore[misc]
                found.append(-model.score(rows) / plain)
            error = np.std(found, ddof=1) / np.sqrt(plan.seeds)
            seconds = f"{np.mean([cost.seconds for cost in costs]):.1f}"
            mib = f"{max(cost.mib for cost in costs):.0f}"
            shown.append([f"{n:,}", f"{cap:,}", f"{np.mean(found):.3f} ± {error:.3f}", seconds, mib])
            print(*shown[-1], file=sys.stderr, flush=True)
    columns = ["rows", "`max_candidates`", f"loss, {plan.seeds} seeds", "seconds", "MiB beside the rows"]
    return "\n\n".join([ABOUT_LOSSES, table(columns, shown)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more sizes, and losses at larger n")
    parser.add_argument("--only", choices=("growth", "losses"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    plan = FULL if asked.full else SHORT
    print(f"# How the time grows with the rows\n\n{machine()} Seconds are those of the processor.\n")
    if asked.only != "losses":
        print(growth(plan), flush=True)
    if asked.only != "growth":
        print(f"\n## What the cap on candidates costs\n\n{losses(plan)}")


if __name__ == "__main__":
    main()

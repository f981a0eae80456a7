"""Two threads beside one: whole fits of large shapes, in turns, in one process.

Seconds are those that pass, the fastest of several fits, so this needs a machine with two idle cores; the
processor seconds of both tell whether it had them. Made-up rows, epsilon 1.

Run it as ``python benchmarks/speed_threads.py [REPEATS]``.
"""

from __future__ import annotations

import sys
import time
import warnings

from measuring import geometric_mean, goal_line, machine, measured, table
from pemeans import DPKMeans, PEMeans
from pemeans.estimators import PrivateKMeans
from speed_growth import Floats, blobs, domain_of

GOAL = 1.7
ROUNDS = 8
"""Votes of PEMeans: all rounds cost the same."""
SHAPES = (
    ("PEMeans", 200_000, 16, 64),
    ("PEMeans", 70_000, 84, 10),
    ("DPKMeans", 1_000_000, 16, 64),
    ("DPKMeans", 100_000, 128, 64),
)
"""Method, n, d and k."""


def model_of(method: str, k: int, rows: Floats, n_jobs: int) -> PrivateKMeans:
    domain = domain_of(rows)
    if method == "PEMeans":
        return PEMeans(k, domain=domain, n_iterations=ROUNDS, random_state=0, n_jobs=n_jobs)
    return DPKMeans(k, domain=domain, random_state=0, n_jobs=n_jobs)


def compare(method: str, n: int, d: int, k: int, repeats: int) -> tuple[list[str], float]:
    """A line of the table, and how many times faster two threads are."""
    rows = blobs(n, d, k)
    models = [model_of(method, k, rows, n_jobs) for n_jobs in (1, 2)]
    seconds, processor, mib = [[9e9] * 2, [9e9] * 2, [0.0] * 2]
    for _ in range(repeats):
        for i, model in enumerate(models):
            start = time.process_time()
            cost = measured(lambda model=model: model.fit(rows), clock=time.perf_counter)  # type: ignore[misc]
            seconds[i] = min(seconds[i], cost.seconds)
            processor[i] = min(processor[i], time.process_time() - start)
            mib[i] = max(mib[i], cost.mib)
    faster = seconds[0] / seconds[1]
    line = [method, *(f"{number:,}" for number in (n, d, k)), *(f"{s:.2f}" for s in seconds), f"{faster:.2f}"]
    return [*line, *(f"{s:.2f}" for s in processor), *(f"{m:.0f}" for m in mib)], faster


def main(repeats: int = 3) -> str:
    warnings.simplefilter("ignore")
    found = [compare(*shape, repeats) for shape in SHAPES]
    columns = ["method", "n", "d", "k", "1 thread, s", "2 threads, s", "times faster"]
    columns += ["processor, 1", "processor, 2", "MiB, 1", "MiB, 2"]
    faster = geometric_mean(ratio for _, ratio in found)
    goal = goal_line("Two threads, geometric mean of how many times faster", faster, GOAL, "at least")
    return table(columns, (line for line, _ in found)) + "\n\n" + goal


if __name__ == "__main__":
    print(f"# Two threads\n\n{machine()}\n\n{main(*map(int, sys.argv[1:]))}")

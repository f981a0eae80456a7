"""How far from the best that is known: the areas of private methods over those of k-means with many starts.

Reads results of ``pemeans bench run table1``; k-means without privacy is run here, with so many single
starts for each data set, or as many as twelve seconds allow. Prints a Markdown table.

Run it as ``python benchmarks/best_known.py RESULTS...``, with ``PEMEANS_DATA`` naming the data's folder.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from pemeans.bench.analysis import Results, area
from pemeans.bench.datasets import prepared
from pemeans.bench.methods import ALL_METHODS, Role
from pemeans.bench.registry import TABLE1
from pemeans.bench.store import read_records
from pemeans.bench.suites import EPSILONS

STARTS, LEAST, PATIENCE = 30, 5, 12.0
OURS = "DPKMeans"
OTHERS = [method.name for method in ALL_METHODS if method.private and method.role is not Role.RECOMMENDED]


def starts_of(dataset: str) -> list[float]:
    """Areas of k-means from single starts: of a line, since it knows no epsilon."""
    points, found, begin = prepared(dataset), list[float](), time.process_time()
    for seed in range(STARTS):
        loss = KMeans(points.k, n_init=1, random_state=seed).fit(points.X).inertia_ / len(points.X)
        found.append(area([loss] * len(EPSILONS)))
        if time.process_time() - begin > PATIENCE and len(found) >= LEAST:
            break
    return found


def main() -> None:
    results = Results(read_records([Path(name) for name in sys.argv[1:]]))
    print(
        "| data | starts | over the best start | ± s.e. | over the mean start | best other method "
        "| over that |"
    )
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: |")
    best, mean = [], []
    for dataset in TABLE1:
        starts, ours = starts_of(dataset), results.areas(dataset, OURS)
        areas = {name: results.areas(dataset, name) for name in OTHERS}
        others = {name: found.mean() for name, found in areas.items() if len(found)}
        rival = min(others, key=lambda name: others[name])
        best.append(ours.mean() / min(starts))
        mean.append(ours.mean() / np.mean(starts))
        error = ours.std(ddof=1) / np.sqrt(len(ours)) / min(starts)
        print(
            f"| {dataset} | {len(starts)} | {best[-1]:.3f} | {error:.3f} | {mean[-1]:.3f} | {rival} "
            f"| {ours.mean() / others[rival]:.3f} |",
            flush=True,
        )
    print(
        f"\nGeometric means over the data sets: **{np.exp(np.mean(np.log(best))):.4f}** over the best start, "
        f"**{np.exp(np.mean(np.log(mean))):.4f}** over the mean start."
    )


if __name__ == "__main__":
    main()

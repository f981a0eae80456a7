"""PE-means and HDPE-means beside the paper's Table 1, from results of ``pemeans bench run table1``.

Run it as ``python benchmarks/evolution_against_paper.py RESULTS...``, with results files of any kind; prints
a Markdown table. The paper gives areas to four decimals, as means of 50 runs, without errors: z is our mean
area less the paper's, over the error of both, with our own spread standing in for the paper's, and the
rounding with it. Where the paper's data could not be had there is no z: compare multiples of non-private.
"""

from __future__ import annotations

import argparse
from math import hypot, sqrt
from pathlib import Path

import numpy as np

from pemeans.bench.analysis import Results
from pemeans.bench.methods import METHODS, REFERENCE
from pemeans.bench.registry import REGISTRY, TABLE1
from pemeans.bench.rendering import NONE
from pemeans.bench.store import read_records
from pemeans.bench.tables import paper_table

PAPER_RUNS = 50
PAPER_ROUNDING = 1e-4 / sqrt(12)
"""Standard deviation of what four decimals leave out."""
COMPARED = (
    *((name, "PEMeans") for name in ("iris", "adult", "letter", "birch2", "g2_16")),
    *((name, "PEMeans") for name in ("sklearn_16_16", "sklearn_64_16", "scale_16_4")),
    *((name, "HDPEMeans") for name in ("sklearn_16_64", "g2_128", "mnist")),
)
EVERY = tuple(
    (name, method)
    for name in TABLE1
    for method in ("PEMeans", "HDPEMeans")
    if METHODS[method].paper in paper_table()[name]
)
LEAST_RUNS = 5
HEAD = (
    "data", "method", "runs", "loss at epsilon 1", "± s.e.", "area", "± s.e.", "paper's", "z",
    "area / non-private", "paper's",
)  # fmt: skip


def line(results: Results, dataset: str, method: str) -> list[str] | None:
    """One row of the table; None while there are too few runs."""
    areas, reference = results.areas(dataset, method), results.areas(dataset, REFERENCE)
    if len(areas) < LEAST_RUNS or not len(reference):
        return None
    losses = [outcome.loss for outcome in results.outcomes(dataset, method, 1.0).values()]
    at_one = np.array(losses, dtype=np.float64)
    paper = paper_table()[dataset]
    theirs, base = paper[METHODS[method].paper or ""], paper["nonprivate"]
    area, spread = areas.mean(), areas.std(ddof=1)
    same = REGISTRY[dataset].same_as_paper
    error = hypot(spread / sqrt(len(areas)), spread / sqrt(PAPER_RUNS), PAPER_ROUNDING)
    return [
        dataset + ("" if same else "*"),
        METHODS[method].label,
        str(len(areas)),
        f"{at_one.mean():.5f}",
        f"{at_one.std(ddof=1) / sqrt(len(at_one)):.5f}",
        f"{area:.5f}",
        f"{spread / sqrt(len(areas)):.5f}",
        f"{theirs:.4f}",
        f"{(area - theirs) / error:+.1f}" if same else NONE,
        f"{area / reference.mean():.3f}",
        f"{theirs / base:.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="PE-means and HDPE-means beside the paper's Table 1.")
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--all", action="store_true", help="every data set of the table, not eleven of them")
    chosen = parser.parse_args()
    results = Results(read_records(chosen.results))
    pairs = [(name, m) for name in REGISTRY for m in ("PEMeans", "HDPEMeans")] if chosen.all else COMPARED
    lines = [
        line(results, *pair) for pair in pairs if METHODS[pair[1]].paper in paper_table().get(pair[0], {})
    ]
    print(f"| {' | '.join(HEAD)} |\n| --- | --- |{' ---: |' * (len(HEAD) - 2)}")
    for found in lines:
        if found is not None:
            print(f"| {' | '.join(found)} |")
    print("\nA star marks data that are not the paper's own numbers.")


if __name__ == "__main__":
    main()

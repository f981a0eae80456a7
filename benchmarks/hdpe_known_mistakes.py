"""HDPE-means with two mistakes of earlier code put back, one after the other, beside the paper's Table 1.

That code takes 16 iterations whatever the epsilon, which leaves more of a large budget for the lift. And in
the lift one number of noise serves all coordinates of a center, which is not private: the difference of two
coordinates comes out exactly. Both lower the loss.

Run it as ``python benchmarks/hdpe_known_mistakes.py``, with PEMEANS_DATA set for data that are not generated.
Options: ``--seeds``, ``--datasets``. Prints areas under the loss over epsilon, with their standard errors.
"""

from __future__ import annotations

import argparse

import numpy as np

from pemeans.bench.analysis import area
from pemeans.bench.datasets import Points, prepared
from pemeans.bench.suites import EPSILONS
from pemeans.bench.tables import paper_table
from pemeans.domain import Domain
from pemeans.evolution.loop import Settings
from pemeans.evolution.project import hdpe_means
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import to_float
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestSums
from pemeans.rows.base import Question
from pemeans.rows.memory import MemoryRows

DATASETS = "g2_128,scale_64_128,sklearn_16_64,sklearn_64_64"
ITERATIONS = 16


class OneNumberForAllCoordinates(Curator):
    """The first coordinate's noise is that of all."""

    def _with_gaussian(self, statistic: Question, sigma: float) -> Answer:
        noisy = super()._with_gaussian(statistic, sigma)
        if not isinstance(statistic, NearestSums):
            return noisy
        exact = super()._with_gaussian(statistic, 0).values
        return Answer(exact + (noisy.values - exact)[:, :1], sigma)


VARIANTS: dict[str, tuple[int | None, type[Curator]]] = {
    "ours": (None, Curator),
    "16 iterations": (ITERATIONS, Curator),
    "16 iterations, shared noise": (ITERATIONS, OneNumberForAllCoordinates),
}


def loss(points: Points, variant: tuple[int | None, type[Curator]], epsilon: float, seed: int) -> float:
    iterations, kind = variant
    n, d, k = points.size
    domain = Domain.ball(1.0).bind(n, d)
    ledger = Ledger(epsilon, n**-1.1)
    for_noise, for_start = np.random.SeedSequence([seed, round(100 * epsilon)]).spawn(2)
    noise = NoiseSampler(SeededBits(for_noise), ledger.tail_bits)
    curator = kind(MemoryRows(points.X, domain, 1), domain, ledger, noise)
    found = hdpe_means(curator, Settings(k, n_iterations=iterations), np.random.default_rng(for_start))
    return float(squared_distances(points.X, to_float(found.centers)).min(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="HDPE-means with two mistakes of earlier code.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", default=DATASETS)
    chosen = parser.parse_args()
    print("| data | variant | area | ± s.e. | paper |\n| --- | --- | ---: | ---: | ---: |", flush=True)
    for dataset in chosen.datasets.split(","):
        points, paper = prepared(dataset), paper_table()[dataset]["hdpe_means"]
        for label, variant in VARIANTS.items():
            areas = np.array(
                [area([loss(points, variant, e, seed) for e in EPSILONS]) for seed in range(chosen.seeds)]
            )
            error = areas.std(ddof=1) / len(areas) ** 0.5
            print(f"| {dataset} | {label} | {areas.mean():.4f} | {error:.4f} | {paper:.4f} |", flush=True)


if __name__ == "__main__":
    main()

"""DPKMeans beside PEMeans (and HDPEMeans, above 16 features) on data of many shapes; prints a table.

Losses are given as multiples of what scikit-learn's KMeans with ten starts reaches without privacy, plus or
minus one standard error over the seeds. Data are made up, and drawn once; only the fits have other seeds.

Run it as ``python benchmarks/dpkmeans_shapes.py [SEEDS] [SHAPE ...]``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans, SeededNoiseWarning
from pemeans.estimators import PrivateKMeans

Floats = npt.NDArray[np.float64]

BUDGETS = (0.25, 1.0, 4.0)
PROJECTED = 16
"""With more features than this HDPEMeans is not PEMeans."""
SPREAD = 10.0
"""Means of blobs lie in a cube of this half-width; their standard deviation is 1."""


@dataclass(frozen=True)
class Shape:
    """Rows, how many clusters to find in them, and the public ball that is given."""

    rows: Floats
    k: int
    radius: float
    center: float = 0.0


def tight(rows: Floats, k: int) -> Shape:
    """The protocol of the paper: rows centered, and the smallest ball around their mean."""
    rows = rows - rows.mean(axis=0)
    return Shape(rows, k, float(np.linalg.norm(rows, axis=1).max()))


def blobs(n: int, d: int, k: int, seed: int, sizes: Floats | None = None) -> Floats:
    """Round Gaussian clusters, equally large unless `sizes` says otherwise."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(-SPREAD, SPREAD, (k, d))
    label = rng.choice(k, size=n, p=sizes) if sizes is not None else np.arange(n) % k
    return np.asarray(means[label] + rng.standard_normal((n, d)))


def uneven() -> Shape:
    sizes = np.geomspace(1, 100, 16)
    return tight(blobs(10_000, 8, 16, 1, sizes / sizes.sum()), 16)


def uneven_in_the_plane() -> Shape:
    sizes = np.geomspace(1, 100, 20)
    return tight(blobs(10_000, 2, 20, 2, sizes / sizes.sum()), 20)


def outliers() -> Shape:
    """One row in a hundred lies anywhere in a cube five times as wide."""
    rows = blobs(10_000, 4, 16, 3)
    rows[::100] = np.random.default_rng(3).uniform(-5 * SPREAD, 5 * SPREAD, (100, 4))
    return tight(rows, 16)


def far_outliers() -> Shape:
    """Five rows a hundred times as far out as the rest."""
    rows = blobs(10_000, 8, 10, 4)
    rows[:5] *= 100
    return tight(rows, 10)


def heavy_tails() -> Shape:
    """Clusters with Student's t of three degrees of freedom."""
    rng = np.random.default_rng(5)
    means = rng.uniform(-SPREAD, SPREAD, (12, 6))
    return tight(np.asarray(means[np.arange(10_000) % 12] + rng.standard_t(3, (10_000, 6))), 12)


def lognormal() -> Shape:
    """Amounts: one long tail in every column, no clusters to speak of."""
    rng = np.random.default_rng(6)
    return tight(np.exp(rng.standard_normal((10_000, 5))), 8)


def integers() -> Shape:
    """Small counts: few distinct rows, many ties."""
    rng = np.random.default_rng(7)
    rates = rng.uniform(0.2, 6, (10, 6))
    return tight(rng.poisson(rates[np.arange(10_000) % 10]).astype(np.float64), 10)


def one_hot() -> Shape:
    """Four categorical columns as zeros and ones: 23 columns, every row at one of few places."""
    rng = np.random.default_rng(8)
    label = np.arange(10_000) % 8
    columns = []
    for levels in (4, 5, 6, 8):
        chances = rng.dirichlet(np.full(levels, 0.3), size=8)
        level = (rng.random((10_000, 1)) > np.cumsum(chances, axis=1)[label]).sum(axis=1)
        columns.append(np.eye(levels)[np.minimum(level, levels - 1)])
    return tight(np.hstack(columns), 8)


def correlated() -> Shape:
    """Forty columns that are mixtures of three, and a little noise."""
    rng = np.random.default_rng(9)
    hidden = blobs(10_000, 3, 12, 9)
    return tight(hidden @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((10_000, 40)), 12)


def sixty_four_rows_a_cluster() -> Shape:
    return tight(blobs(64 * 32, 8, 32, 10), 32)


def hundred_in_the_plane() -> Shape:
    return tight(blobs(10_000, 2, 100, 11), 100)


def sine_curve() -> Shape:
    """A hundred small clusters along a sine curve in the plane."""
    rng = np.random.default_rng(12)
    x = np.arange(100.0)
    means = np.column_stack([x, 16 * np.sin(2 * np.pi * x / 50)])
    return tight(means[np.arange(20_000) % 100] + 0.3 * rng.standard_normal((20_000, 2)), 100)


def overlapping() -> Shape:
    """Clusters as wide as their distances."""
    rng = np.random.default_rng(13)
    means = 1.5 * rng.standard_normal((16, 16))
    return tight(np.asarray(means[np.arange(10_000) % 16] + rng.standard_normal((10_000, 16))), 16)


def one_blob() -> Shape:
    """No clusters at all."""
    return tight(np.random.default_rng(14).standard_normal((10_000, 6)), 10)


def uniform_square() -> Shape:
    return tight(np.random.default_rng(15).uniform(-1, 1, (10_000, 2)), 30)


def many_features() -> Shape:
    return tight(blobs(10_000, 128, 16, 16), 16)


def many_features_and_clusters() -> Shape:
    return tight(blobs(10_000, 64, 64, 17), 64)


def one_feature() -> Shape:
    return tight(blobs(5_000, 1, 6, 18), 6)


def two_far_clumps() -> Shape:
    """Two clumps a thousand of their widths apart, one with 2 % of the rows."""
    rng = np.random.default_rng(19)
    rows = 0.01 * rng.standard_normal((5_000, 3))
    rows[:100] += 10
    return tight(rows, 4)


def far_clump_in_many_columns() -> Shape:
    """The same in 30 columns."""
    rng = np.random.default_rng(21)
    rows = 0.01 * rng.standard_normal((5_000, 30))
    rows[:100] += 10
    return tight(rows, 4)


def iris() -> Shape:
    return tight(np.asarray(load_iris().data, dtype=np.float64), 3)


def off_center() -> Shape:
    """Blobs in a public ball whose center is far from them, three times as wide as need be."""
    shape = tight(blobs(10_000, 8, 16, 20), 16)
    shift = 1.9 * shape.radius / np.sqrt(8)
    return Shape(shape.rows + shift, 16, 3 * shape.radius)


def loose(times: float) -> Shape:
    """Blobs in a public ball that is so many times too wide."""
    shape = tight(blobs(10_000, 8, 16, 20), 16)
    return Shape(shape.rows, 16, times * shape.radius)


SHAPES: dict[str, Callable[[], Shape]] = {
    "uneven sizes, 1 to 100": uneven,
    "uneven sizes in the plane": uneven_in_the_plane,
    "1 % outliers": outliers,
    "five far outliers": far_outliers,
    "heavy tails": heavy_tails,
    "lognormal amounts": lognormal,
    "small counts": integers,
    "one-hot columns": one_hot,
    "correlated columns": correlated,
    "64 rows a cluster": sixty_four_rows_a_cluster,
    "100 clusters in the plane": hundred_in_the_plane,
    "100 clusters on a curve": sine_curve,
    "overlapping clusters": overlapping,
    "one round blob": one_blob,
    "uniform square": uniform_square,
    "128 columns": many_features,
    "64 columns, 64 clusters": many_features_and_clusters,
    "one column": one_feature,
    "two far clumps": two_far_clumps,
    "two far clumps in 30 columns": far_clump_in_many_columns,
    "iris (150 rows)": iris,
    "off-center bounds": off_center,
    "bounds 1 times as wide": lambda: loose(1),
    "bounds 2 times as wide": lambda: loose(2),
    "bounds 5 times as wide": lambda: loose(5),
    "bounds 10 times as wide": lambda: loose(10),
}


def loss_of(shape: Shape, method: type[PrivateKMeans], epsilon: float, seed: int) -> float:
    """The loss of one private fit."""
    domain = Domain.ball(shape.radius, shape.center)
    model = method(shape.k, epsilon=epsilon, domain=domain, random_state=seed, n_jobs=1)
    return -model.fit(shape.rows).score(shape.rows)


def measured(shape: Shape, method: type[PrivateKMeans], epsilon: float, seeds: int) -> tuple[float, float]:
    """Mean loss over the seeds and its standard error."""
    losses = np.array([loss_of(shape, method, epsilon, seed) for seed in range(seeds)])
    return float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0


def without_privacy(shape: Shape) -> float:
    """The loss of scikit-learn's KMeans."""
    return float(KMeans(shape.k, n_init=10, random_state=0).fit(shape.rows).inertia_)


def line(name: str, shape: Shape, epsilon: float, seeds: int) -> str:
    """One line of the table: every method's loss, and that of DPKMeans over the best other one's."""
    plain = without_privacy(shape)
    methods = [DPKMeans, PEMeans, *([HDPEMeans] if shape.rows.shape[1] > PROJECTED else [])]
    results = [measured(shape, method, epsilon, seeds) for method in methods]
    cells = [f"{mean / plain:.3f} ± {error / plain:.3f}" for mean, error in results]
    cells += [""] * (3 - len(cells))
    (ours, our_error), (theirs, their_error) = results[0], min(results[1:])
    ratio = ours / theirs
    error = ratio * np.hypot(our_error / ours, their_error / theirs)
    return f"| {name} | {epsilon:g} | {' | '.join(cells)} | {ratio:.3f} ± {error:.3f} |"


def main() -> None:
    warnings.simplefilter("ignore", SeededNoiseWarning)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    print("| data | epsilon | DPKMeans | PEMeans | HDPEMeans | DPKMeans over the best other |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sys.argv[2:] or SHAPES:
        shape = SHAPES[name]()
        for epsilon in BUDGETS:
            print(line(name, shape, epsilon, seeds), flush=True)


if __name__ == "__main__":
    main()

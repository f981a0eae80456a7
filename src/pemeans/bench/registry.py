"""What is known of each data set of the paper's Table 1: size, source, license, checksums, home."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources

import numpy as np

from pemeans.bench.formats import (
    Table,
    read_adult,
    read_birch2,
    read_g2,
    read_gas,
    read_iris,
    read_letter,
)
from pemeans.bench.homes import Home
from pemeans.bench.scale import make_scale

BLOB_ROWS, BLOB_SEED, BLOB_DECIMALS = 20_000, 1, 4
"""The sklearn sets, as the paper's authors made them and wrote them down."""
TOY_ROWS = 200
"""Rows of ``toy``, the data of the paper's vote-splitting example."""
TOY_SEED = 1

UCI = "https://archive.ics.uci.edu/static/public"
SIPU = "https://cs.joensuu.fi/sipu/datasets"
FASTLLOYD_ARCHIVE = "https://zenodo.org/records/15615521"

CC_BY = "CC BY 4.0"
CITE = (
    'none stated; cite P. Fränti and S. Sieranoja, "K-means properties on six clustering benchmark '
    'datasets", '
    "Applied Intelligence 48 (2018)"
)
MADE = "generated; no license needed"


@dataclass(frozen=True)
class Dataset:
    """One data set.

    ``checksum`` and ``labels_checksum`` are the SHA-256 of the rows as little-endian float64 and of the
    labels as little-endian int64, both in C order; None where nothing is known beforehand.
    """

    name: str
    n: int
    d: int
    k: int
    source: str
    license: str
    checksum: str | None = None
    labels_checksum: str | None = None
    home: Home | None = None
    make: Callable[[], Table] | None = None
    note: str = ""

    @property
    def family(self) -> str:
        """One of real, g2, scale, sklearn, or toy."""
        family = self.name.partition("_")[0]
        return family if family in ("g2", "scale", "sklearn", "toy") else "real"

    @property
    def homeless(self) -> str:
        """Why a data set has no public home."""
        if self.family == "scale":
            return f"it is one draw of an R package (a fresh one is {self.name}_seed1, made anywhere)"
        return "its features come from a network that was trained for it"

    @property
    def same_as_paper(self) -> bool:
        """Whether these are the paper's very numbers, as far as can be told."""
        return self.name in TABLE1 and self.name != "mnist" and self.family != "scale"


def make_blobs(k: int, d: int, n: int = BLOB_ROWS, seed: int = BLOB_SEED) -> Table:
    """scikit-learn's isotropic Gaussian blobs, to four decimals."""
    from sklearn.datasets import make_blobs as blobs

    X, y = blobs(n_samples=n, n_features=d, centers=k, random_state=seed)[:2]
    return np.round(X, BLOB_DECIMALS), y.astype(np.int64)


MNIST_NOTE = (
    "Not the authors' features: theirs come from an unseeded training run. The non-private loss depends a "
    "lot on the draw, so compare ratios to it, not losses."
)
MNIST_SOURCE = (
    "MNIST (Y. LeCun, C. Cortes, C. Burges), train then test: features of the last hidden layer of a LeNet-5 "
    "trained for one epoch with torch seed {seed}"
)
MNIST_LICENSE = "CC BY-SA 3.0, as usually stated for MNIST"
SCALE_NOTE = (
    "Not the authors' draw, but one from the same generator and settings, the one of eight whose "
    "non-private loss is nearest to the paper's. The authors' own is in scale_datasets.tar.xz at "
    f"{FASTLLOYD_ARCHIVE} (2.2 GB). A name like scale_16_4_seed1 makes a fresh draw anywhere."
)

SOURCES: dict[str, tuple[str, str, str]] = {
    "birch2": (
        "BIRCH (T. Zhang, R. Ramakrishnan, M. Livny, 1997), from the SIPU collection: the random sample of "
        "25,000 rows that the authors of FastLloyd publish",
        CITE,
        "The published sample has no labels; those of a local file are the full set's own, by coordinates.",
    ),
    "iris": (
        "UCI Iris (R. Fisher)",
        CC_BY,
        "UCI's file, which differs in two rows from scikit-learn's copy.",
    ),
    "adult": ("UCI Adult (B. Becker, R. Kohavi), train then test, six numeric columns", CC_BY, ""),
    "mnist": (MNIST_SOURCE.format(seed=0), MNIST_LICENSE, MNIST_NOTE),
    "mnist_seed5": (MNIST_SOURCE.format(seed=5), MNIST_LICENSE, MNIST_NOTE),
    "letter": ("UCI Letter Recognition (D. Slate)", CC_BY, ""),
    "gas": (
        "UCI Gas Turbine CO and NOx Emission (H. Kaya, P. Tüfekci, E. Uzun), the year and the 11 measured "
        "columns",
        CC_BY,
        "",
    ),
    "g2": ("SIPU clustering benchmark (P. Fränti, S. Sieranoja), file g2-<d>-50", CITE, ""),
    "scale": ("R package clusterGeneration 1.3.7 (W. Qiu, H. Joe), settings of FastLloyd", MADE, SCALE_NOTE),
    "sklearn": (f"scikit-learn's make_blobs, random_state={BLOB_SEED}, to four decimals", MADE, ""),
}
"""Source, license and what must be known, by name or family."""

HOMES: dict[str, Home] = {
    "birch2": Home(f"{FASTLLOYD_ARCHIVE}/files/real_datasets.tar.xz", read_birch2),
    "iris": Home(f"{UCI}/53/iris.zip", read_iris),
    "adult": Home(f"{UCI}/2/adult.zip", read_adult),
    "letter": Home(f"{UCI}/59/letter+recognition.zip", read_letter),
    "gas": Home(f"{UCI}/551/gas+turbine+co+and+nox+emission+data+set.zip", read_gas),
} | {f"g2_{d}": Home(f"{SIPU}/g2-txt.zip", partial(read_g2, dimensions=d)) for d in (4, 16, 64, 128)}


def _registry() -> dict[str, Dataset]:
    """All data sets with known sizes and checksums."""
    with resources.files("pemeans.bench").joinpath("datasets.csv").open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    found = {}
    for record in records:
        name, d, k = record["name"], int(record["d"]), int(record["k"])
        family = name.partition("_")[0]
        source, license_, note = SOURCES.get(name) or SOURCES[family]
        found[name] = Dataset(
            name=name,
            n=int(record["n"]),
            d=d,
            k=k,
            source=source,
            license=license_,
            checksum=record["sha256"],
            labels_checksum=record["labels_sha256"] or None,
            home=HOMES.get(name),
            make=partial(make_blobs, k, d) if family == "sklearn" else None,
            note=note,
        )
    return found


TOY = Dataset(
    name="toy",
    n=TOY_ROWS,
    d=2,
    k=4,
    source=f"scikit-learn's make_blobs, random_state={TOY_SEED}",
    license=MADE,
    make=partial(make_blobs, 4, 2, TOY_ROWS, TOY_SEED),
    note="For the vote-splitting example; the authors' seed is not known.",
)
REGISTRY: dict[str, Dataset] = _registry()
"""Data sets with known checksums; in the order of the paper's table, extras at the end."""
TABLE1: tuple[str, ...] = tuple(name for name in REGISTRY if name != "mnist_seed5")
"""The 34 data sets of Table 1, in its order."""
EXTRAS = ("mnist_seed5", "toy")


def find(name: str) -> Dataset | None:
    """What is known of a data set: a registered one, or one that can be made for the size in its name.

    Examples
    --------
    >>> find("iris").n, find("scale_8_3_seed2").k, find("sklearn_5_2").d
    (150, 8, 2)
    """
    known = REGISTRY.get(name) or (TOY if name == TOY.name else None)
    if known:
        return known
    if made := re.fullmatch(r"scale_(\d+)_(\d+)_seed(\d+)", name):
        k, d, seed = map(int, made.groups())
        source = "our own generator after W. Qiu and H. Joe (2006)"
        return _made(name, k, d, source, partial(make_scale, k, d, seed), 10_000)
    if made := re.fullmatch(r"sklearn_(\d+)_(\d+)", name):
        k, d = map(int, made.groups())
        return _made(name, k, d, SOURCES["sklearn"][0], partial(make_blobs, k, d), BLOB_ROWS)
    return None


def _made(name: str, k: int, d: int, source: str, make: Callable[[], Table], n: int) -> Dataset | None:
    """A data set that is generated and has no checksum, if its size makes sense."""
    return Dataset(name, n, d, k, source, MADE, make=make) if k > 0 and d > 0 else None

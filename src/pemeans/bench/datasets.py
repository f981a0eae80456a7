"""Loading data sets: from a folder, from the cache, from a generator, or from their public homes."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pemeans.bench.formats import Table
from pemeans.bench.homes import FOLDER_VARIABLE, cache_folder
from pemeans.bench.registry import Dataset, find
from pemeans.errors import DataError
from pemeans.kernels.grid import FloatArray, IntArray

ROUNDING = 1e-12
"""Rows that differ by less than this part of the largest number are taken for equal."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows, their labels where there are any (negative: without a label), and the number of clusters."""

    X: FloatArray
    y: IntArray | None
    k: int

    @property
    def size(self) -> tuple[int, int, int]:
        """n, d and k."""
        return *self.X.shape, self.k


def load(name: str) -> Points:
    """A data set in its own units, checked against its checksums where these are known.

    A file ``<name>.npz`` in the folder that PEMEANS_DATA names comes first; it may also hold a data set of
    the user's own, with arrays ``X``, if wished ``y``, and ``k`` if that is not the number of labels in y.

    Raises
    ------
    DataError
        The data set is unknown, out of reach, or not what it should be.

    Examples
    --------
    >>> load("sklearn_4_4").size
    (20000, 4, 4)
    """
    entry, path = find(name), local_file(name)
    if path is not None:
        return _read_npz(path, entry)
    if entry is None:
        raise DataError(
            f"there is no data set {name!r}; `pemeans data list` shows all, and {FOLDER_VARIABLE} may name "
            f"a folder that holds {_safe(name)}.npz"
        )
    if entry.make is not None:
        return _checked(entry.make(), entry, f"what was generated for {name}")
    if entry.home is not None:
        return _fetched(entry)
    raise DataError(
        f"data set {name!r} has no public home, as {entry.homeless}; set {FOLDER_VARIABLE} to a folder that "
        f"holds {name}.npz"
    )


def reachable(name: str) -> str:
    """Where `load` would take a data set from, in one word; "nowhere" if it would fail."""
    entry = find(name)
    if (path := local_file(name)) is not None:
        return "cache" if path.parent == cache_folder() else "folder"
    if entry is None:
        return "nowhere"
    return "generator" if entry.make else "home" if entry.home else "nowhere"


def local_file(name: str) -> Path | None:
    """The file in the user's folder, or the one that was kept when the data set was fetched."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder and not Path(folder).is_dir():
        raise DataError(f"{FOLDER_VARIABLE}={folder} is not a folder; correct it or unset it")
    for place in [Path(folder), cache_folder()] if folder else [cache_folder()]:
        path = place / f"{_safe(name)}.npz"
        if path.is_file():
            return path
    return None


def normalize(X: FloatArray) -> FloatArray:
    """The paper's protocol: subtract the mean, divide by the largest norm. Not private, alike for all.

    Examples
    --------
    >>> normalize(np.array([[1.0, 2.0], [3.0, 2.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    # A power of two changes no digit, and keeps the squares of very large and very small numbers in float64.
    scaled = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1]))
    centered = scaled - scaled.mean(axis=0)
    longest = float(np.sqrt(np.einsum("ij,ij->i", centered, centered).max()))
    return np.asarray(centered / longest if longest > ROUNDING else np.zeros_like(X))


@cache
def prepared(name: str) -> Points:
    """A normalized data set; loaded once in every process."""
    points = load(name)
    X = normalize(points.X)
    X.flags.writeable = False
    return Points(X, points.y, points.k)


@cache
def size_of(name: str) -> tuple[int, int, int]:
    """n, d and k of a data set; loads it only if it is not registered."""
    entry = find(name)
    return (entry.n, entry.d, entry.k) if entry else load(name).size


def checksum(array: npt.NDArray[np.generic], dtype: str) -> str:
    """SHA-256 of an array's numbers in one fixed layout."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype=dtype).tobytes()).hexdigest()


def _fetched(entry: Dataset) -> Points:
    """Read from its home, check, and keep for the next time."""
    assert entry.home is not None
    table = entry.home.fetch(entry.name)
    try:
        points = _checked(table, entry, f"what {entry.home.url} holds for {entry.name}")
    except DataError:
        entry.home.forget()
        raise
    kept, beside = cache_folder() / f"{entry.name}.npz", cache_folder() / f".{entry.name}.{os.getpid()}.npz"
    if points.y is None:
        np.savez_compressed(beside, X=points.X)
    else:
        np.savez_compressed(beside, X=points.X, y=points.y)
    beside.replace(kept)
    return points


def _read_npz(path: Path, entry: Dataset | None) -> Points:
    """The arrays of a file, without trusting it further than that."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            X = np.ascontiguousarray(arrays["X"], dtype=np.float64)
            y = arrays["y"].astype(np.int64) if "y" in arrays else None
            k = int(arrays["k"]) if "k" in arrays else None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise DataError(
            f"{path} is not a readable .npz file with a numeric array X, and whole numbers y or k; "
            "make it again"
        ) from None
    if X.ndim != 2 or len(X) == 0 or not np.isfinite(X).all():
        raise DataError(f"{path}: X is not a table of finite numbers; make it again")
    if y is not None and y.shape != (len(X),):
        raise DataError(f"{path}: y does not hold one label for each row of X; make it again")
    if entry is not None:
        return _checked((X, y), entry, str(path))
    if k is None:
        if y is None:
            raise DataError(f"{path} does not say how many clusters to look for; add a number k or labels y")
        k = len(np.unique(y[y >= 0]))
    if not 1 <= k <= len(X):
        raise DataError(f"{path}: k={k} clusters of {len(X)} rows can't be; let k be from 1 to that")
    return Points(X, y, k)


def _checked(table: Table, entry: Dataset, origin: str) -> Points:
    """The data set, if it holds the numbers that it should."""
    X, y = table
    wrong = entry.checksum is not None and checksum(X, "<f8") != entry.checksum
    if entry.labels_checksum is not None and y is not None:
        wrong |= checksum(y, "<i8") != entry.labels_checksum
    if wrong:
        raise DataError(
            f"{origin} does not have the checksum of {entry.name}, so its numbers differ from those that "
            "the results belong to; get the right file, or give it another name"
        )
    return Points(np.ascontiguousarray(X, dtype=np.float64), y, entry.k)


def _safe(name: str) -> str:
    """A data set's name as part of a file name: it can't lead out of the folder."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)

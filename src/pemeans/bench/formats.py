"""Raw files of public data sets, as their homes publish them."""

from __future__ import annotations

import csv
import io
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pemeans.errors import DataError
from pemeans.kernels.grid import FloatArray, IntArray

Table = tuple[FloatArray, IntArray | None]
"""Rows, and the labels of those where there are any."""

ADULT_NUMBERS = (0, 2, 4, 10, 11, 12)
"""age, fnlwgt, education-num, capital-gain, capital-loss, hours-per-week."""
GAS_YEARS = range(2011, 2016)
GAS_DECIMALS = 4


def read_iris(path: Path) -> Table:
    """UCI's iris.data: four numbers and a species a line."""
    records = list(_records(_member(path, "iris.data")))
    return _numbers(record[:-1] for record in records), _codes([record[-1] for record in records])


def read_letter(path: Path) -> Table:
    """UCI's letter-recognition.data: a letter and sixteen numbers a line."""
    records = list(_records(_member(path, "letter-recognition.data")))
    return _numbers(record[1:] for record in records), _codes([record[0] for record in records])


def read_adult(path: Path) -> Table:
    """UCI's adult.data and then adult.test: the six numeric columns."""
    records = [*_records(_member(path, "adult.data")), *_records(_member(path, "adult.test"))]
    return _numbers([record[i] for i in ADULT_NUMBERS] for record in records), None


def read_gas(path: Path) -> Table:
    """UCI's gt_2011.csv to gt_2015.csv: the year and the eleven measured columns, to four decimals."""
    rows = []
    for year in GAS_YEARS:
        _, *records = _records(_member(path, f"gt_{year}.csv"))
        rows += [[str(year), *record] for record in records]
    return _numbers(rows).round(GAS_DECIMALS), None


def read_birch2(path: Path) -> Table:
    """The FastLloyd archive's birch2.txt; its sample of 25,000 rows comes without labels."""
    return _numbers(
        line.split() for line in _member(path, "birch2.txt").splitlines() if "x" not in line
    ), None


def read_g2(path: Path, dimensions: int) -> Table:
    """The SIPU collection's g2-<d>-50.txt; the first half of the rows is the first cluster."""
    rows = _numbers(line.split() for line in _member(path, f"g2-{dimensions}-50.txt").splitlines())
    return rows, np.repeat(np.arange(2), [len(rows) // 2, len(rows) - len(rows) // 2])


def _member(path: Path, name: str) -> str:
    """One file of a zip or tar archive, in whatever folder of it."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found = [entry for entry in archive.namelist() if Path(entry).name == name]
                content = archive.read(found[0])
        else:
            with tarfile.open(path) as tar:
                found = [entry for entry in tar.getnames() if Path(entry).name == name]
                extracted = tar.extractfile(found[0])
                content = extracted.read() if extracted else b""
    except (zipfile.BadZipFile, tarfile.TarError, IndexError, EOFError):
        raise DataError(
            f"{path.name} is not an archive that holds {name}: the download may be damaged; fetch it again"
        ) from None
    return content.decode("utf-8", errors="replace")


def _records(text: str) -> Iterator[list[str]]:
    """Lines of comma-separated values; UCI's remark lines start with a bar."""
    for record in csv.reader(io.StringIO(text), skipinitialspace=True):
        if record and not record[0].startswith("|"):
            yield record


def _numbers(rows: Iterable[Sequence[str]]) -> FloatArray:
    """Text as numbers."""
    try:
        return np.array(list(rows), dtype=np.float64)
    except ValueError:
        raise DataError("the raw file holds something that is not a number where one should be") from None


def _codes(names: list[str]) -> IntArray:
    """Numbers for names, in alphabetical order."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)

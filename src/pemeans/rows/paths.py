"""A path that stands for rows: one file, a folder of Parquet files, or a pattern that matches some."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from pemeans.errors import DataError, ParameterError
from pemeans.rows import files
from pemeans.rows.base import ReadableSource
from pemeans.rows.parquet import ParquetReader
from pemeans.rows.stream import StreamSource
from pemeans.rows.table import read_table

SUFFIX = ".parquet"
HIDDEN = ("_", ".")
"""What other programs leave in a folder beside the data starts so."""

Place = str | os.PathLike[str]


def open_path(place: Place, wanted: Sequence[str] | None = None, n_jobs: int | None = None) -> ReadableSource:
    """The rows that a path stands for: Parquet is read in chunks, CSV and Feather as a whole.

    Parameters
    ----------
    place : path
        A file, a folder, or a pattern as the shell knows them.
    wanted : sequence of str, optional
        The columns to use; by default all.
    n_jobs : int or None
        Threads to look at the rows; None means all cores.
    """
    found = files_of(place)
    if Path(found[0]).suffix.lower() != SUFFIX:
        return read_table(files.read_columns(Path(found[0]), wanted))
    for path in found:
        files.check_readable(Path(path))
    return StreamSource(ParquetReader.of_files(found, wanted), n_jobs)


def files_of(place: Place) -> list[str]:
    """The files that a path stands for, by name; several must all be Parquet.

    In a folder, and in the folders below it, those that end in .parquet; not what starts with "_" or ".".
    """
    text = os.fspath(place)
    if os.path.isdir(text):
        found = sorted(str(path) for path in Path(text).rglob("*") if _is_data(path))
        if not found:
            raise DataError(f"{text} has no file that ends in {SUFFIX}; check the path")
        if any("=" in os.path.dirname(os.path.relpath(path, text)) for path in found):
            raise DataError(
                f"{text} is partitioned: the names of its folders hold values of columns; pass "
                f"pyarrow.dataset.dataset({text!r}, partitioning='hive')"
            )
        return found
    if os.path.exists(text) or not glob.has_magic(text):
        return [text]
    found = sorted(filter(os.path.isfile, glob.glob(text, recursive=True)))
    if not found:
        raise DataError(f"no file matches {text}; check the path and the pattern")
    for path in found:
        if not path.lower().endswith(SUFFIX) and len(found) > 1:
            raise ParameterError(f"{path} does not end in {SUFFIX}; several files must be Parquet files")
    return found


def _is_data(path: Path) -> bool:
    return path.suffix.lower() == SUFFIX and not path.name.startswith(HIDDEN) and path.is_file()

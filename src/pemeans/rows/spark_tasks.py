"""What runs on the executors of Spark: rows go into files there, and answer from them."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pemeans.errors import DataError
from pemeans.kernels.grid import Frame, IntArray, Projection
from pemeans.rows import grid_files
from pemeans.rows.base import Question
from pemeans.rows.grid_files import Named
from pemeans.rows.table import Table, checked

SHARED_MEMORY = "/dev/shm"
RAGGED = "rows of X are missing or of different lengths; drop them or make them all of one length"

FILES = pa.schema({"file": pa.string(), "rows": pa.int64(), "width": pa.int64(), "problem": pa.string()})
SUMS = pa.schema({"rows": pa.int64(), "total": pa.binary(), "absent": pa.list_(pa.string())})

Batches = Iterator[pa.RecordBatch]


def keep(encrypted: bool, prefix: str, names: Sequence[str] | None, batches: Batches) -> Batches:
    """One row for a partition: a new file of its rows, how many and how wide they are, and what is wrong."""
    # Spark removes its own folders with the executor. What it would encrypt there stays in memory.
    folder = SHARED_MEMORY if encrypted else random.choice(os.environ["SPARK_LOCAL_DIRS"].split(","))
    n_rows, widths, problem = 0, set(), None
    with grid_files.new(Path(folder), prefix) as file:
        for table in map(partial(_table, names), batches):
            if isinstance(table, DataError):
                problem = str(table)
            elif table.n_rows:
                file.write(np.ascontiguousarray(table.values, dtype=np.float64).data)
                n_rows += table.n_rows
                widths.add(table.n_features)
    if not n_rows:
        os.unlink(file.name)
    found = {
        "file": [file.name if n_rows else None],
        "rows": [n_rows],
        "width": [max(widths, default=None)],
        "problem": [RAGGED if len(widths) > 1 else problem],
    }
    yield pa.RecordBatch.from_pydict(found, FILES)


def answer(
    question: Question,
    width: int,
    ground: Named[Any],
    frame: Named[Frame] | None,
    view: Named[Projection] | None,
    batches: Batches,
) -> Batches:
    """What the rows of a partition add up to, how many they are, and which of their files are not here."""
    _settle()
    n_rows, absent = 0, []
    total: IntArray | int = 0
    for path in _paths(batches):
        if not grid_files.is_here(path, ground):
            absent.append(str(path))
            continue
        for block in grid_files.blocks(path, width, ground, frame, view):
            n_rows += len(block.grid)
            total = total + question(block)
    yield _sums(n_rows, total, absent)


@cache
def _settle() -> None:
    """Spark looks for garbage after each task: let it pass over what is imported, which takes it 50 ms."""
    gc.freeze()


def add(batches: Batches) -> Batches:
    """The sum of sums."""
    sums = [row for batch in batches for row in batch.to_pylist()]
    totals = [np.frombuffer(row["total"], dtype=np.int64) for row in sums if row["rows"]]
    absent = [name for row in sums for name in row["absent"]]
    yield _sums(sum(row["rows"] for row in sums), sum(totals), absent)


def erase(prefix: str, batches: Batches) -> Batches:
    """Remove the files that are here, and those of tasks that were killed or ran twice."""
    for folder in {
        *map(Path, os.environ["SPARK_LOCAL_DIRS"].split(",")),
        *(path.parent for path in _paths(batches)),
    }:
        for path in folder.glob(f"{prefix}*"):
            path.unlink(missing_ok=True)
    yield from ()


def _paths(batches: Batches) -> Iterator[Path]:
    return (Path(name) for batch in batches for name in batch.column("file").to_pylist() if name)


def _sums(n_rows: int, total: IntArray | int, absent: list[str]) -> pa.RecordBatch:
    added = np.asarray(total, dtype=np.int64).tobytes()
    return pa.RecordBatch.from_pydict({"rows": [n_rows], "total": [added], "absent": [absent]}, SUMS)


def _table(names: Sequence[str] | None, batch: pa.RecordBatch) -> Table | DataError:
    """Some rows, or what is wrong with them."""
    lists = batch.column(0)
    width = pa.compute.max(pa.compute.list_value_length(lists)).as_py() or 0
    flat = lists.flatten().to_numpy(zero_copy_only=False)  # a missing number becomes a NaN, and is refused
    if len(flat) != width * len(lists):
        return DataError(RAGGED)
    rows = flat.reshape(len(lists), width)
    table = checked(rows)
    if isinstance(table, DataError) and names:
        return checked(pa.table(list(rows.T), names=names))  # says what is wrong in the user's words
    return table

"""Rows in a Spark data frame: persisted on the grid, and one `mapInArrow` and a sum for each release."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from pyspark import StorageLevel
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, BooleanType, NumericType

from pemeans.domain import Domain
from pemeans.errors import DataError, DataTypeError
from pemeans.kernels.grid import Frame, GridArray, IntArray, Projection
from pemeans.rows.base import Question, lenses, refuse_to_read_domain
from pemeans.rows.block import Block
from pemeans.rows.memory import BLOCK_ROWS, blocks_on_grid
from pemeans.rows.table import Table, check_filled, checked, not_numbers

BRANCHES = 64
"""How many partial sums a task adds up."""
CELL_BYTES = 1 << 14
"""Rows go into cells of this size: Spark hands over up to 10,000 at once, and they must fit into memory."""
RAGGED = "rows of X are missing or of different lengths; drop them or make them all of one length"
VERDICT = pa.schema({"rows": pa.int64(), "width": pa.int64(), "problem": pa.string()})

Batches = Iterator[pa.RecordBatch]


class SparkRows:
    """Rows of a Spark data frame, on the grid and persisted where they are.

    Spark makes the cells of a lost executor again, from the user's data. A task that is retried, or run twice
    by speculation, counts once, as in every shuffle. A question travels inside its task, which Spark itself
    broadcasts once to each executor; Spark Connect, which knows no other broadcast, does the same.

    Parameters
    ----------
    frame : Spark DataFrame
        Checked rows in the user's units, as doubles.
    domain : Domain
        The bound domain.
    n_parts : int
        How many partitions there are.
    """

    def __init__(self, frame: Any, domain: Domain, n_parts: int) -> None:
        self._width, self._n_parts = domain.n_features, n_parts
        self._ground = _persisted(frame.mapInArrow(partial(_to_cells, domain), "grid binary"))
        self._frame: Frame | None = None
        self._view: Projection | None = None
        self._persisted = [self._ground]
        # Spark keeps what is persisted until it is told otherwise.
        weakref.finalize(self, _forget, self._persisted).atexit = False

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows: a sum a partition, added up by a tree of shuffles."""
        question, frame, view = lenses(statistic)
        cells = self._seen_through(frame, view)
        answer = partial(_answer, question, view, self._width)
        sums = cells.select("grid", *([] if view is None else ["seen"])).mapInArrow(answer, "total binary")
        width = self._n_parts
        while True:
            width = -(-width // BRANCHES)
            sums = sums.repartition(width).mapInArrow(_added, "total binary")
            if width == 1:
                break
        nothing = question(Block(np.empty((0, self._width), dtype=np.int32)))
        return nothing + np.frombuffer(sums.collect()[0][0], dtype=np.int64).reshape(nothing.shape)

    def _seen_through(self, frame: Frame | None, view: Projection | None) -> Any:
        """Cells of the rows as a question sees them, persisted while the frame and the view stay the same."""
        if frame is None and view is None:
            return self._ground
        if frame != self._frame or (view is not None and view != self._view):
            _forget(self._persisted[1:])
            self._frame, self._view = frame, view
            look = partial(_look, frame, view, self._width)
            kinds = "grid binary" if view is None else "grid binary, seen binary"
            self._persisted[1:] = [_persisted(self._ground.mapInArrow(look, kinds))]
        return self._persisted[1]


@dataclass(frozen=True, eq=False, repr=False)
class SparkSource:
    """A Spark data frame whose rows have been checked and counted."""

    frame: Any
    names: tuple[str, ...] | None
    n_rows: int
    n_features: int
    n_parts: int

    def rows(self, domain: Domain, n_jobs: int | None) -> SparkRows:
        """The rows on the domain's grid; the cores are the cluster's own."""
        return SparkRows(self.frame, domain, self.n_parts)

    def domain_of_rows(self) -> Domain:
        """Refused."""
        return refuse_to_read_domain()


def open_source(data: Any) -> SparkSource:
    """Check every partition of a Spark data frame where it is, and count the rows."""
    rows, names = _doubles(data)
    frame = data.select(rows)
    found = frame.mapInArrow(_verdict, "rows long, width long, problem string").agg(
        functions.sum("rows"),
        functions.min("width"),
        functions.max("width"),
        functions.min("problem"),
        functions.count("rows"),
    )
    n_rows, narrowest, widest, problem, n_parts = found.collect()[0]
    if problem is not None:
        raise DataError(problem)
    check_filled(n_rows or 0, len(names) if names else widest or 0)
    if narrowest != widest:
        raise DataError(RAGGED)
    return SparkSource(frame, names, n_rows, widest, n_parts)


def map_rows(data: Any, labels: Callable[[Any], npt.NDArray[np.int32]]) -> Any:
    """The labels of all rows, as a column of the data frame that is computed when it is asked for."""
    rows, names = _doubles(data)
    if names:  # refuses other columns now, not when the labels are computed
        labels(pa.table({name: pa.array([], pa.float64()) for name in names}))

    def nearest(frame: pd.DataFrame) -> pd.Series:
        return pd.Series(labels(frame if names else frame["rows"].tolist()), dtype=np.int32)

    found = functions.pandas_udf(nearest, "int")(rows if names else functions.struct(rows))
    return found.alias("cluster")


def _doubles(data: Any) -> tuple[Any, tuple[str, ...] | None]:
    """A column "rows" of structs or arrays of doubles, and the names; none where it was one column before."""
    if not hasattr(data, "mapInArrow"):
        raise DataError(f"X is a {type(data).__name__} of Spark; pass a Spark DataFrame")
    fields = data.schema.fields
    if len({field.name for field in fields}) < len(fields):
        raise DataError("X has columns of the same name; rename all but one")
    columns = [functions.col(f"`{field.name.replace('`', '``')}`") for field in fields]
    if len(fields) == 1 and type(fields[0].dataType).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(columns[0]).alias("rows"), None
    if len(fields) == 1 and isinstance(fields[0].dataType, ArrayType):
        _check_type(fields[0].name, fields[0].dataType.elementType)
        return columns[0].cast("array<double>").alias("rows"), None
    for field in fields:
        _check_type(field.name, field.dataType)
    names = tuple(field.name for field in fields)
    doubles = [column.cast("double").alias(name) for column, name in zip(columns, names, strict=True)]
    return functions.struct(*doubles).alias("rows"), names


def _check_type(name: str, kind: Any) -> None:
    if not isinstance(kind, NumericType | BooleanType):
        raise DataTypeError(not_numbers(name, kind.typeName()))


def _table(batch: pa.RecordBatch) -> Table | DataError:
    """Some rows on an executor, or what is wrong with them."""
    lists = batch.column("rows")
    if pa.types.is_struct(lists.type):
        return checked(pa.RecordBatch.from_struct_array(lists))
    width = pa.compute.max(pa.compute.list_value_length(lists)).as_py() or 0
    flat = lists.flatten().to_numpy(zero_copy_only=False)  # a missing number becomes a NaN, and is refused
    if len(flat) != width * len(lists):
        return DataError(RAGGED)
    return checked(flat.reshape(len(lists), width))


def _verdict(batches: Batches) -> Batches:
    """One row for a partition: how many rows it has, how wide they are, and what is wrong with them."""
    n_rows, widths, problem = 0, set(), None
    for table in map(_table, batches):
        if isinstance(table, DataError):
            problem = str(table)
        elif table.n_rows:
            n_rows += table.n_rows
            widths.add(table.n_features)
    if len(widths) > 1:
        problem = RAGGED
    found = {"rows": [n_rows], "width": [max(widths, default=None)], "problem": [problem]}
    yield pa.RecordBatch.from_pydict(found, VERDICT)


def _to_cells(domain: Domain, batches: Batches) -> Batches:
    """Rows in the user's units as cells of the grid."""
    step = max(1, CELL_BYTES // (4 * domain.n_features))
    for table in map(_table, batches):
        if isinstance(table, DataError):
            raise table  # the data changed since it was checked
        for block in blocks_on_grid(table.values, domain):
            cells = [block.grid[start : start + step] for start in range(0, len(block.grid), step)]
            yield _batch(grid=cells)


def _look(frame: Frame | None, view: Projection | None, width: int, batches: Batches) -> Batches:
    """Cells as seen in the frame, and those through the view beside them."""
    for batch in batches:
        grids = [_grid([cell], width) for cell in batch.column("grid")]
        framed = grids if frame is None else [frame(grid) for grid in grids]
        yield _batch(grid=framed) if view is None else _batch(grid=framed, seen=map(view, framed))


def _answer(question: Question, view: Projection | None, width: int, batches: Batches) -> Batches:
    """What the rows of a partition add up to; nothing where there are none."""
    _settle()
    total: IntArray | int = 0
    for batch in batches:
        grid = _grid(batch.column("grid"), width)
        seen = None if view is None else _grid(batch.column("seen"), len(view.matrix))
        for start in range(0, len(grid), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            total = total + question(Block(grid[rows], view, None if seen is None else seen[rows]))
    if not isinstance(total, int):
        yield _batch(total=[total])


@cache
def _settle() -> None:
    """Spark looks for garbage after each task: let it pass over what is imported, which takes it 50 ms."""
    gc.freeze()


def _added(batches: Batches) -> Batches:
    """The sum of sums."""
    sums = [np.frombuffer(cell.as_buffer(), np.int64) for batch in batches for cell in batch.column("total")]
    if sums:
        yield _batch(total=[sum(sums)])


def _grid(cells: Any, width: int) -> GridArray:
    """Cells as rows of the grid."""
    parts = [np.frombuffer(cell.as_buffer(), dtype=np.int32) for cell in cells]
    return np.concatenate(parts).reshape(-1, width)


def _batch(**columns: Any) -> pa.RecordBatch:
    """Columns of arrays as columns of bytes."""
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array([array.tobytes() for array in arrays], pa.binary())
            for name, arrays in columns.items()
        }
    )


def _persisted(frame: Any) -> Any:
    """In memory, and on the executors' disks where that is full."""
    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def _forget(frames: list[Any]) -> None:
    for frame in frames:
        frame.unpersist()

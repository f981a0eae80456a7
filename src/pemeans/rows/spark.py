"""Rows in a Spark data frame: in files of its executors, and one `mapInArrow` and a sum for each release."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, BooleanType, NumericType, StringType, StructType

from pemeans.domain import Domain
from pemeans.errors import ClusterError, DataError, DataTypeError
from pemeans.kernels.grid import IntArray
from pemeans.rows import spark_tasks
from pemeans.rows.base import Question, lenses, refuse_to_read_domain
from pemeans.rows.block import Block
from pemeans.rows.grid_files import Named
from pemeans.rows.table import check_filled, not_numbers

BRANCHES = 64
"""How many partial sums a task adds up."""
ATTEMPTS = 3
"""How often the rows are put into files before it is given up."""
IN_VAIN = 3
"""How often in a row no executor that is asked may have its file, before all files are written anew."""
KEPT = "file string, rows long, width long, problem string"
SUMS = StructType().add("rows", "long").add("total", "binary").add("absent", ArrayType(StringType()))
"""Not in words, which Spark would read anew for each question."""


class KeptRows:
    """The rows of a Spark data frame in files of its executors.

    Rows that Spark persists would go from Java to Python once more for every question. So what it persists is
    the names of the files, each where its file is. It makes both again, from the frame, for a lost executor.

    Parameters
    ----------
    frame : Spark DataFrame
        Rows in the user's units, as arrays of doubles in one column: these are the fastest to get from Java.
    names : tuple of str or None
        What the user calls the columns.
    """

    def __init__(self, frame: Any, names: tuple[str, ...] | None) -> None:
        encrypted = frame.sparkSession.conf.get("spark.io.encryption.enabled", "false").lower() == "true"
        # Spark takes equal plans for one: without this name, two fits would share what is persisted.
        prefix = f"pemeans-{uuid4().hex}-"
        self.files = frame.mapInArrow(partial(spark_tasks.keep, encrypted, prefix, names), KEPT).persist()
        # The fit ends them; this is for those who hold rows without a fit.
        self.forget = weakref.finalize(self, _forget, self.files, prefix)
        self.forget.atexit = False
        self._prefix = prefix

    def again(self) -> None:
        """Put the rows into files once more."""
        _forget(self.files, self._prefix)
        self.files.persist()

    def is_persisted(self) -> bool:
        """False where somebody has cleared Spark's cache: then each question would write the files anew."""
        level = self.files.storageLevel
        return bool(level.useMemory or level.useDisk)


class SparkRows:
    """Rows of a Spark data frame, which answer where they are kept.

    A task that is retried, or run twice by speculation, counts once, as in every shuffle. A question travels
    inside its task, which Spark itself broadcasts once to each executor; Spark Connect, which knows no other
    broadcast, does the same.

    Parameters
    ----------
    kept : KeptRows
        The rows.
    domain : Domain
        The bound domain.
    n_rows, n_parts : int
        How many rows and partitions there are.
    """

    def __init__(self, kept: KeptRows, domain: Domain, n_rows: int, n_parts: int) -> None:
        self._kept, self._domain, self._n_rows, self._n_parts = kept, domain, n_rows, n_parts
        self._named = cache(lambda look: Named(uuid4().hex, look))

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows: a sum a partition, added up by a tree of shuffles."""
        if not self._kept.is_persisted():
            self._kept.again()
        for _ in range(ATTEMPTS):
            n_rows, total = self._answer(statistic)
            if n_rows == self._n_rows:
                return total
            self._kept.again()
        raise ClusterError(
            "the rows of X change while they are read, or the executors' files vanish; "
            "write X to storage, read it from there, and fit on that"
        )

    def _answer(self, statistic: Question) -> tuple[int, IntArray]:
        """How many rows have answered, and their sum."""
        question, frame, view = lenses(statistic)
        width = self._domain.n_features
        looks: Any = (look and self._named(look) for look in (self._domain.to_grid, frame, view))
        answer = partial(spark_tasks.answer, question, width, *looks)
        n_rows, total = 0, question(Block(np.empty((0, width), dtype=np.int32)))
        files = self._kept.files.select("file")
        in_vain = 0
        while in_vain < IN_VAIN:
            found = self._added(files.mapInArrow(answer, SUMS))
            if found.rows:
                n_rows += found.rows
                total = total + np.frombuffer(found.total, dtype=np.int64).reshape(total.shape)
            if not found.absent:
                break
            # Idle executors answer for busy ones, after a while, but don't have their files: ask again.
            files = self._kept.files.select("file").where(functions.col("file").isin(found.absent))
            in_vain = 0 if found.rows else in_vain + 1
        return n_rows, total

    def _added(self, sums: Any) -> Any:
        """The one row that all of them add up to."""
        width = self._n_parts
        while True:
            width = -(-width // BRANCHES)
            sums = sums.repartition(width).mapInArrow(spark_tasks.add, SUMS)
            if width == 1:
                return sums.collect()[0]


@dataclass(frozen=True, eq=False, repr=False)
class SparkSource:
    """A Spark data frame whose rows have been checked and counted."""

    kept: KeptRows
    names: tuple[str, ...] | None
    n_rows: int
    n_features: int
    n_parts: int

    def rows(self, domain: Domain, n_jobs: int | None) -> SparkRows:
        """The rows on the domain's grid; the cores are the cluster's own."""
        return SparkRows(self.kept, domain, self.n_rows, self.n_parts)

    def domain_of_rows(self) -> Domain:
        """Refused."""
        return refuse_to_read_domain()

    def forget(self) -> None:
        """Remove the executors' files."""
        self.kept.forget()


def open_source(data: Any) -> SparkSource:
    """Check every partition of a Spark data frame where it is, and count the rows."""
    columns, names = _doubles(data)
    rows = functions.array(*columns).alias("rows") if names else columns[0]
    kept = KeptRows(data.select(rows), names)
    try:
        n_rows, narrowest, widest, problem, n_parts = kept.files.agg(
            functions.sum("rows"),
            functions.min("width"),
            functions.max("width"),
            functions.min("problem"),
            functions.count("rows"),
        ).collect()[0]
        if problem is not None:
            raise DataError(problem)
        check_filled(n_rows or 0, len(names) if names else widest or 0)
        if narrowest != widest:
            raise DataError(spark_tasks.RAGGED)
    except BaseException:
        kept.forget()
        raise
    return SparkSource(kept, names, n_rows, widest, n_parts)


def map_rows(data: Any, labels: Callable[[Any], npt.NDArray[np.int32]]) -> Any:
    """The labels of all rows, as a column of the data frame that is computed when it is asked for."""
    columns, names = _doubles(data)
    if names:  # refuses other columns now, not when the labels are computed
        labels(pa.table({name: pa.array([], pa.float64()) for name in names}))

    def nearest(frame: pd.DataFrame) -> pd.Series:
        return pd.Series(labels(frame if names else frame["rows"].tolist()), dtype=np.int32)

    found = functions.pandas_udf(nearest, "int")(functions.struct(*columns))
    return found.alias("cluster")


def _doubles(data: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """Columns of doubles and their names, or one column "rows" of arrays, which has none."""
    if not hasattr(data, "mapInArrow"):
        raise DataError(f"X is a {type(data).__name__} of Spark; pass a Spark DataFrame")
    fields = data.schema.fields
    if len({field.name for field in fields}) < len(fields):
        raise DataError("X has columns of the same name; rename all but one")
    columns = [functions.col(f"`{field.name.replace('`', '``')}`") for field in fields]
    if len(fields) == 1 and type(fields[0].dataType).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return [vector_to_array(columns[0]).alias("rows")], None
    if len(fields) == 1 and isinstance(fields[0].dataType, ArrayType):
        _check_type(fields[0].name, fields[0].dataType.elementType)
        return [columns[0].cast("array<double>").alias("rows")], None
    for field in fields:
        _check_type(field.name, field.dataType)
    names = tuple(field.name for field in fields)
    return [column.cast("double").alias(name) for column, name in zip(columns, names, strict=True)], names


def _check_type(name: str, kind: Any) -> None:
    if not isinstance(kind, NumericType | BooleanType):
        raise DataTypeError(not_numbers(name, kind.typeName()))


def _forget(files: Any, prefix: str) -> None:
    """Remove the rows, and their files' names."""
    with suppress(Exception):  # whoever stopped the cluster has removed them
        try:
            erase = partial(spark_tasks.erase, prefix)
            files.select("file").mapInArrow(erase, "file string").collect()
        finally:
            files.unpersist()

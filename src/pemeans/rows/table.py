"""Reading what the user passed: one numeric table, checked once, before anything is released.

This is the only place where a message may depend on private rows: it says that a value is missing, infinite
or not a number, and in which column, but never which row or what value.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from pemeans.domain import Domain, domain_read_from
from pemeans.errors import DataError, DataTypeError, PemeansError
from pemeans.rows.base import Source
from pemeans.rows.memory import MemoryRows, in_blocks

FloatTable = npt.NDArray[np.floating[Any]]

NUMBERS = (Real, Decimal, np.bool_, type(None))
"""What an array of Python objects may hold; None is a missing value, which is refused as such."""

UNREADABLE = (
    "X can't be read as a table of numbers; pass a 2-dimensional array, rows of equal length, or a "
    "data frame whose columns have distinct names"
)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Finite numbers in rows and columns, and the columns' names where they have any."""

    values: FloatTable
    names: tuple[str, ...] | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return int(self.values.shape[1])

    def chunks(self) -> Iterator[FloatTable]:
        """The rows in the user's units, in their order, some at a time."""
        yield from in_blocks(self.values)

    def rows(self, domain: Domain, n_jobs: int | None) -> MemoryRows:
        """The rows on the domain's grid, in memory."""
        return MemoryRows(self.values, domain, n_jobs)

    def domain_of_rows(self) -> Domain:
        """The smallest ball around the mean of the rows."""
        return domain_read_from(self.values)


def read_table(data: Any) -> Table:
    """Check and convert an array or a data frame.

    Parameters
    ----------
    data : array-like or data frame
        NumPy or nested lists; pandas, polars, Arrow and whatever else narwhals knows.

    Examples
    --------
    >>> read_table([[1, 2], [3, 4]]).values
    array([[1., 2.],
           [3., 4.]])
    """
    table = read_part(data)
    check_filled(table.n_rows, table.n_features)
    return table


def read_part(data: Any) -> Table:
    """Check and convert a part of the rows, which may well be empty."""
    try:
        table = _converted(data)
    except (PemeansError, MemoryError):
        raise
    except Exception:
        table = None
    # Raised out here, where no other error is chained: a library's own words may quote a private value.
    if table is None:
        raise DataError(UNREADABLE)
    _check_finite(table)
    return table


def checked(part: Any) -> Table | DataError:
    """A part of the rows on a worker, or what is wrong with it.

    An error is returned, not raised: engines write the arguments of a task that failed to their logs, and
    those are private rows.
    """
    try:
        return read_part(part)
    except DataError as error:
        return error
    except MemoryError:
        return DataError("a partition of X does not fit into a worker's memory; use more partitions")


def check_same_features(table: Source, width: int, names: Sequence[str] | None, model: str) -> None:
    """Rows to predict must have the columns that the model was fitted on; said in scikit-learn's words."""
    if names is None and table.names is not None:
        warnings.warn(f"X has feature names, but {model} was fitted without feature names", stacklevel=4)
    elif names is not None and table.names is None:
        warnings.warn(
            f"X does not have valid feature names, but {model} was fitted with feature names", stacklevel=4
        )
    elif names is not None and table.names is not None and tuple(names) != table.names:
        unseen, missing = set(table.names) - set(names), set(names) - set(table.names)
        swapped = (
            "" if unseen or missing else "Feature names must be in the same order as they were in fit.\n"
        )
        raise DataError(
            "The feature names should match those that were passed during fit.\n"
            + _listed("Feature names unseen at fit time", unseen)
            + _listed("Feature names seen at fit time, yet now missing", missing)
            + swapped
        )
    if table.n_features != width:
        raise DataError(
            f"X has {table.n_features} features, but {model} is expecting {width} features as input"
        )


def _listed(title: str, names: set[str]) -> str:
    """A few names under a title, or nothing."""
    lines = [f"- {name}\n" for name in sorted(names)]
    return "".join([f"{title}:\n", *lines[:5], *(["- ...\n"] if len(lines) > 5 else [])]) if lines else ""


def _converted(data: Any) -> Table:
    """An array or frame as a table, not yet looked at for what it holds."""
    if sparse.issparse(data):
        raise DataTypeError("X is a sparse matrix, which is not supported; pass a dense array: X.toarray()")
    if isinstance(data, np.ma.MaskedArray):
        raise DataError(
            "X is a masked array, whose masked values are missing; drop or fill them: X.filled(...)"
        )
    frame = _as_frame(data)
    if isinstance(frame, nw.LazyFrame):
        raise DataError("X is a lazy frame; collect it first: X.collect()")
    return Table(_from_array(data), None) if frame is None else _from_frame(frame)


def _as_frame(data: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any] | None:
    """A data frame of any kind, or whatever hands out Arrow data; None for what is neither."""
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return frame
    if isinstance(frame, nw.Series) or not hasattr(data, "__arrow_c_array__"):
        return None
    import pyarrow as pa  # imported late: NumPy users need not wait for it

    batches: nw.DataFrame[Any] = nw.from_native(pa.table(data), eager_only=True)
    return batches


def check_columns(frame: nw.DataFrame[Any]) -> None:
    """Every column must hold numbers, by its type."""
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise DataTypeError(not_numbers(name, column.dtype))


def _from_frame(frame: nw.DataFrame[Any]) -> Table:
    """Columns of a data frame as one array; every column must hold numbers."""
    check_columns(frame)
    columns = []
    for j, column in enumerate(frame.iter_columns()):
        if column.null_count():
            raise DataError(not_finite(j, frame.columns))
        columns.append(_as_float64(column.to_numpy()))
    values = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    named = all(isinstance(name, str) for name in frame.columns)
    return Table(values, tuple(frame.columns) if named else None)


def _from_array(data: Any) -> FloatTable:
    """An array of float32 or float64, without a word about its values where it is neither."""
    array = np.asarray(data)
    check_array(array)
    return as_floats(array)


def check_array(array: npt.NDArray[Any]) -> None:
    """A table, of numbers by its type."""
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X.reshape(-1, 1) for "
            "one feature, X.reshape(1, -1) for one row"
        )
    if array.dtype.kind == "c":
        raise DataTypeError("Complex data not supported: X must hold real numbers")
    if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and not _holds_numbers(array)):
        raise DataTypeError(
            f"X holds values of type {array.dtype.name}, but each argument must be a number, not a string or "
            "other object that stands for a number; drop such columns or encode them"
        )


def _holds_numbers(array: npt.NDArray[np.object_]) -> bool:
    """Whether an array of Python objects holds numbers, or nothing where one is missing."""
    kinds = set(map(type, array.ravel()))
    return all(issubclass(kind, NUMBERS) and not issubclass(kind, np.timedelta64) for kind in kinds)


def as_floats(array: npt.NDArray[Any]) -> FloatTable:
    """The same numbers as float32 where they are that, else as float64."""
    return array if array.dtype in (np.float32, np.float64) else _as_float64(array)


def _as_float64(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The same numbers in double precision; a warning that one is too large would tell of a row."""
    with np.errstate(all="ignore"):
        return array.astype(np.float64, copy=False)


def check_filled(n_rows: int, n_features: int) -> None:
    """At least one row and one column."""
    shape = (n_rows, n_features)
    for size, name in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise DataError(f"Found array with 0 {name}(s) (shape={shape}) while a minimum of 1 is required.")


def _check_finite(table: Table) -> None:
    """No NaN and no infinity, in any column."""
    bad = np.zeros(table.n_features, dtype=bool)
    for chunk in table.chunks():  # whole, the answers for each number would take as much as a copy
        bad |= ~np.isfinite(chunk).all(axis=0)
    if bad.any():
        raise DataError(not_finite(int(bad.argmax()), table.names))


def not_numbers(name: str, kind: Any) -> str:
    """What to say about a column of another type."""
    return f"column {name!r} of X holds {kind}, not numbers; drop it or encode it as numbers"


def not_finite(column: int, names: Sequence[str] | None) -> str:
    """What to say about a column that holds what is no finite number."""
    where = repr(names[column]) if names else str(column)
    return f"Input X contains NaN, infinity or a missing value in column {where}; drop or fill such rows"

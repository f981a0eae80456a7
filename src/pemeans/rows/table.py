"""Reading what the user passed: one numeric table, checked once, before anything is released.

This is the only place where a message may depend on private rows: it says that a value is missing, infinite or
not a number, and in which column, but never which row or what value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from pemeans.errors import DataError, DataTypeError


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Finite numbers in rows and columns, and the columns' names where they have any."""

    values: npt.NDArray[np.floating[Any]]
    names: tuple[str, ...] | None


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
    if sparse.issparse(data):
        raise DataError("X is a sparse matrix, which is not supported; pass a dense array: X.toarray()")
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError("X is a lazy frame; collect it first: X.collect()")
    if isinstance(frame, nw.Series):
        raise DataError("Expected a 2D table, but X is a single column. Reshape your data: X.to_frame()")
    table = _from_frame(frame) if isinstance(frame, nw.DataFrame) else Table(_from_array(data), None)
    _check_shape(table.values)
    _check_finite(table)
    return table


def _from_frame(frame: nw.DataFrame[Any]) -> Table:
    """Columns of a data frame as one array; every column must hold numbers."""
    names = tuple(map(str, frame.columns))
    columns = []
    for name in frame.columns:
        column = frame[name]
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            raise DataTypeError(
                f"column {name!r} of X holds {column.dtype}, not numbers; drop it or encode it as numbers"
            )
        columns.append(column.cast(nw.Float64).to_numpy())
    values = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    text_names = all(isinstance(name, str) for name in frame.columns)
    return Table(values.astype(np.float64, copy=False), names if text_names else None)


def _from_array(data: Any) -> npt.NDArray[np.floating[Any]]:
    """An array of float32 or float64, without a word about its values where it is neither."""
    try:
        array = np.asarray(data)
    except (TypeError, ValueError):
        raise DataError("X is not a rectangular table; pass rows of equal length") from None
    if array.ndim != 2:
        hint = "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row"
        raise DataError(f"Expected 2D array, got {array.ndim}D array instead. {hint}")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: X must hold real numbers")
    if array.dtype.kind not in "fiubO":
        raise DataTypeError(f"X holds {array.dtype.name}, not numbers; drop such columns or encode them")
    if array.dtype in (np.float32, np.float64):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        # NumPy's own message would quote the value, so it is not chained.
        raise DataTypeError(
            "X holds something that is not a number (each argument must be a string of digits or a number); "
            "drop such columns or encode them"
        ) from None


def _check_shape(values: npt.NDArray[np.floating[Any]]) -> None:
    """At least one row and one column."""
    rows, columns = values.shape
    if rows == 0:
        raise DataError(
            f"Found array with 0 sample(s) (shape={values.shape}) while a minimum of 1 is required."
        )
    if columns == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={values.shape}) while a minimum of 1 is required."
        )


def _check_finite(table: Table) -> None:
    """No NaN and no infinity, in any column."""
    bad = ~np.isfinite(table.values).all(axis=0)
    if bad.any():
        column = int(bad.argmax())
        where = repr(table.names[column]) if table.names else str(column)
        raise DataError(
            f"Input X contains NaN, infinity or a missing value in column {where}; "
            "drop or fill such rows before fitting"
        )

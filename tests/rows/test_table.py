"""What the user may pass as rows, and what is refused: without a word about a value."""

from __future__ import annotations

import decimal
import re
import subprocess
import sys
import traceback
from datetime import date
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from pemeans.errors import DataError, DataTypeError
from pemeans.rows.table import check_same_features, read_table

PLAIN = np.array([[0.5, 1.0], [2.0, 3.25], [4.0, -5.0]])
COLUMNS = {"age": [0.5, 2.0, 4.0], "bmi": [1.0, 3.25, -5.0]}
SECRET = 123456.789
TEXT = "SECRET"


def refused(data: Any) -> str:
    """The message of the refusal, after a look for secrets in all that a log would show."""
    with pytest.raises(DataError) as caught:
        read_table(data)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None, "the error of a library is chained: it may quote a value"
    shown = "".join(traceback.format_exception(error)) + repr(error)
    assert TEXT not in shown
    assert "123456" not in shown
    return str(error)


ARRAYS: dict[str, Any] = {
    "Fortran": np.asfortranarray(PLAIN),
    "strided": np.repeat(np.repeat(PLAIN, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": PLAIN[::-1, ::-1].copy()[::-1, ::-1],
    "float32": PLAIN.astype(np.float32),
    "float16": PLAIN.astype(np.float16),
    "long double": PLAIN.astype(np.longdouble),
    "big endian": PLAIN.astype(">f8"),
    "lists": PLAIN.tolist(),
    "tuples": tuple(map(tuple, PLAIN.tolist())),
    "list of arrays": list(PLAIN),
    "objects": PLAIN.astype(object),
    "decimals": np.array([[decimal.Decimal(str(v)) for v in row] for row in PLAIN]),
}
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas float32": pd.DataFrame(COLUMNS, dtype=np.float32),
    "pandas nullable": pd.DataFrame(COLUMNS).astype("Float64"),
    "pandas of arrow": pd.DataFrame(COLUMNS).astype("double[pyarrow]"),
    "pandas with an index": pd.DataFrame(COLUMNS, index=[5, 5, 7]),
    "polars": pl.DataFrame(COLUMNS),
    "polars decimal": pl.DataFrame(COLUMNS).cast(pl.Decimal(10, 2)),
    "arrow table": pa.table(COLUMNS),
    "arrow batch": pa.RecordBatch.from_pydict(COLUMNS),
    "arrow in chunks": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "narwhals": nw.from_native(pl.DataFrame(COLUMNS), eager_only=True),
}


@pytest.mark.parametrize("data", ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_any_kind_give_the_same_numbers(data: Any) -> None:
    table = read_table(data)
    assert np.array_equal(table.values, PLAIN)
    assert table.values.dtype == (np.float32 if getattr(data, "dtype", None) == np.float32 else np.float64)
    assert table.names is None


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES)
def test_frames_of_any_kind_give_the_same_numbers_and_names(data: Any) -> None:
    table = read_table(data)
    assert np.array_equal(table.values, PLAIN)
    assert table.names == ("age", "bmi")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_whole_numbers_and_booleans_are_numbers(dtype: str) -> None:
    ones = np.array([[1, 0], [1, 1]]).astype(dtype)
    frames = [pd.DataFrame(ones, columns=["a", "b"]), pl.DataFrame({"a": ones[:, 0], "b": ones[:, 1]})]
    frames += [pa.table({"a": ones[:, 0], "b": ones[:, 1]})]
    for data in (ones, *frames):
        assert np.array_equal(read_table(data).values, [[1, 0], [1, 1]])


@pytest.mark.parametrize("columns", [[0, 1], ["a", 1], pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])])
def test_columns_without_text_for_a_name_have_no_names(columns: Any) -> None:
    table = read_table(pd.DataFrame(PLAIN, columns=columns))
    assert np.array_equal(table.values, PLAIN)
    assert table.names is None


def test_an_array_that_can_be_used_as_it_is_is_not_copied() -> None:
    for dtype in (np.float32, np.float64):
        array = PLAIN.astype(dtype)
        assert np.shares_memory(read_table(array).values, array)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_what_is_not_finite_is_refused_by_column(bad: float, dtype: Any) -> None:
    data = np.array([[1, 2, 3], [SECRET, bad, 5]], dtype=dtype)
    assert "contains NaN, infinity or a missing value in column 1; drop or fill" in refused(data)


MISSING: dict[str, Any] = {
    "pandas NaN": pd.DataFrame({"age": [1, 2], "bmi": [SECRET, np.nan]}),
    "pandas Int64": pd.DataFrame({"age": [1, 2], "bmi": pd.array([123456, None], dtype="Int64")}),
    "pandas boolean": pd.DataFrame({"age": [1, 2], "bmi": pd.array([True, None], dtype="boolean")}),
    "pandas of arrow": pd.DataFrame(
        {"age": [1, 2], "bmi": pd.array([SECRET, None], dtype="double[pyarrow]")}
    ),
    "polars null": pl.DataFrame({"age": [1, 2], "bmi": [SECRET, None]}),
    "polars NaN": pl.DataFrame({"age": [1, 2], "bmi": [SECRET, float("nan")]}),
    "polars boolean": pl.DataFrame({"age": [1, 2], "bmi": [True, None]}),
    "arrow": pa.table({"age": [1, 2], "bmi": [123456, None]}),
    "arrow batch": pa.RecordBatch.from_pydict({"age": [1, 2], "bmi": [True, None]}),
}


@pytest.mark.parametrize("data", MISSING.values(), ids=MISSING)
def test_missing_values_are_refused_by_column(data: Any) -> None:
    assert "missing value in column 'bmi'; drop or fill such rows" in refused(data)


NOT_NUMBERS: dict[str, Any] = {
    "pandas text": pd.DataFrame({"age": [1], "name": [TEXT]}),
    "pandas objects": pd.DataFrame({"age": [1, 2], "name": [1, TEXT]}),
    "pandas category": pd.DataFrame({"age": [1], "name": pd.Categorical([TEXT])}),
    "pandas dates": pd.DataFrame({"age": [1], "name": pd.to_datetime(["2020-01-01"])}),
    "pandas complex": pd.DataFrame({"age": [1], "name": [1j]}),
    "polars text": pl.DataFrame({"age": [1], "name": [TEXT]}),
    "polars lists": pl.DataFrame({"age": [1], "name": [[1, 2]]}),
    "polars dates": pl.DataFrame({"age": [1], "name": [date(2020, 1, 1)]}),
    "polars durations": pl.DataFrame({"age": [1], "name": [1]}).cast({"name": pl.Duration}),
    "arrow text": pa.table({"age": [1], "name": [TEXT]}),
    "arrow dictionary": pa.table({"age": [1], "name": pa.array([TEXT]).dictionary_encode()}),
}


@pytest.mark.parametrize("data", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_a_column_that_holds_no_numbers_is_refused_by_name(data: Any) -> None:
    with pytest.raises(DataTypeError):
        read_table(data)
    assert "column 'name' of X holds " in refused(data)


class Hostile:
    """Tells what it holds when it is converted."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise KeyError(TEXT)


class HostileNumber(decimal.Decimal):
    """A number that does the same."""

    def __float__(self) -> float:
        raise RuntimeError(TEXT)


UNREADABLE: dict[str, tuple[Any, str]] = {
    "text": (np.array([[TEXT, "1"]]), "must be a number, not a string"),
    "bytes": (np.array([[TEXT.encode()]]), "must be a number"),
    "text among objects": (np.array([[1.0, TEXT]], dtype=object), "must be a number, not a string"),
    "digits among objects": (np.array([["123456"]], dtype=object), "must be a number, not a string"),
    "dicts": (np.array([[{TEXT: SECRET}]], dtype=object), "must be a number"),
    "dates": (np.array([["2020-01-01"]], dtype="M8[D]"), "holds values of type datetime64"),
    "date objects": (np.array([[date(2020, 1, 1)]]), "must be a number"),
    "durations": (np.array([[5]], dtype="m8[s]"), "must be a number"),
    "complex": (PLAIN + 1j, "must hold real numbers"),
    "complex objects": (np.array([[np.complex128(SECRET)]], dtype=object), "must be a number"),
    "records": (np.array([[(1, SECRET)]], dtype=[("a", int), ("b", float)]), "must be a number"),
    "sparse matrix": (sparse.csr_matrix(PLAIN), r"is a sparse matrix.*toarray"),
    "sparse array": (sparse.coo_array(PLAIN), "is a sparse matrix"),
    "masked": (np.ma.masked_greater(PLAIN * SECRET, 2), "masked values are missing; drop or fill"),
    "lazy polars": (pl.LazyFrame({"age": [SECRET]}), "is a lazy frame; collect it first"),
    "1-d": (PLAIN[0], r"Expected 2D array, got 1D array.*Reshape your data"),
    "3-d": (PLAIN[None], "Expected 2D array, got 3D array"),
    "number": (SECRET, "Expected 2D array, got 0D array"),
    "string": (TEXT, "Expected 2D array, got 0D array"),
    "nothing": (None, "Expected 2D array, got 0D array"),
    "dict": ({"age": [SECRET]}, "Expected 2D array, got 0D array"),
    "list of dicts": ([{"age": SECRET}], "Expected 2D array, got 1D array"),
    "pandas column": (pd.Series([SECRET]), "Expected 2D array, got 1D array"),
    "polars column": (pl.Series([SECRET]), "Expected 2D array, got 1D array"),
    "ragged": ([[SECRET], [1, 2]], "pass a 2-dimensional array, rows of equal length"),
    "too large an integer": (np.array([[10**400]], dtype=object), "can't be read as a table"),
    "signaling NaN": (np.array([[decimal.Decimal("sNaN")]]), "can't be read as a table"),
    "hostile": (Hostile(), "can't be read as a table"),
    "hostile numbers": (np.array([[HostileNumber(1)]], dtype=object), "can't be read as a table"),
    "columns of one name": (pd.DataFrame(PLAIN * SECRET, columns=["a", "a"]), "distinct names"),
    "no rows": (np.empty((0, 3)), r"0 sample\(s\).*while a minimum of 1"),
    "no columns": (np.empty((3, 0)), r"0 feature\(s\).*while a minimum of 1"),
    "empty frame": (pd.DataFrame(), r"0 sample\(s\)"),
    "frame without rows": (pl.DataFrame({"a": []}, schema={"a": pl.Float64}), r"0 sample\(s\)"),
    "empty list": ([], "Expected 2D array, got 1D array"),
}


@pytest.mark.parametrize(("data", "says"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_table_of_numbers_is_refused(data: Any, says: str) -> None:
    message = refused(data)
    assert re.search(says, message), message


def test_no_warning_tells_of_a_value_too_large(recwarn: pytest.WarningsRecorder) -> None:
    assert "infinity" in refused(np.array([[np.longdouble("1e4000")]]))
    assert not list(recwarn)


@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, pl.DataFrame])
def test_integers_too_large_for_float64_are_rounded_not_quoted(kind: Any) -> None:
    assert read_table(kind({"a": [2**53 + 1, 0]})).values[0, 0] == 2.0**53


def test_other_columns_than_fitted_on_are_refused() -> None:
    table = read_table(pd.DataFrame(PLAIN, columns=["age", "bmi"]))
    check_same_features(table, 2, ["age", "bmi"], "PEMeans")
    with pytest.raises(DataError, match="must be in the same order"):
        check_same_features(table, 2, ["bmi", "age"], "PEMeans")
    with pytest.raises(DataError, match=r"unseen at fit time:\n- bmi\nFeature.*now missing:\n- height\n$"):
        check_same_features(table, 2, ["age", "height"], "PEMeans")
    with pytest.raises(DataError, match=r"(- c\d\n){5}- \.\.\.\n$"):
        check_same_features(table, 2, ["age", "bmi", *(f"c{i}" for i in range(7))], "PEMeans")
    with pytest.raises(DataError, match="X has 2 features, but PEMeans is expecting 3 features as input"):
        check_same_features(read_table(PLAIN), 3, None, "PEMeans")


def test_names_on_one_side_only_are_worth_a_warning() -> None:
    named, nameless = read_table(FRAMES["polars"]), read_table(PLAIN)
    with pytest.warns(UserWarning, match="X has feature names, but PEMeans was fitted without"):
        check_same_features(named, 2, None, "PEMeans")
    with pytest.warns(UserWarning, match="X does not have valid feature names, but PEMeans was fitted with"):
        check_same_features(nameless, 2, ["age", "bmi"], "PEMeans")


def test_arrays_need_no_data_frame_library(tmp_path: Path) -> None:
    program = """
import sys
# None stands for a library that is not installed; scikit-learn imports pandas by itself where it is.
sys.modules.update(dict.fromkeys(["pandas", "polars", "pyarrow", "matplotlib", "typer"]))
import numpy as np
import pemeans
model = pemeans.PEMeans(2, domain=pemeans.Domain.box(0, 1), n_iterations=1).fit(np.eye(3))
model.predict(np.eye(3))
model.save("model.json")
print(pemeans.load("model.json").cluster_centers_.shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(2, 3)\n"

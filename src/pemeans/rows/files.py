"""Tables in files: CSV, Parquet and Feather, told apart by the file's extension.

Arrow's own messages quote what stands in a file, so none of them is ever passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from pemeans.errors import DataError, DataTypeError, ParameterError

MOST_NAMES = 8
"""How many columns a message lists."""


@dataclass(frozen=True)
class Format:
    """How to find the columns of one kind of file, to read some of them, and to write a table."""

    name: str
    columns: Callable[[Path], list[str]]
    read: Callable[[Path, list[str]], pa.Table]
    writer: Callable[[Path, pa.Schema], Any]


def read_columns(path: Path, wanted: Sequence[str] | None = None) -> pa.Table:
    r"""The wanted columns of a table in a file, in that order, as float64.

    Parameters
    ----------
    path : Path
        A file whose name ends in .csv, .parquet or .feather.
    wanted : sequence of str, optional
        By default all columns, in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "clinic.csv"
    >>> _ = path.write_text("age,sex,bmi\n40,f,22.5\n61,m,31\n")
    >>> read_columns(path, ["bmi", "age"]).to_pydict()
    {'bmi': [22.5, 31.0], 'age': [40.0, 61.0]}
    """
    kind = format_of(path)
    check_readable(path)
    with _arrow_errors_reworded(path, kind):
        present = kind.columns(path)
    chosen = _all_names(present, path) if wanted is None else list(wanted)
    for name in chosen:
        check_present(name, present, path)
    with _arrow_errors_reworded(path, kind):
        table = kind.read(path, chosen)
    if table.num_rows == 0:
        raise DataError(f"{path} has columns but no rows; pass a file with data")
    return _as_numbers(table, path)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format of the path's extension."""
    write_tables([table], table.schema, path)


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    """Write tables one after the other into one file, never holding more than one."""
    with format_of(path).writer(path, schema) as writer:
        for table in tables:
            writer.write_table(table)


def format_of(path: Path) -> Format:
    """The format that a path's extension stands for."""
    if path.suffix.lower() not in FORMATS:
        what = f"has the unknown extension {path.suffix!r}" if path.suffix else "has no extension"
        raise ParameterError(f"{path} {what}; use a file that ends in {', '.join(FORMATS)}")
    return FORMATS[path.suffix.lower()]


def check_readable(path: Path) -> None:
    """A file that is there, may be read and is not empty."""
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise DataError(
            f"{path} can't be read: {error.strerror or 'unknown reason'}; check the path"
        ) from None
    if empty:
        raise DataError(f"{path} is empty; pass a file with data")


def check_present(name: str, present: list[str], path: Path) -> None:
    """The column is there, once; or a hint at what was meant."""
    if present.count(name) > 1:
        raise DataError(f"{path} has {present.count(name)} columns called {name!r}; rename all but one")
    if name not in present:
        raise ParameterError(f"{path} has no column {name!r}; {_hint(name, present)}")


def _hint(name: str, present: list[str]) -> str:
    """Names that are meant, perhaps; none where they may be the values of a first row without a header."""
    separators = [mark for mark in (";", "\t") if len(present) == 1 and mark in present[0]]
    if separators:
        return f"its columns seem to be separated by {separators[0]!r}; separate them by commas"
    words = [word for word in present if not _looks_like_a_number(word)]
    if len(words) < len(present):
        return "if its first line holds data instead of column names, add a header line"
    close = get_close_matches(name, words, n=3, cutoff=0.6) or [w for w in words if _bare(w) == _bare(name)]
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    more = f" and {len(present) - MOST_NAMES} more" if len(present) > MOST_NAMES else ""
    return f"its columns are {', '.join(map(repr, present[:MOST_NAMES]))}{more}"


def _bare(name: str) -> str:
    """A name without what is easily overlooked: capitals, and blanks around it."""
    return name.strip().casefold()


def _all_names(present: list[str], path: Path) -> list[str]:
    """All columns, if what stands in for their names is not a row of data."""
    if any(map(_looks_like_a_number, present)):
        raise DataError(
            f"{path} seems to have data in place of column names; add a header line, "
            "or name the columns to use if they are really called so"
        )
    return present


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_numbers(table: pa.Table, path: Path) -> pa.Table:
    """The table as float64, if it holds finite numbers and nothing else."""
    for i, column in enumerate(table.schema):
        kind = column.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise DataTypeError(
                f"column {column.name!r} of {path} does not hold numbers only; "
                "clean it, encode it as numbers, or choose other columns"
            )
        values = table.column(i).cast(pa.float64(), safe=False)
        if values.null_count or not pyarrow.compute.all(pyarrow.compute.is_finite(values)).as_py():
            raise DataError(
                f"column {column.name!r} of {path} has missing or infinite values; drop or fill such rows"
            )
        table = table.set_column(i, column.name, values)
    return table


@contextmanager
def _arrow_errors_reworded(path: Path, kind: Format) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError):
        hint = (
            "look for lines with more or fewer fields than the header, open quotes, and text not in UTF-8"
            if kind.name == "CSV"
            else "write the file again"
        )
        raise DataError(f"{path} is damaged or not a {kind.name} file; {hint}") from None


def _csv_columns(path: Path) -> list[str]:
    with pyarrow.csv.open_csv(path) as reader:
        return list(reader.schema.names)


def _read_csv(path: Path, chosen: list[str]) -> pa.Table:
    return pyarrow.csv.read_csv(
        path, convert_options=pyarrow.csv.ConvertOptions(include_columns=chosen, check_utf8=False)
    )


def _parquet_columns(path: Path) -> list[str]:
    return list(pyarrow.parquet.read_schema(path).names)


def _read_parquet(path: Path, chosen: list[str]) -> pa.Table:
    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read(columns=chosen).select(chosen)


def _feather_columns(path: Path) -> list[str]:
    with pa.ipc.open_file(path) as file:
        return list(file.schema.names)


def _read_feather(path: Path, chosen: list[str]) -> pa.Table:
    return pyarrow.feather.read_table(path, columns=chosen, memory_map=False).select(chosen)


def _feather_writer(path: Path, schema: pa.Schema) -> pa.RecordBatchFileWriter:
    return pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


FORMATS: dict[str, Format] = {
    ".csv": Format("CSV", _csv_columns, _read_csv, pyarrow.csv.CSVWriter),
    ".parquet": Format("Parquet", _parquet_columns, _read_parquet, pyarrow.parquet.ParquetWriter),
    ".feather": Format("Feather", _feather_columns, _read_feather, _feather_writer),
}

"""Rows in Parquet files, or in any pyarrow.dataset: read in chunks, never whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import narwhals as nw
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from pyarrow.fs import FileSystem, LocalFileSystem

from pemeans.errors import DataError, PemeansError
from pemeans.kernels.placing import Columns
from pemeans.rows.files import check_present
from pemeans.rows.stream import Part, chunk_rows
from pemeans.rows.table import UNREADABLE, as_floats, check_columns, check_filled

PART_ROWS = 1 << 20
"""Rows that one thread reads from first to last, if the file's row groups are not larger."""
PAGE = 1 << 20
"""Bytes of each column that are read from a file at a time."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """Some row groups of one file; None for all."""

    files: FileSystem
    path: str
    groups: tuple[int, ...] | None = None

    def open(self) -> pyarrow.parquet.ParquetFile:
        """The file, to be read a little at a time."""
        return pyarrow.parquet.ParquetFile(
            self.path, filesystem=self.files, pre_buffer=False, buffer_size=PAGE
        )


class ParquetReader:
    """Reads Parquet files, whose columns are found by their names.

    Parameters
    ----------
    pieces : sequence of Piece
        At least one.
    wanted : sequence of str, optional
        The columns to read; by default all those of the first file, and then no file may have others.
    """

    def __init__(self, pieces: Sequence[Piece], wanted: Sequence[str] | None = None) -> None:
        first = _schema(pieces[0])
        self.names: tuple[str, ...] = tuple(first.names if wanted is None else wanted)
        self.n_features = len(self.names)
        check_filled(1, self.n_features)
        self._parts: list[Part] = []
        for piece in pieces:
            schema = first if piece is pieces[0] else _schema(piece)
            self._check(schema, piece.path, None if wanted is not None else pieces[0].path)
            self._parts += [Part(rows, partial(self._read, run)) for rows, run in _runs(piece)]

    @classmethod
    def of_files(cls, paths: Sequence[str], wanted: Sequence[str] | None = None) -> ParquetReader:
        """A reader of files on this machine."""
        here = LocalFileSystem()
        return cls([Piece(here, path) for path in paths], wanted)

    def parts(self) -> Sequence[Part]:
        """Runs of row groups."""
        return self._parts

    def _check(self, schema: pa.Schema, path: str, first: str | None) -> None:
        """Every column is there, once, and holds numbers; none is there that the first file lacks."""
        for name in self.names:
            check_present(name, schema.names, Path(path))
        extra = set(schema.names) - set(self.names)
        if first is not None and extra:
            raise DataError(
                f"{path} has a column {min(extra)!r}, which {first} has not; give all files the same columns"
            )
        check_types(pa.schema([schema.field(name) for name in self.names]))

    def _read(self, piece: Piece) -> Iterator[Columns]:
        """The rows of a piece, chunk by chunk."""
        file = reworded(piece.open, piece.path)
        with file:
            batches = file.iter_batches(
                chunk_rows(self.n_features), row_groups=piece.groups, columns=self.names, use_threads=False
            )
            while (batch := reworded(partial(next, batches, None), piece.path)) is not None:
                yield columns_of(batch.select(self.names))


class DatasetReader:
    """Reads any other pyarrow.dataset: filtered, partitioned, or of another format than Parquet.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        Read by Arrow's own scanner, which holds a few fragments' row groups in memory.
    """

    def __init__(self, dataset: pyarrow.dataset.Dataset) -> None:
        self._dataset = dataset
        self.names = tuple(dataset.schema.names)
        self.n_features = len(self.names)
        check_filled(1, self.n_features)
        check_types(dataset.schema)

    def parts(self) -> Sequence[Part]:
        """All of it, however much: Arrow shares the work out itself."""
        return [Part(sys.maxsize, self._read)]

    def _read(self) -> Iterator[Columns]:
        batches = self._dataset.to_batches(
            batch_size=chunk_rows(self.n_features), batch_readahead=1, fragment_readahead=1
        )
        while (batch := reworded(partial(next, batches, None), "X")) is not None:
            if batch.num_rows:
                yield columns_of(batch)


def dataset_reader(dataset: pyarrow.dataset.Dataset) -> ParquetReader | DatasetReader:
    """The reader for a dataset: file by file, if its columns are all in plain Parquet files."""
    plain = isinstance(dataset, pyarrow.dataset.FileSystemDataset) and isinstance(
        dataset.format, pyarrow.dataset.ParquetFileFormat
    )
    try:
        fragments = list(dataset.get_fragments()) if plain else []
    except ValueError:  # a filter stands before it
        fragments = []
    names = dataset.schema.names
    if not fragments or any(set(names) - set(part.physical_schema.names) for part in fragments):
        return DatasetReader(dataset)
    pieces = [
        Piece(part.filesystem, part.path, tuple(group.id for group in part.row_groups)) for part in fragments
    ]
    return ParquetReader(pieces, names)


def check_types(schema: pa.Schema) -> None:
    """Every column must hold numbers, by its type; said as for a data frame."""
    if len(set(schema.names)) < len(schema.names):
        raise DataError(UNREADABLE)
    check_columns(nw.from_native(schema.empty_table(), eager_only=True))


def columns_of(batch: pa.RecordBatch) -> Columns:
    """The columns of a batch as floating-point numbers, NaN where one is missing; copied only if need be."""
    return [as_floats(column.to_numpy(zero_copy_only=False)) for column in batch.columns]


def reworded(action: Callable[[], Result], path: str) -> Result:
    """Do something with a file; Arrow's own messages may quote what stands in it, and are not passed on."""
    try:
        return action()
    except (PemeansError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError):
        pass
    # Raised out here, where no other error is chained.
    raise DataError(f"{path} is damaged or not a Parquet file; write the file again")


def _schema(piece: Piece) -> pa.Schema:
    """The columns of a file, by its footer."""

    def read() -> pa.Schema:
        with piece.open() as file:
            return file.schema_arrow

    return reworded(read, piece.path)


def _runs(piece: Piece) -> Iterator[tuple[int, Piece]]:
    """Runs of row groups with some `PART_ROWS` rows each, and how many they have."""
    with piece.open() as file:
        about = file.metadata
        groups = range(about.num_row_groups) if piece.groups is None else piece.groups
        run: list[int] = []
        rows = 0
        for group in groups:
            run.append(group)
            rows += about.row_group(group).num_rows
            if rows >= PART_ROWS:
                yield rows, Piece(piece.files, piece.path, tuple(run))
                run, rows = [], 0
        if run:
            yield rows, Piece(piece.files, piece.path, tuple(run))

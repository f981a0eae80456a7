"""What it means to hold private rows: to answer a statistic with its total, and nothing else."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pemeans.domain import Domain
from pemeans.errors import DataError, DomainError
from pemeans.kernels.grid import Frame, IntArray, Projection
from pemeans.rows.block import Block


class Question(Protocol):
    """Something that can be asked of a chunk of rows and added up over chunks: a statistic."""

    def __call__(self, block: Block) -> IntArray: ...


class Rows(Protocol):
    """The private rows, wherever they live."""

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all chunks of rows: exact, un-noised, for the curator only."""
        ...


@runtime_checkable
class Source(Protocol):
    """What the user passed as data, validated: its public shape, and the way to its rows."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns' names, where they have any."""
        ...

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        ...

    def rows(self, domain: Domain, n_jobs: int | None) -> Rows:
        """The rows on the domain's grid; None means all cores."""
        ...

    def domain_of_rows(self) -> Domain:
        """A domain read from the private rows: only at the user's explicit wish."""
        ...


@runtime_checkable
class ReadableSource(Source, Protocol):
    """A source whose rows can be had one chunk after the other, to say where each of them belongs."""

    def chunks(self) -> Iterator[npt.NDArray[np.floating[Any]]]:
        """The rows in the user's units, in their order."""
        ...


@runtime_checkable
class KeptSource(Source, Protocol):
    """A source that keeps rows somewhere else, where they would stay until this process ends, or longer."""

    def forget(self) -> None:
        """Remove them."""
        ...


def lenses(question: Any) -> tuple[Question, Frame | None, Projection | None]:
    """A question without its frame, the frame, and the view: public maps that stay for many questions.

    An engine whose blocks don't outlive a release persists what is seen through them.
    """
    frame = getattr(question, "frame", None)
    inner = question if frame is None else question.statistic
    return inner, frame, getattr(inner, "view", None)


def refuse_to_read_domain() -> NoReturn:
    """What an engine says to ``domain="from-data"``: floating-point means depend on the partitions."""
    raise DomainError(
        'domain="from-data" is for data in memory; say what is known of the rows without looking at them: '
        "Domain.box(lower, upper)"
    )


ENGINES = {"dask": "pemeans.rows.dask", "pyspark": "pemeans.rows.spark"}
"""The modules that read what a cluster's package made, by that package's name; each has an `open_source`."""


def engine_of(data: Any) -> Any:
    """The module that reads this kind of data, or None where it is in memory."""
    package = type(data).__module__.partition(".")[0]
    return import_module(ENGINES[package]) if package in ENGINES else None


def open_source(data: Any, n_jobs: int | None = None) -> Source:
    """Find the engine that fits what the user passed, and validate the data with it.

    A `Source` of the user's own is taken as it is: whoever can add up a statistic can be fitted on.

    Parameters
    ----------
    data : Any
        What stands for the rows.
    n_jobs : int or None
        Threads to look at them, where they are not on a cluster; None means all cores.
    """
    engine = engine_of(data)  # first, as the frames of Spark Connect claim to have every attribute
    if engine is not None:
        return engine.open_source(data)  # type: ignore[no-any-return]
    return data if isinstance(data, Source) else open_readable(data, n_jobs)


@contextmanager
def opened(data: Any, n_jobs: int | None = None) -> Iterator[Source]:
    """The same for a while: what is kept elsewhere is gone afterwards, also if something fails."""
    source = open_source(data, n_jobs)
    try:
        yield source
    finally:
        if source is not data and isinstance(source, KeptSource):
            source.forget()


def open_readable(data: Any, n_jobs: int | None = None) -> ReadableSource:
    """The same for rows that this machine can read: in memory, in files, or mapped from one."""
    # The engines know this module, not the other way round; and nobody waits for libraries that are not used.
    if isinstance(data, str) and not _leads_somewhere(data):
        # Whoever passed it knows it; what else it may be than a path must not be repeated.
        raise DataError("X is text, and no file or folder is called so; check the path or the pattern")
    if isinstance(data, str | os.PathLike):
        from pemeans.rows.paths import open_path

        return open_path(data, None, n_jobs)
    if isinstance(data, np.memmap) and data._mmap is not None:  # type: ignore[attr-defined]
        from pemeans.rows.memmap import MemmapReader
        from pemeans.rows.stream import StreamSource

        return StreamSource(MemmapReader(data), n_jobs)
    if _is_dataset(data):
        from pemeans.rows.parquet import dataset_reader
        from pemeans.rows.stream import StreamSource

        return StreamSource(dataset_reader(data), n_jobs)
    from pemeans.rows.table import read_table

    return data if isinstance(data, ReadableSource) else read_table(data)


def _leads_somewhere(text: str) -> bool:
    """Whether a file, a folder, or what a pattern matches is called so."""
    return "\0" not in text and (os.path.exists(text) or bool(glob.glob(text, recursive=True)))


def _is_dataset(data: Any) -> bool:
    """Whether this is a pyarrow.dataset; without the library it can't be one."""
    library = sys.modules.get("pyarrow.dataset")
    return library is not None and isinstance(data, library.Dataset)

"""Rows that stay where they are: some are held in memory, the others are read for every question.

Nothing is written anywhere. A copy of the rows on the grid would save little, because reading takes less time
than a vote does, and it would be one more file of private rows for others to find.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pemeans.domain import Domain, DomainReader
from pemeans.errors import DataError
from pemeans.kernels.grid import GridArray, IntArray
from pemeans.kernels.placing import Columns
from pemeans.rows.base import Question
from pemeans.rows.block import Block
from pemeans.rows.memory import HeldBlocks, in_blocks, threads_of
from pemeans.rows.table import FloatTable, check_filled, not_finite

MOST_ROWS, MOST_NUMBERS = 1 << 16, 1 << 20
"""A chunk has at most so many rows and numbers (8 MiB); each thread has a few of them in memory at once."""
CHANGED = "X has changed while it was read; fit again, and leave its files alone meanwhile"

CHUNKS_AHEAD = 2
"""Chunks that wait for each thread, so that reading and computing overlap."""

HELD_BYTES = 640 << 20
"""So many bytes of rows on the grid stay in memory after the first look; only the others are read again."""
KEPT_BYTES = 64 << 20
"""So many of these remember their last answers, which may take twice as much."""

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the rows: how many, and how to read them from the start, each time anew."""

    n_rows: int
    read: Callable[[], Iterator[Columns]]


class Reader(Protocol):
    """Knows where rows are and how to read them."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns' names, where they have any."""
        ...

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        ...

    def parts(self) -> Sequence[Part]:
        """All rows, in parts that can be read at the same time, in chunks of at most `chunk_rows` rows."""
        ...


class StreamSource:
    """Rows behind a reader, read once now to see whether all are finite numbers.

    Parameters
    ----------
    reader : Reader
        Knows where the rows are.
    n_jobs : int or None
        Threads that look at them; None means all cores.
    """

    def __init__(self, reader: Reader, n_jobs: int | None = None) -> None:
        self._reader = reader
        self._threads = threads_of(n_jobs)
        self.names = reader.names
        self.n_features = reader.n_features
        self.n_rows = self._checked()

    def _checked(self) -> int:
        """How many rows there are; an error if there are none, or any holds what is not a number."""
        n_rows, bad = 0, np.zeros(self.n_features, dtype=bool)
        for rows, found in spread(self._reader.parts(), _flaws, self._threads):
            n_rows += rows
            bad |= found
        check_filled(n_rows, self.n_features)
        if bad.any():
            raise DataError(not_finite(int(bad.argmax()), self.names))
        return n_rows

    def rows(self, domain: Domain, n_jobs: int | None) -> StreamedRows:
        """The rows on the domain's grid, chunk by chunk."""
        return StreamedRows(self._reader, self.n_rows, domain, n_jobs)

    def domain_of_rows(self) -> Domain:
        """The smallest ball around the mean of the rows; two passes."""
        reading = DomainReader(self.n_features)
        for _ in spread(self._reader.parts(), reading.add, 1):
            pass
        return reading.ball(max(spread(self._reader.parts(), reading.farthest, self._threads)))

    def chunks(self) -> Iterator[FloatTable]:
        """The rows in the user's units, in their order."""
        yield from spread(self._reader.parts(), np.column_stack, 1)

    def __repr__(self) -> str:
        return f"<Rows of {self.n_features} features, read in chunks>"


class StreamedRows:
    """Rows read anew for every question, in chunks shared out among threads.

    Parameters
    ----------
    reader : Reader
        Knows where the rows are.
    n_rows : int
        How many there were when they were checked.
    domain : Domain
        The bound domain.
    n_jobs : int or None
        Threads to use, besides as many that read ahead; None means all cores.
    """

    def __init__(self, reader: Reader, n_rows: int, domain: Domain, n_jobs: int | None = None) -> None:
        self._domain, self._threads = domain, threads_of(n_jobs)
        room = HELD_BYTES // (4 * reader.n_features)
        held, self._again = _split(reader.parts(), room)
        grids = [grid for grids in spread(held, self._on_grid, self._threads) for grid in grids]
        self._held = HeldBlocks(grids, self._threads, KEPT_BYTES)
        self._n_again = n_rows - sum(map(len, grids))
        if sum(map(len, grids)) != sum(part.n_rows for part in held):
            raise DataError(CHANGED)

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows. Integers: the same in any chunks and on any threads."""

        def answer(columns: Columns) -> tuple[int, IntArray | int]:
            return len(columns[0]), sum(statistic(Block(grid)) for grid in self._on_grid(columns))

        seen, total = 0, self._held.total(statistic)
        for n_rows, part in spread(self._again, answer, self._threads):
            seen, total = seen + n_rows, total + part
        if seen != self._n_again:
            raise DataError(CHANGED)
        return np.asarray(total)

    def _on_grid(self, columns: Columns) -> list[GridArray]:
        return in_blocks(self._domain.columns_to_grid(columns))


def _split(parts: Sequence[Part], room: int) -> tuple[list[Part], list[Part]]:
    """The parts that fit into room for so many rows, and the others."""
    held: list[Part] = []
    others: list[Part] = []
    for part in parts:
        (held if part.n_rows <= room else others).append(part)
        room -= part.n_rows if part.n_rows <= room else 0
    return held, others


def chunk_rows(n_features: int) -> int:
    """How many rows make a chunk."""
    return max(1, min(MOST_ROWS, MOST_NUMBERS // n_features))


def spread(parts: Sequence[Part], work: Callable[[Columns], Result], threads: int) -> Iterator[Result]:
    """Do something with every chunk on so many threads, while as many others read ahead.

    Only a few chunks are in memory at any time. With one thread, results come in the order of the rows.
    """
    waiting: deque[Future[Result]] = deque()
    with closing(read_ahead(parts, threads)) as chunks, ThreadPoolExecutor(threads) as workers:
        for chunk in chunks:
            waiting.append(workers.submit(work, chunk))
            if len(waiting) > CHUNKS_AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def read_ahead(parts: Sequence[Part], threads: int) -> Generator[Columns]:
    """The chunks of all parts, read by so many threads; in their order with one."""
    todo, found = deque(parts), SimpleQueue[Columns | BaseException | None]()
    room = Semaphore(CHUNKS_AHEAD * threads)
    closed: list[bool] = []

    def next_part() -> Part | None:
        try:
            return todo.popleft()
        except IndexError:  # another thread took the last one
            return None

    def read() -> None:
        try:
            for part in iter(next_part, None):
                for chunk in part.read():
                    room.acquire()
                    if closed:
                        return
                    found.put(chunk)
        except BaseException as error:  # for the thread that asked
            found.put(error)
        finally:
            found.put(None)

    readers = [Thread(target=read, daemon=True) for _ in range(min(threads, len(todo)))]
    for reader in readers:
        reader.start()
    try:
        for _ in readers:
            while (chunk := found.get()) is not None:
                if isinstance(chunk, BaseException):
                    raise chunk
                room.release()
                yield chunk
    finally:
        closed.append(True)
        todo.clear()
        room.release(len(readers) or 1)
        for reader in readers:
            reader.join()


def _flaws(columns: Columns) -> tuple[int, npt.NDArray[np.bool_]]:
    """The number of rows, and which columns hold anything that is not a finite number."""
    return len(columns[0]), np.array([not np.isfinite(column).all() for column in columns])

"""Rows that stay where they are: read in chunks, once for every question.

Nothing is written anywhere. A copy of the rows on the grid would save little, because reading takes less time
than a vote does, and it would be one more file of private rows for others to find.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from pemeans.domain import Domain, DomainReader
from pemeans.errors import DataError
from pemeans.kernels.grid import IntArray
from pemeans.kernels.placing import Columns
from pemeans.rows.base import Question
from pemeans.rows.block import Block
from pemeans.rows.table import FloatTable, check_shape, not_finite

MOST_ROWS, MOST_NUMBERS = 1 << 16, 1 << 20
"""A chunk has at most so many rows and numbers (8 MiB); each thread has a few of them in memory at once."""
CHUNKS_AHEAD = 2
"""Chunks that wait for each thread, so that reading and computing overlap."""

Part = Callable[[], Iterator[Columns]]
"""Reads some of the rows from the start: each call anew."""
Result = TypeVar("Result")


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
        self._threads = _threads(n_jobs)
        self.names = reader.names
        self.n_features = reader.n_features
        self.n_rows = self._checked()

    def _checked(self) -> int:
        """How many rows there are; an error if there are none, or any holds what is not a number."""
        n_rows, bad = 0, np.zeros(self.n_features, dtype=bool)
        for rows, found in spread(self._reader.parts(), _flaws, self._threads):
            n_rows += rows
            bad |= found
        check_shape((n_rows, self.n_features))
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
        Threads to use, besides those that wait for the disk; None means all cores.
    """

    def __init__(self, reader: Reader, n_rows: int, domain: Domain, n_jobs: int | None = None) -> None:
        self._reader, self._n_rows, self._domain = reader, n_rows, domain
        self._threads = _threads(n_jobs)

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows. Integers: the same in any chunks and on any threads."""

        def answer(columns: Columns) -> tuple[int, IntArray]:
            return len(columns[0]), statistic(Block(self._domain.columns_to_grid(columns)))

        seen, total = 0, np.zeros((), dtype=np.int64)
        for rows, part in spread(self._reader.parts(), answer, self._threads):
            seen += rows
            total = np.add(total, part)
        if seen != self._n_rows:
            raise DataError("X has changed while it was read; fit again, and leave its files alone meanwhile")
        return np.asarray(total)


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
                for chunk in part():
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


def _threads(n_jobs: int | None) -> int:
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))

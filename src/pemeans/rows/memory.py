"""Rows in an array in memory, in blocks shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from pemeans.domain import Domain
from pemeans.kernels.grid import GridArray, IntArray
from pemeans.rows.base import Question
from pemeans.rows.block import Block

BLOCK_ROWS = 1 << 14
"""Rows in a block: small enough to share out evenly, large enough that the kernel's set-up does not show."""


KEPT_BYTES = 1 << 28
"""Blocks remember their last answers as long as their rows on the grid take no more than this; what they
remember can be twice as much. Other rows are looked at anew for each question: slower by a tenth or so."""

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_blocks(rows: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Views of a few rows each."""
    return [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]


def blocks_on_grid(values: npt.NDArray[np.floating], domain: Domain) -> list[Block]:
    """Rows in the user's units, copied onto the domain's grid in blocks."""
    return [Block(domain.to_grid(rows)) for rows in in_blocks(values)]


class MemoryRows:
    """Rows of one array.

    Parameters
    ----------
    values : array of shape (n_rows, n_features)
        Validated rows in the user's units; copied onto the grid, not kept.
    domain : Domain
        The bound domain.
    n_jobs : int or None
        Threads to use; None means all cores.
    """

    def __init__(self, values: npt.NDArray[np.floating], domain: Domain, n_jobs: int | None = None) -> None:
        threads = threads_of(n_jobs)
        self._held = HeldBlocks(list(each(domain.to_grid, in_blocks(values), threads)), threads, KEPT_BYTES)

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows. Integers: the same in any order and on any threads."""
        return np.asarray(self._held.total(statistic))


class HeldBlocks:
    """Blocks of rows on the grid; the first of them remember their last answers.

    Parameters
    ----------
    grids : sequence of int32 arrays of shape (rows, features)
        The rows.
    threads : int
        Threads to use.
    kept_bytes : int
        How many bytes of rows the blocks that remember may have.
    """

    def __init__(self, grids: Sequence[GridArray], threads: int, kept_bytes: int) -> None:
        so_far = np.cumsum([grid.nbytes for grid in grids])
        kept = int(np.searchsorted(so_far, kept_bytes, side="right"))
        self._threads = threads
        self._blocks, self._others = list(map(Block, grids[:kept])), grids[kept:]

    def total(self, statistic: Question) -> IntArray | int:
        """The sum of the statistic over all blocks; 0 where there are none."""

        def afresh(grid: GridArray) -> IntArray:
            return statistic(Block(grid))  # what this block remembers goes with it

        kept = sum(each(statistic, self._blocks, self._threads))
        return kept + sum(each(afresh, self._others, self._threads))


def each(work: Callable[[Piece], Result], pieces: Sequence[Piece], threads: int) -> Iterator[Result]:
    """The results for all pieces, in their order."""
    if threads == 1 or len(pieces) == 1:
        yield from map(work, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, pieces)


def threads_of(n_jobs: int | None) -> int:
    """How many threads this stands for; None means all cores."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))

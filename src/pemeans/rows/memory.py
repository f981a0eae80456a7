"""Rows in an array in memory, in blocks shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from pemeans.domain import Domain
from pemeans.kernels.grid import IntArray
from pemeans.rows.base import Question
from pemeans.rows.block import Block

BLOCK_ROWS = 1 << 14
"""Rows in a block: small enough to share out evenly, large enough that the kernel's set-up does not show."""
KEPT_BYTES = 1 << 28
"""Blocks remember their last answers as long as their rows on the grid take no more than this; what they
remember can be twice as much. Other rows are looked at anew for each question: slower by a tenth or so."""

Piece = TypeVar("Piece")
Result = TypeVar("Result")


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
        self._threads = effective_n_jobs(-1 if n_jobs is None else n_jobs)
        starts = range(0, len(values), BLOCK_ROWS)
        chunks = [values[start : start + BLOCK_ROWS] for start in starts]
        grids = list(self._each(domain.to_grid, chunks))
        kept = max(1, KEPT_BYTES // grids[0].nbytes)
        self._blocks, self._grids = list(map(Block, grids[:kept])), grids[kept:]

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows. Integers: the same in any order and on any threads."""
        return np.asarray(sum(self._each(statistic, [*self._blocks, *map(Block, self._grids)])))

    def _each(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """The results for all pieces, in their order."""
        if self._threads == 1 or len(pieces) == 1:
            yield from map(work, pieces)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(work, pieces)

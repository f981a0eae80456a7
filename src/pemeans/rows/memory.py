"""Rows in an array in memory, in blocks shared out among threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from pemeans.domain import Domain
from pemeans.kernels.grid import IntArray
from pemeans.rows.base import Question
from pemeans.rows.block import Block

BLOCK_ROWS = 1 << 14
"""Rows in a block: small enough to share out evenly, large enough that the kernel's set-up does not show."""


def blocks_on_grid(values: npt.NDArray[np.floating], domain: Domain) -> list[Block]:
    """Rows in the user's units, copied onto the domain's grid in blocks."""
    starts = range(0, len(values), BLOCK_ROWS)
    return [Block(domain.to_grid(values[start : start + BLOCK_ROWS])) for start in starts]


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
        self._blocks = blocks_on_grid(values, domain)

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows. Integers: the same in any order and on any threads."""
        if self._threads == 1 or len(self._blocks) == 1:
            return np.asarray(sum(map(statistic, self._blocks)))
        with ThreadPoolExecutor(self._threads) as pool:
            return np.asarray(sum(pool.map(statistic, self._blocks)))

"""The one hot loop: the nearest candidate of every row, exactly and row by row.

Squared distances on the integer grid are integers, and the nearest candidate is the one with the largest
``2 x.c - |c|^2``; among equals the lowest index. Both kernels below return that winner exactly, so a row's
vote never depends on the other rows in its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.kernels.grid import GridArray, squared_norms
from pemeans.kernels.native import native

Labels = npt.NDArray[np.int32]
Kernel = Callable[[GridArray, GridArray], Labels]

FEW_ROWS = 32
"""Fewer rows than this don't pay for an index of the candidates."""
BLOCK_SCORES = 1 << 20
"""How many scores the NumPy kernel holds at once (8 MiB of float64)."""


def nearest_in_numpy(rows: GridArray, candidates: GridArray) -> Labels:
    """Nearest candidates by float64 matrix products of integers, whose partial sums are all below 2**53.

    Such products are exact in any order of addition, hence as row-local as integer arithmetic.
    """
    columns = 2.0 * candidates.T.astype(np.float64)
    squared = squared_norms(candidates).astype(np.float64)
    labels = np.empty(len(rows), dtype=np.int32)
    step = max(1, BLOCK_SCORES // len(candidates))
    for start in range(0, len(rows), step):
        score = rows[start : start + step].astype(np.float64) @ columns
        score -= squared
        labels[start : start + step] = score.argmax(axis=1)
    return labels


def nearest_in_c(rows: GridArray, candidates: GridArray) -> Labels:
    """Nearest candidates by bounds and 16-bit scores with proven errors; what is in doubt, in integers."""
    labels = np.empty(len(rows), dtype=np.int32)
    asked, whole = np.ascontiguousarray(rows), np.ascontiguousarray(candidates)
    if len(rows) < FEW_ROWS:
        native.scan(whole, whole.shape[1], asked, labels)
    else:
        native.find(_LAST_INDEX.of(whole), asked, labels, native.instruction_set())
    return labels


class _LastIndex:
    """The index of the candidates asked about last: blocks of rows share it, on whatever thread they are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._index: Any = None

    def of(self, candidates: GridArray) -> Any:
        """The index of these very candidates; numbers are compared, not objects, for arrays may change."""
        d = candidates.shape[1]
        with self._lock:
            if self._index is None or not native.same(self._index, candidates, d):
                self._index = native.index(candidates, d, 0, native.instruction_set())
            return self._index


_LAST_INDEX = _LastIndex()

nearest: Kernel = nearest_in_numpy if native is None else nearest_in_c

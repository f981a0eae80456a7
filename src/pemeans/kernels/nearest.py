"""The one hot loop: the nearest candidate of every row, exactly and row by row.

Squared distances on the integer grid are integers, and the nearest candidate is the one with the largest
``2 x.c - |c|^2``; among equals the lowest index. Both kernels below return that winner exactly, so a row's
vote never depends on the other rows in its batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pemeans.kernels.grid import GridArray, squared_norms
from pemeans.kernels.native import native

Labels = npt.NDArray[np.int32]
Kernel = Callable[[GridArray, GridArray], Labels]

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
    """Nearest candidates by float32 screening with a proven error bound, ties settled in integers."""
    labels = np.empty(len(rows), dtype=np.int32)
    if len(rows):
        native.nearest(
            np.ascontiguousarray(rows), np.ascontiguousarray(candidates), labels, int(rows.shape[1])
        )
    return labels


nearest: Kernel = nearest_in_numpy if native is None else nearest_in_c

"""Sums of floating-point numbers without rounding: the same in any order and in any chunks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

MANTISSA, HALF = 53, 27
"""Bits of a float64's mantissa, and of its lower half: 2**26 such halves add up to less than 2**53."""
SMALLEST_BIT = 1126
"""``2**-1126`` divides every float64, taken as a mantissa of 53 bits times a power of two."""


class ExactSums:
    """The exact sum of every column, chunk by chunk.

    Examples
    --------
    >>> sums = ExactSums(1)
    >>> sums.add([np.array([1e100, 1.0])])
    >>> sums.add([np.array([-1e100, 2.0])])
    >>> sums.means()
    [0.75]
    """

    def __init__(self, n_columns: int) -> None:
        self._sums = [0] * n_columns
        self._count = 0

    def add(self, columns: Sequence[npt.NDArray[np.floating[Any]]]) -> None:
        """Add some rows, given as columns of finite numbers; at most 2**26 at a time."""
        self._count += len(columns[0])
        for j, column in enumerate(columns):
            part, power = np.frexp(column.astype(np.float64))
            whole = (part * 2.0**MANTISSA).astype(np.int64)
            bins = power - power.min()
            high = np.bincount(bins, weights=whole >> HALF)
            low = np.bincount(bins, weights=whole & ((1 << HALF) - 1))
            lowest = int(power.min()) - MANTISSA + SMALLEST_BIT
            for i in np.flatnonzero((high != 0) | (low != 0)).tolist():
                self._sums[j] += ((int(high[i]) << HALF) + int(low[i])) << (lowest + i)

    def means(self) -> list[float]:
        """The mean of every column, rounded once."""
        return [float(Fraction(total, self._count << SMALLEST_BIT)) for total in self._sums]

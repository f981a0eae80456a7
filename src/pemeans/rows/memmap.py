"""Rows in a NumPy memmap: a file that looks like an array. It is never copied whole, nor kept in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.kernels.placing import Columns
from pemeans.rows.stream import Part, chunk_rows
from pemeans.rows.table import as_floats, check_array, check_filled

PART_ROWS = 1 << 20
"""Rows that one thread looks at from first to last."""
PRIVATE = ("c",)
"""Modes in which the user's changes are in memory only, and must stay there."""


class MemmapReader:
    """Reads an array that is mapped from a file.

    Parameters
    ----------
    array : numpy.memmap
        Of two dimensions; any type of numbers, any order.
    """

    names: tuple[str, ...] | None = None

    def __init__(self, array: np.memmap[Any, np.dtype[Any]]) -> None:
        check_array(array)
        check_filled(*array.shape)
        self._array = array
        self.n_features = int(array.shape[1])

    def parts(self) -> Sequence[Part]:
        """Ranges of rows."""
        starts = range(0, len(self._array), PART_ROWS)
        ranges = [range(start, min(start + PART_ROWS, len(self._array))) for start in starts]
        return [Part(len(rows), partial(self._read, rows)) for rows in ranges]

    def _read(self, rows: range) -> Iterator[Columns]:
        """Copies of some rows; the system may then drop its own."""
        step = chunk_rows(self.n_features)
        for first in rows[::step]:
            mapped = self._array[first : min(first + step, rows.stop)]
            chunk = np.array(mapped, order="F", subok=False)
            _let_go(self._array, mapped)
            yield [as_floats(column) for column in chunk.T]


def _let_go(whole: np.memmap[Any, np.dtype[Any]], part: npt.NDArray[Any]) -> None:
    """Tell the system that these pages can leave memory; what is in the file stays there."""
    file: mmap.mmap = whole._mmap  # type: ignore[attr-defined]
    if whole.mode in PRIVATE or not hasattr(mmap, "MADV_DONTNEED"):
        return
    reach = [(count - 1) * stride for count, stride in zip(part.shape, part.strides, strict=True)]
    first = _address(part) + sum(step for step in reach if step < 0) - _address(np.frombuffer(file, np.uint8))
    last = first + sum(map(abs, reach)) + part.itemsize
    start = first // mmap.PAGESIZE * mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, start, last - start)


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])

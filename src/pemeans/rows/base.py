"""What it means to hold private rows: to answer a statistic with its total, and nothing else."""

from __future__ import annotations

from typing import Protocol

from pemeans.kernels.grid import IntArray
from pemeans.rows.block import Block


class Question(Protocol):
    """Something that can be asked of a chunk of rows and added up over chunks: a statistic."""

    def __call__(self, block: Block) -> IntArray: ...


class Rows(Protocol):
    """The private rows, wherever they live."""

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all chunks of rows: exact, un-noised, for the curator only."""
        ...

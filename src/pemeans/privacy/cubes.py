"""Questions about a recursive partition of space into cubes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pemeans.kernels.grid import GridArray, IntArray, Projection, pull_into_ball
from pemeans.rows.block import Block

EXTRA_BITS = 20
"""Coordinates are multiplied by 2**20, so that cubes can be halved so often without rounding."""


def in_ball(block: Block, view: Projection | None) -> GridArray:
    """The rows as seen through the view, pulled into the unit ball where they are outside, each by itself."""
    return pull_into_ball(block.through(view))


@dataclass(frozen=True, eq=False)
class CubeCounts:
    """How many rows are in each of the 2^p children of every cube that is kept at some depth.

    Sensitivity 1, in both norms: a row goes down from the largest cube, by the signs of its own coordinates
    as seen from the center of the cube that it is in, and adds one to the child that it gets to, or nothing
    where that path was not kept.

    Parameters
    ----------
    half_width : int
        Of the largest cube, in grid units; its outer children reach beyond it.
    shift : int64 array of shape (p,)
        Added to all rows first.
    kept : sequence of int64 arrays of shape (cubes, 2^p)
        For every depth so far the number that the child has among the cubes that are kept, or -1.
    view : Projection, optional
        The public projection through which the rows are seen; they are then pulled into the unit ball.
    """

    half_width: int
    shift: IntArray
    kept: tuple[IntArray, ...]
    view: Projection | None = None
    sensitivity: ClassVar[int] = 1
    l1_sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        seen_from_center = (in_ball(block, self.view) + self.shift) << EXTRA_BITS
        step = self.half_width << EXTRA_BITS
        bits = 1 << np.arange(len(self.shift))
        cube = np.zeros(len(seen_from_center), dtype=np.int64)
        for numbers in self.kept:
            step >>= 1
            beyond = seen_from_center >= 0
            cube = numbers[cube, beyond @ bits]
            inside = cube >= 0
            cube = cube[inside]
            seen_from_center = (seen_from_center - np.where(beyond, step, -step))[inside]
        cubes = 1 + int(self.kept[-1].max(initial=-1)) if self.kept else 1
        child = (cube << len(bits)) + (seen_from_center >= 0) @ bits
        counts = np.bincount(child, minlength=cubes << len(bits)).astype(np.int64)
        return counts.reshape(cubes, 1 << len(bits))

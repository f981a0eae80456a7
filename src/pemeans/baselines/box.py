"""A box around the origin, for methods whose domain is a box: packing it, folding points back into it."""

from __future__ import annotations

import numpy as np

from pemeans.evolution.populate import spread
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray

NARROWEST = 5e-6
"""Half-widths are at least this (diffprivlib widens bounds that are closer than 1e-5)."""
FARTHEST = 16.0
"""Centers are at most this many radii from the origin: so far squared distances are exact in float64."""

Box = float | tuple[float, ...]
"""Half-widths in units of the domain's radius: one for all features, or one for each."""


def half_widths(box: Box, dimensions: int) -> FloatArray:
    """The half-width of every feature.

    Examples
    --------
    >>> half_widths(0.5, 3).tolist()
    [0.5, 0.5, 0.5]
    """
    return np.maximum(np.broadcast_to(np.asarray(box, dtype=np.float64), (dimensions,)), NARROWEST)


def pack(size: int, half: FloatArray, rng: np.random.Generator) -> FloatArray:
    """So many points of the box, well spread (Su et al. 2016): 2 a from one another, a from the walls.

    The first a is the smallest half-width.
    """

    def draw(count: int, a: float) -> FloatArray:
        return rng.uniform(a - half, half - a, size=(count, len(half)))

    return spread(size, len(half), float(half.min()), draw)


def fold(points: FloatArray, half: FloatArray) -> FloatArray:
    """Reflect points at the walls of the box until they are inside.

    Examples
    --------
    >>> fold(np.array([[0.5, 1.25, -4.5]]), np.ones(3)).tolist()
    [[0.5, 0.75, -0.5]]
    """
    along = np.mod(points + half, 4 * half)
    return np.asarray(np.minimum(along, 4 * half - along) - half)


def on_grid(points: FloatArray) -> GridArray:
    """Centers on the grid, also outside the ball; very far ones are pulled nearer, which suits all rows."""
    length = np.linalg.norm(points, axis=1, keepdims=True)
    near = points * (FARTHEST / np.maximum(length, FARTHEST))
    return np.ascontiguousarray(np.rint(near * GRID_UNIT), dtype=np.int32)

"""RANDOM_API: the first population, spread over the unit ball by sphere packing (section 3.1 of the paper).

Su et al.'s packing, in a ball instead of a box: candidates keep a distance of ``2 a`` from one another and
``a`` from the boundary; where that can't be met, `a` is halved and the packing starts over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pemeans.kernels.grid import FloatArray, GridArray, to_grid
from pemeans.kernels.packing import Packing

FIRST_RADIUS = 0.5
"""The first `a`: half the radius of the domain."""
PATIENCE = 100
"""Rejections in a row after which `a` is halved."""


def populate(size: int, dimensions: int, rng: np.random.Generator) -> GridArray:
    """So many candidates, well spread over the unit ball, on the grid.

    Examples
    --------
    >>> populate(10, 3, np.random.default_rng(0)).shape
    (10, 3)
    """

    def draw(count: int, a: float) -> FloatArray:
        return uniform_in_ball(count, dimensions, rng) * (1 - a)

    return to_grid(spread(size, dimensions, FIRST_RADIUS, draw))


def spread(size: int, dimensions: int, radius: float, draw: Callable[[int, float], FloatArray]) -> FloatArray:
    """So many points ``2 a`` or more apart, with `a` the first of `radius` and its halves that allows it.

    Parameters
    ----------
    size, dimensions : int
        Of the points.
    radius : float
        The first `a`.
    draw : callable
        Draws so many random points that keep a distance of `a` from the boundary.
    """
    a = radius
    while True:
        packing = Packing(size, dimensions, distance=2 * a, patience=PATIENCE)
        while not (packing.full or packing.stuck):
            packing.offer(draw(2 * PATIENCE, a))
        if packing.full:
            return packing.points
        a /= 2


def uniform_in_ball(count: int, dimensions: int, rng: np.random.Generator) -> FloatArray:
    """Uniformly distributed points of the unit ball."""
    direction = rng.standard_normal((count, dimensions))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(direction * rng.random((count, 1)) ** (1 / dimensions))

"""VARIATION_API: Levy flights around the survivors (section 3.3 of the paper)."""

from __future__ import annotations

from math import gamma, pi, sin
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pemeans.kernels.grid import FloatArray, GridArray, to_float, to_grid

PART = 1 << 15
"""Numbers at a time: new memory for all of them would take longer than the arithmetic."""

Number = TypeVar("Number", np.float64, np.int32)


def vary(centers: GridArray, copies: int, scale: float, index: float, rng: np.random.Generator) -> GridArray:
    """Variations of each center: ``center + scale * zeta``, pulled back into the ball.

    Parameters
    ----------
    centers : int32 array of shape (k, d)
        The survivors.
    copies : int
        Variations of each (the paper's L).
    scale : float
        The paper's gamma, in units of the domain's radius.
    index : float
        The paper's beta: the Levy index, from 1 (Cauchy-like) to 2 (Gaussian).
    rng : numpy.random.Generator
        Public randomness.
    """
    steps = levy((copies, *centers.shape), index, rng)
    points = np.empty(steps.shape, dtype=np.int32)
    for some, moved in zip(in_parts(steps), in_parts(points), strict=True):
        np.multiply(some, scale, out=some)
        np.add(some, to_float(centers), out=some)
        moved[:] = to_grid(some.reshape(-1, centers.shape[1])).reshape(some.shape)
    return points.reshape(-1, centers.shape[1])


def levy(shape: tuple[int, ...], index: float, rng: np.random.Generator) -> FloatArray:
    """Levy-stable steps by Mantegna's algorithm: ``u / |v|**(1/beta)`` (equation 2)."""
    steps = rng.standard_normal(shape)
    if index == 2:
        return steps
    for u in in_parts(steps):
        np.multiply(u, mantegna_sigma(index), out=u)
        v = np.abs(rng.standard_normal(u.shape))
        np.divide(u, v ** (1 / index), out=u)
    return steps


def in_parts(numbers: npt.NDArray[Number]) -> list[npt.NDArray[Number]]:
    """Views of some of the first axis each, small enough for the cache."""
    step = max(1, PART // max(numbers[:1].size, 1))
    return [numbers[start : start + step] for start in range(0, len(numbers), step)]


def mantegna_sigma(index: float) -> float:
    """The standard deviation of `u` in Mantegna's algorithm (equation 2 of the paper).

    Examples
    --------
    >>> round(mantegna_sigma(1.75), 4)
    0.5075
    """
    beta = index
    numerator = gamma(1 + beta) * sin(pi * beta / 2)
    denominator = gamma((1 + beta) / 2) * beta * 2 ** ((beta - 1) / 2)
    return float((numerator / denominator) ** (1 / beta))

"""VARIATION_API: Levy flights around the survivors (section 3.3 of the paper)."""

from __future__ import annotations

from math import gamma, pi, sin

import numpy as np

from pemeans.kernels.grid import FloatArray, GridArray, to_float, to_grid


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
    steps = levy((copies * len(centers), centers.shape[1]), index, rng)
    return to_grid(np.tile(to_float(centers), (copies, 1)) + scale * steps)


def levy(shape: tuple[int, ...], index: float, rng: np.random.Generator) -> FloatArray:
    """Levy-stable steps by Mantegna's algorithm: ``u / |v|**(1/beta)`` (equation 2)."""
    if index == 2:
        return rng.standard_normal(shape)
    u = mantegna_sigma(index) * rng.standard_normal(shape)
    v = rng.standard_normal(shape)
    return np.asarray(u / np.abs(v) ** (1 / index))


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

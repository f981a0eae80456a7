"""LOWESS: a smooth curve through a cloud of points."""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import FloatArray

SPAN = 2 / 3
ROBUST_STEPS = 3
NARROWEST = 0.01
"""Least width of a neighborhood, of the range of x: a line through points at nearly one place is noise."""
LEAST_SPREAD = 1e-5
"""Of the squared range of x: with less there is no slope to see."""


def lowess(x: FloatArray, y: FloatArray, span: float = SPAN) -> FloatArray:
    """Smoothed values at every x, by weighted straight lines through the nearest points.

    W. Cleveland, "Robust locally weighted regression and smoothing scatterplots", Journal of the American
    Statistical Association 74 (1979).

    Examples
    --------
    >>> x = np.arange(6.0)
    >>> lowess(x, 2 * x + 1).round(6).tolist()
    [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    """
    near = max(int(np.ceil(span * len(x))), min(3, len(x)))
    gaps = np.abs(x[:, np.newaxis] - x)
    width = np.maximum(np.sort(gaps, axis=1)[:, near - 1], NARROWEST * float(np.ptp(x)) or 1.0)
    local = np.clip(1 - (gaps / width[:, np.newaxis] * 0.999) ** 3, 0, None) ** 3
    trust = np.ones(len(x))
    smooth = y.copy()
    for _ in range(ROBUST_STEPS + 1):
        smooth = np.array([_line_at(x[i], x, y, local[i] * trust) for i in range(len(x))])
        residual = np.abs(y - smooth)
        scale = 6 * float(np.median(residual))
        if scale <= 1e-12 * float(np.abs(y).max(initial=0.0)):
            break
        trust = np.clip(1 - (residual / scale) ** 2, 0, None) ** 2
    return smooth


def _line_at(at: float, x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """The value at one place of the weighted least-squares line; the mean where there is no slope to see."""
    total = weights.sum()
    if total <= 0:
        return float(y.mean())
    middle, height = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * (x - middle) ** 2).sum()
    if spread <= LEAST_SPREAD * total * float(np.ptp(x)) ** 2:
        return float(height)
    return float(height + (weights * (x - middle) * y).sum() / spread * (at - middle))

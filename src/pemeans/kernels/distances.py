"""Distances of points to a few centers, in floating point: for predictions, not for private releases."""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import FloatArray


def squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Squared Euclidean distances, one column a center.

    By differences, center by center: no cancellation, and no row's figure depends on the other rows.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    squared = np.empty((len(points), len(centers)))
    for i, center in enumerate(centers):
        gap = points - center
        squared[:, i] = np.einsum("ij,ij->i", gap, gap)
    return squared

"""The paper's two measures of a clustering, computed by the judge and not by the contestants."""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import FloatArray, IntArray

BLOCK_SCORES = 1 << 20
"""Scores in a block (8 MiB): what fits into a cache need not go through memory."""


def nearest_centers(X: FloatArray, centers: FloatArray) -> IntArray:
    """The number of each row's nearest center, by blocks of one matrix product each.

    Examples
    --------
    >>> nearest_centers(np.array([[0.0], [3.0]]), np.array([[2.5], [0.5]])).tolist()
    [1, 0]
    """
    half = (centers**2).sum(axis=1) / 2
    columns = np.ascontiguousarray(centers.T)
    labels = np.empty(len(X), dtype=np.int64)
    step = max(1, BLOCK_SCORES // len(centers))
    for start in range(0, len(X), step):
        score = X[start : start + step] @ columns
        score -= half
        labels[start : start + step] = score.argmax(axis=1)
    return labels


def mean_loss(X: FloatArray, centers: FloatArray, labels: IntArray) -> float:
    """Mean squared distance of the rows to their centers; by differences, as products would cancel.

    Examples
    --------
    >>> mean_loss(np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]]), np.array([0, 1]))
    0.5
    """
    gap = X - centers[labels]
    return float(np.einsum("ij,ij->", gap, gap) / len(X))


def label_accuracy(labels: IntArray, truth: IntArray, k: int) -> float:
    """Every center takes the majority label of its rows: the share of rows that are labeled right so.

    Rows without a true label (negative) are left out.

    Examples
    --------
    >>> label_accuracy(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 7]), k=2)
    0.75
    """
    known = truth >= 0
    names, codes = np.unique(truth[known], return_inverse=True)
    counts = np.bincount(labels[known] * len(names) + codes, minlength=k * len(names))
    return float(counts.reshape(k, len(names)).max(axis=1).sum() / known.sum())

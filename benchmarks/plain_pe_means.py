"""Algorithm 1 of the paper in plain NumPy, faiss and scikit-learn: what our fit is measured by.

It follows the paper line by line, in floating point, with noise from a seeded generator, and so without the
promises of the package: its votes are not row-local and its noise is not exact.
"""

from __future__ import annotations

import warnings
from math import floor, gamma, pi, sin, sqrt

import faiss
import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from pemeans.kernels.grid import FloatArray
from pemeans.privacy.accounting import mu_of

GAMMA, BETA = 0.01, 1.75
MOST_CANDIDATES = 1 << 14
STARTS = 10
PATIENCE = 100


def plain_pe_means(X: FloatArray, k: int, epsilon: float, delta: float, seed: int) -> FloatArray:
    """k centers in the unit ball."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    rounds = max(floor(4 * sqrt(d) * max(epsilon, 1)), 1)
    sigma = sqrt(rounds) / mu_of(epsilon, delta)
    variations = max(min(n // (5 * k), MOST_CANDIDATES // k - 1), 4)
    population = packed(k * (variations + 1), d, rng)
    rows = X.astype(np.float32)
    for number in range(rounds):
        votes = count_votes(rows, population) + np.rint(sigma * rng.standard_normal(len(population)))
        cleaned = largest(votes, n)
        centers = survivors(population, cleaned, votes, k, rng)
        if (cleaned**2).sum() / (len(cleaned) * sigma**2) < 1:
            variations = max(variations // 2, min(variations, 4))
        if number < rounds - 1:
            population = np.concatenate([centers, varied(centers, variations, rng)])
    return centers


def packed(size: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Sphere packing in the unit ball."""
    a = 0.5
    while True:
        accepted = np.empty((size, d))
        count = rejected = 0
        while count < size and rejected < PATIENCE:
            direction = rng.standard_normal(d)
            point = direction / np.linalg.norm(direction) * rng.random() ** (1 / d) * (1 - a)
            if count and ((accepted[:count] - point) ** 2).sum(axis=1).min() < (2 * a) ** 2:
                rejected += 1
                continue
            accepted[count] = point
            count, rejected = count + 1, 0
        if count == size:
            return accepted
        a /= 2


def count_votes(rows: npt.NDArray[np.float32], population: FloatArray) -> FloatArray:
    """Every row votes for its nearest candidate."""
    index = faiss.IndexFlatL2(population.shape[1])
    index.add(population.astype(np.float32))
    _, nearest = index.search(rows, 1)
    return np.bincount(nearest[:, 0], minlength=len(population)).astype(np.float64)


def largest(votes: FloatArray, total: int) -> FloatArray:
    """The smallest leading set of votes whose sum exceeds `total`; the others become zero."""
    order = np.argsort(-votes)
    exceeds = np.cumsum(votes[order]) > total
    kept = int(exceeds.argmax()) + 1 if exceeds.any() else int((votes > 0).sum())
    cleaned = np.zeros_like(votes)
    cleaned[order[:kept]] = votes[order[:kept]]
    return cleaned


def survivors(
    population: FloatArray, cleaned: FloatArray, votes: FloatArray, k: int, rng: np.random.Generator
) -> FloatArray:
    """Weighted k-means of the candidates that kept votes; the top ones where they are too few."""
    voted = cleaned > 0
    if voted.sum() < k:
        return population[np.argsort(-votes)[:k]]
    kmeans = KMeans(k, n_init=STARTS, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        centers: FloatArray = kmeans.fit(population[voted], sample_weight=cleaned[voted]).cluster_centers_
    return centers


def varied(centers: FloatArray, copies: int, rng: np.random.Generator) -> FloatArray:
    """Levy flights by Mantegna's algorithm, pulled back into the ball."""
    shape = (copies * len(centers), centers.shape[1])
    scale = gamma(1 + BETA) * sin(pi * BETA / 2) / (gamma((1 + BETA) / 2) * BETA * 2 ** ((BETA - 1) / 2))
    steps = (
        scale ** (1 / BETA) * rng.standard_normal(shape) / np.abs(rng.standard_normal(shape)) ** (1 / BETA)
    )
    moved = np.tile(centers, (copies, 1)) + GAMMA * steps
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1.0))

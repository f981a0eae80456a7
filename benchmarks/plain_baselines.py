"""The baselines once more, in plain NumPy, from their description alone: for `baselines_against_peers.py`.

Floating-point noise, no curator, no grid: nothing is shared with `pemeans.baselines`, so equal mean losses
say that both do what was described. ``FastLloyd as published`` has the defects of the code that the paper
ran: one seed for the noise of sums and of counts, which is that of all runs in the first step; noise for
coordinates of the data only, though centers are anywhere in the box; division by negative counts. None of
this is private in a machine; it is for study only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
from dp_accounting import ComposedDpEvent, GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from sklearn.cluster import KMeans

ALPHA, RHO = 0.8, 0.225
DEPTH, COUNT_NOISE = 20, 20.0
DISCRETIZATION = 1e-4

Floats = npt.NDArray[np.float64]
Plain = Callable[[Floats, int, float, np.random.Generator, int], Floats]
"""From rows, clusters, epsilon, generator and number of the seed to centers."""


def analytic_gaussian(epsilon: float, delta: float) -> float:
    """The standard deviation for sensitivity 1 (Balle & Wang 2018)."""

    def excess(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return float(ndtr(a - b) - np.exp(epsilon + log_ndtr(-a - b)) - delta)

    return float(brentq(excess, 1e-3, 1e4))


def packed(k: int, d: int, half: float, rng: np.random.Generator) -> Floats:
    """Sphere packing in a box, one candidate after another."""
    a = half
    while True:
        accepted: list[Floats] = []
        rejected = 0
        while len(accepted) < k and rejected < 100:
            candidate = rng.uniform(a - half, half - a, size=d)
            if all(np.linalg.norm(other - candidate) >= 2 * a for other in accepted):
                accepted.append(candidate)
                rejected = 0
            else:
                rejected += 1
        if len(accepted) == k:
            return np.array(accepted)
        a /= 2


def nearest(rows: Floats, centers: Floats) -> npt.NDArray[np.intp]:
    return np.asarray(((centers**2).sum(axis=1) - 2 * rows @ centers.T).argmin(axis=1))


def folded(points: Floats, half: float) -> Floats:
    along = np.mod(points + half, 4 * half)
    return np.asarray(np.where(along > 2 * half, 4 * half - along, along) - half)


def fast_lloyd(
    rows: Floats, k: int, epsilon: float, rng: np.random.Generator, steps: int | None, half: float
) -> Floats:
    """FastLloyd, by its authors' rule if `steps` is None."""
    n, d = rows.shape
    steps = steps or own_rule(n, d, k, epsilon)
    centers = packed(k, d, half, rng)
    for step in range(steps):
        trust = trusted(step, k, d, half)
        longest = min(trust, 1 + float(np.linalg.norm(centers, axis=1).max()))
        sums, counts = residuals(rows, centers, trust)
        for_sums, for_counts = lloyd_noise(rows, epsilon, steps, longest)
        counts = np.maximum(counts + np.trunc(for_counts * rng.standard_normal(k)), 1)
        moves = (sums + for_sums * rng.standard_normal(sums.shape)) / counts[:, np.newaxis]
        centers = folded(centers + shortened(moves, trust), half)
    return centers


def fast_lloyd_as_published(
    rows: Floats, k: int, epsilon: float, rng: np.random.Generator, seed: int
) -> Floats:
    """What the paper ran: six steps in the box [-1, 1], with the defects named above."""
    d = rows.shape[1]
    widest = 2 * float(np.abs(rows).max()) * d**0.5
    centers = packed(k, d, 1.0, rng)
    for step in range(6):
        trust = trusted(step, k, d, 1.0)
        sums, counts = residuals(rows, centers, trust)
        sums[counts == 0] = 0
        counts[counts == 0] = 1
        for_sums, for_counts = lloyd_noise(rows, epsilon, 6, min(widest, trust))
        sums += for_sums * np.random.RandomState(seed * step).normal(size=(k, d))
        counts += np.trunc(for_counts * np.random.RandomState(seed * step).normal(size=k))
        moves = (sums + counts[:, np.newaxis] * centers) / (counts[:, np.newaxis] + 1e-9) - centers
        centers = folded(centers + shortened(moves, trust), 1.0)
    return centers


def own_rule(n: int, d: int, k: int, epsilon: float) -> int:
    sigma = analytic_gaussian(epsilon, 1 / (n * np.log(n)))
    reach = 2 * d**0.5 * ALPHA / (2 * k ** (1 / d))
    useful = 0.016 * n**2 / (k**3 * reach**2 * (1 + (4 * d) ** 0.5) ** 2 * sigma**2)
    return int(min(max(useful, 2), 7))


def trusted(step: int, k: int, d: int, half: float) -> float:
    return float(half * d**0.5 * (1 if step == 0 else ALPHA / k ** (1 / d)))


def residuals(rows: Floats, centers: Floats, trust: float) -> tuple[Floats, Floats]:
    """Sums of residuals and counts, without rows that are too far away."""
    labels = nearest(rows, centers)
    gaps = rows - centers[labels]
    near = (gaps**2).sum(axis=1) <= trust**2
    sums = np.zeros_like(centers)
    np.add.at(sums, labels[near], gaps[near])
    return sums, np.bincount(labels[near], minlength=len(centers)).astype(np.float64)


def lloyd_noise(rows: Floats, epsilon: float, steps: int, longest: float) -> tuple[float, float]:
    """Standard deviations for sums and for counts."""
    n, d = rows.shape
    each = analytic_gaussian(epsilon, n**-1.1) * steps**0.5
    weight = (1 + (4 * d) ** 0.5) ** 0.5
    return each * longest * weight / (4 * d) ** 0.25, each * weight


def shortened(moves: Floats, longest: float) -> Floats:
    lengths = np.linalg.norm(moves, axis=1, keepdims=True)
    return np.asarray(moves * np.minimum(1, longest / np.maximum(lengths, 1e-300)))


def dp_lloyd(rows: Floats, k: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Lloyd's steps with Laplace noise, folded into the box."""
    n, d = rows.shape
    half = float(np.abs(rows).max())
    weight = (4 * d * RHO**2) ** (1 / 3)
    steps = int(max(min(epsilon / (500 * k**3 / n**2 * (d + weight) ** 3) ** 0.5, 7), 2))
    each = epsilon / steps / (d + weight)
    centers = packed(k, d, half, rng)
    for _ in range(steps):
        labels = nearest(rows, centers)
        for j in range(k):
            mine = rows[labels == j]
            count = len(mine) + two_sided(1 / (each * weight), rng)
            count = 1 - count if count < 1 else count
            noisy = mine.sum(axis=0) + rng.laplace(0, half / each, d)
            centers[j] = folded(noisy / count, half)
    return centers


def two_sided(scale: float, rng: np.random.Generator) -> int:
    """Discrete Laplace noise."""
    p = 1 - np.exp(-1 / scale)
    return int(rng.geometric(p) - rng.geometric(p))


def lsh(rows: Floats, k: int, epsilon: float, rng: np.random.Generator, starts: int) -> Floats:
    """A tree of hyperplanes by recursion over lists of rows, with a public number of rows."""
    n, d = rows.shape
    noise = lsh_noise(epsilon, n**-1.1)
    least = max(1, min(int(10 * d**0.5 * noise), n // (2 * k)))
    bits = rows @ rng.standard_normal((d, DEPTH)) < 0

    def leaves(mine: npt.NDArray[np.intp], count: int, depth: int) -> list[tuple[Floats, int]]:
        found: list[tuple[Floats, int]] = []
        if depth < DEPTH and count >= 3 * least:
            for bit in (False, True):
                child = mine[bits[mine, depth] == bit]
                seen = len(child) + two_sided(COUNT_NOISE * noise, rng)
                if seen >= least:
                    found += leaves(child, seen, depth + 1)
        return found or [((rows[mine].sum(axis=0) + rng.normal(0, noise, d)) / count, count)]

    tree = leaves(np.arange(n), n, 0)
    points = np.array([point for point, _ in tree])
    points /= np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True))
    final = KMeans(min(k, len(points)), n_init=starts, random_state=int(rng.integers(2**31)))
    return np.asarray(final.fit(points, sample_weight=[count for _, count in tree]).cluster_centers_)


@cache
def lsh_noise(epsilon: float, delta: float) -> float:
    """Google's calibration: one Gaussian release and twenty of discrete Laplace noise 20 times that."""

    def excess(noise: float) -> float:
        counts = SelfComposedDpEvent(DiscreteLaplaceDpEvent(1 / (COUNT_NOISE * noise), 1), DEPTH)
        accountant = PLDAccountant(value_discretization_interval=DISCRETIZATION)
        accountant.compose(ComposedDpEvent([GaussianDpEvent(noise), counts]))
        return float(accountant.get_epsilon(delta)) - epsilon

    least = analytic_gaussian(epsilon, delta)
    return float(brentq(excess, least * 0.999, 4 * least, xtol=1e-4 * least))


PLAIN: dict[str, tuple[str, Plain]] = {
    "plain LSH": ("google_lsh", lambda rows, k, epsilon, rng, _: lsh(rows, k, epsilon, rng, 10)),
    "plain LSH, 1 start": ("google_lsh", lambda rows, k, epsilon, rng, _: lsh(rows, k, epsilon, rng, 1)),
    "plain FastLloyd": (
        "fastlloyd",
        lambda rows, k, epsilon, rng, _: fast_lloyd(rows, k, epsilon, rng, None, float(np.abs(rows).max())),
    ),
    "plain FastLloyd, 6 steps, box 1": (
        "fastlloyd",
        lambda rows, k, epsilon, rng, _: fast_lloyd(rows, k, epsilon, rng, 6, 1.0),
    ),
    "plain FastLloyd as published": ("fastlloyd", fast_lloyd_as_published),
    "plain DPLloyd": ("dp_lib", lambda rows, k, epsilon, rng, _: dp_lloyd(rows, k, epsilon, rng)),
}
"""The column of the paper's table, and the method."""

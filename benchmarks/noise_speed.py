"""Time of one discrete Gaussian draw, ours against OpenDP's, in the same process.

Ours is timed per call, each with a sigma never seen before, so that building the table is paid every time. Of
OpenDP, one call with a thousand draws is timed. All figures are medians over several calls; the ratio
is OpenDP's time to ours with system bits.

Run it as ``python benchmarks/noise_speed.py``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import opendp.prelude as dp

from pemeans.privacy.bits import Bits, SeededBits, SystemBits
from pemeans.privacy.noise import NoiseSampler

SIGMAS = {"0.7": 0.7, "16": 16.0, "200": 200.0, "2^20": 2.0**20, "2^36": 2.0**36}
SIZES = (5_000, 100_000)
OPENDP_SIZE = 1_000


def nanoseconds(draw: Callable[[int], object], size: int, calls: int) -> float:
    """Return the median time of ``draw(0), draw(1), ...`` divided by ``size``."""
    times = []
    for call in range(calls):
        start = time.perf_counter_ns()
        draw(call)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / size


def ours(bits: Bits, sigma: float, size: int) -> float:
    sampler = NoiseSampler(bits)
    return nanoseconds(lambda call: sampler.gaussian(sigma * (1 + call / 4096), size), size, calls=40)


def theirs(sigma: float) -> float:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    mechanism = dp.m.make_gaussian(*space, scale=sigma)
    zeros = [0] * OPENDP_SIZE
    return nanoseconds(lambda _: mechanism(zeros), OPENDP_SIZE, calls=5)


def main() -> None:
    dp.enable_features("contrib")
    print("nanoseconds per draw\n")
    print(f"{'sigma':>6} {'size':>8} {'system bits':>12} {'seeded bits':>12} {'OpenDP':>8} {'ratio':>6}")
    for name, sigma in SIGMAS.items():
        peer = theirs(sigma)
        for size in SIZES:
            system, seeded = ours(SystemBits(), sigma, size), ours(SeededBits(0), sigma, size)
            print(f"{name:>6} {size:>8,} {system:>12.0f} {seeded:>12.0f} {peer:>8.0f} {peer / system:>5.0f}x")


if __name__ == "__main__":
    main()

"""Time of one discrete Gaussian draw, ours against OpenDP's, in turns in one process.

Ours is timed per call, each with a sigma never seen before, so that building the table is paid every time. Of
OpenDP, one call with a thousand draws is timed. All figures are medians over several calls, in processor
time; the ratio is OpenDP's time to ours with system bits.

Run it as ``python benchmarks/speed_noise.py``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import opendp.prelude as dp

from measuring import Cost, goal_line, measured, table
from pemeans.privacy.bits import Bits, SeededBits, SystemBits
from pemeans.privacy.noise import NoiseSampler

SIGMAS = {"0.7": 0.7, "16": 16.0, "200": 200.0, "2^20": 2.0**20, "2^36": 2.0**36}
SIZES = (5_000, 100_000)
OPENDP_SIZE = 1_000
GOAL = 0.3
"""Microseconds a draw, for the first of the sizes."""


def microseconds(draw: Callable[[int], object], size: int, calls: int) -> Cost[float]:
    """The median processor time of ``draw(0), draw(1), ...`` over `size`, and the memory of all."""

    def all_calls() -> float:
        times = []
        for call in range(calls):
            start = time.process_time_ns()
            draw(call)
            times.append(time.process_time_ns() - start)
        return statistics.median(times) / size / 1e3

    return measured(all_calls)


def ours(bits: Bits, sigma: float, size: int) -> Cost[float]:
    sampler = NoiseSampler(bits)
    return microseconds(lambda call: sampler.gaussian(sigma * (1 + call / 4096), size), size, calls=40)


def theirs(sigma: float) -> Cost[float]:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    mechanism = dp.m.make_gaussian(*space, scale=sigma)
    zeros = [0] * OPENDP_SIZE
    return microseconds(lambda _: mechanism(zeros), OPENDP_SIZE, calls=5)


def main() -> str:
    dp.enable_features("contrib")
    columns = ["sigma", "draws at once", "system bits, us", "seeded bits, us", "OpenDP, us"]
    columns += ["times faster", "ours, MiB", "OpenDP, MiB"]
    shown, slowest = [], 0.0
    for name, sigma in SIGMAS.items():
        peer = theirs(sigma)
        for size in SIZES:
            system, seeded = ours(SystemBits(), sigma, size), ours(SeededBits(0), sigma, size)
            slowest = max(slowest, system.result) if size == SIZES[0] else slowest
            times = (f"{cost.result:.3f}" for cost in (system, seeded, peer))
            faster = f"{peer.result / system.result:.0f}"
            shown.append([name, f"{size:,}", *times, faster, f"{system.mib:.0f}", f"{peer.mib:.0f}"])
    goal = goal_line(
        f"Noise, microseconds a draw at {SIZES[0]:,} draws, tables built anew", slowest, GOAL, "at most"
    )
    return table(columns, shown) + "\n\n" + goal


if __name__ == "__main__":
    print(main())

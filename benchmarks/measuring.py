"""What the speed benchmarks share: the clock, the memory gauge, and a description of the machine."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

PEAK, NOW = "VmHWM", "VmRSS"
PACKAGES = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "pyarrow", "opendp")
Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True)
class Cost(Generic[Result_co]):
    """What a call returned, the least time it took, and how much memory it needed beside what was there."""

    result: Result_co
    seconds: float
    mib: float


def measured(
    call: Callable[[], Result_co], repeats: int = 1, clock: Callable[[], float] = time.process_time
) -> Cost[Result_co]:
    """The fastest of several calls, by processor time: on one thread a busy machine matters little then."""
    seconds = []
    give_back()
    before = memory(NOW)
    forget_peak()
    for _ in range(repeats):
        start = clock()
        result = call()
        seconds.append(clock() - start)
    return Cost(result, min(seconds), max(memory(PEAK) - before, 0.0))


def give_back() -> None:
    """Free memory goes back to the system: what is needed later shows in the peak."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def memory(what: str) -> float:
    """Resident memory of this process in MiB: now, or at its peak."""
    found = re.search(rf"{what}:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def forget_peak() -> None:
    """The peak starts anew from here, where the system lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def geometric_mean(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def machine() -> str:
    """What these figures belong to: the processor and the versions; nothing that names the machine."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    model = found[1] if found else platform.processor()
    with open("/proc/meminfo") as file:
        gib = int(file.readline().split()[1]) / 2**20
    versions = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)]
    return f"{model}, {os.cpu_count()} cores, {gib:.0f} GiB; {', '.join(versions)}."


def table(columns: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    columns = list(columns)
    rules = ["---"] + ["---:"] * (len(columns) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rules, *lines))


def goal_line(name: str, value: float, goal: float, wanted: str) -> str:
    """One figure beside its goal, and whether it is met; `wanted` is "at most" or "at least"."""
    met = value <= goal if wanted == "at most" else value >= goal
    return f"- {name}: **{value:.3g}** (goal: {wanted} {goal:g}): {'met' if met else 'NOT MET'}."

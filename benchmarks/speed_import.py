"""How long a fresh process waits: for imports, and for the first fit. Prints a table, in a minute or less.

Each line is the fastest of several processes, taken in turns; an empty process is subtracted nowhere. What
scikit-learn needs by itself is shown for comparison: our estimators build on `sklearn.base`, and `import
pemeans` alone does not import it yet.

Run it as ``python benchmarks/speed_import.py [REPEATS]``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass

from measuring import goal_line, table

PROGRAMS = {
    "nothing": "pass",
    "import pemeans": "import pemeans",
    "import sklearn.base": "import sklearn.base",
    "from pemeans import DPKMeans": "from pemeans import DPKMeans",
    "first fit of 20,000 rows by 16 columns, k = 16, imports included": """
import warnings
import numpy as np
from pemeans import Domain, DPKMeans
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(-9, 9, (16, 16))[rng.integers(16, size=20_000)] + rng.standard_normal((20_000, 16))
DPKMeans(16, domain=Domain.box(-15, 15)).fit(X)
""",
}
TELL_MEMORY = "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
GOALS = {
    "import pemeans": 0.5,
    "first fit of 20,000 rows by 16 columns, k = 16, imports included": 5.0,
}
"""Processor seconds."""


@dataclass(frozen=True)
class Run:
    """Seconds that passed, seconds of processor, and the largest memory of a process."""

    seconds: float
    processor: float
    mib: float


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: str) -> Run:
    """A fresh process that runs this and tells its memory itself: others count their parent's, too."""
    used, start = processor_seconds(), time.perf_counter()
    command = [sys.executable, "-c", f"{program}\n{TELL_MEMORY}"]
    kib = int(subprocess.run(command, check=True, capture_output=True).stdout)
    return Run(time.perf_counter() - start, processor_seconds() - used, kib / 1024)


def main(repeats: int = 5) -> str:
    runs: dict[str, list[Run]] = {name: [] for name in PROGRAMS}
    for _ in range(repeats):
        for name, program in PROGRAMS.items():
            runs[name].append(run(program))
    least = {name: min(run.processor for run in found) for name, found in runs.items()}
    shown = [
        [
            name,
            f"{min(run.seconds for run in found):.2f}",
            f"{least[name]:.2f}",
            f"{max(run.mib for run in found):.0f}",
        ]
        for name, found in runs.items()
    ]
    goals = [
        goal_line(f"Processor seconds, {name}", least[name], goal, "at most") for name, goal in GOALS.items()
    ]
    columns = ["in a fresh process", "seconds", "processor seconds", "MiB"]
    return table(columns, shown) + "\n\n" + "\n".join(goals)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))

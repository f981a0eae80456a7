"""How long a fresh process waits: for imports, and for the first fit. Prints a table, in a minute or less.

Each line is the fastest of several processes, taken in turns; an empty process is subtracted nowhere. What
scikit-learn needs by itself is shown for comparison: our estimators build on `sklearn.base`.

Run it as ``python benchmarks/speed_import.py [REPEATS]``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

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
GOALS = {"import pemeans": 0.5, "from pemeans import DPKMeans": 0.5}
FIRST_FIT_GOAL = 5.0


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(program: str) -> tuple[float, float]:
    """Seconds that pass, and seconds of processor, until a process has run this."""
    used, start = processor_seconds(), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start, processor_seconds() - used


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in range(repeats):
        for name, program in PROGRAMS.items():
            runs[name].append(run(program))
    print("| in a fresh process | seconds | processor seconds | goal |")
    print("| --- | --- | --- | --- |")
    for name, found in runs.items():
        seconds, used = (min(column) for column in zip(*found, strict=True))
        goal = GOALS.get(name, FIRST_FIT_GOAL if "fit" in name else None)
        print(f"| {name} | {seconds:.2f} | {used:.2f} | {'' if goal is None else f'{goal:g}'} |")


if __name__ == "__main__":
    main()

"""All speed figures that need no idle machine, as one table file: what `make bench-speed` runs.

Votes, fits, noise, growth, and what a fresh process waits for; peers are run beside ours in the same process.
Data sets that have to be fetched, or that are nowhere to be found, are left out.

Run it as ``python benchmarks/speed.py`` (under ten minutes) or with ``--full``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import speed_fit
import speed_growth
import speed_import
import speed_noise
import speed_votes
from measuring import machine
from pemeans.bench.datasets import reachable
from pemeans.bench.registry import TABLE1

SPEED = Path(__file__).parent / "results" / "speed.md"
SLOW = ("mnist",)
"""The plain implementation needs minutes for them; they are left to the full form."""
ABOUT = """# Speed

Written by `python benchmarks/speed.py{arguments}`{form}. {machine}

Seconds are those of the processor, on one thread, unless said otherwise. MiB are what a call needs at its
peak, beside what was there. The data sets are those of the paper's Table 1{missing}.
"""


def sections(full: bool, datasets: tuple[str, ...]) -> dict[str, Callable[[], str]]:
    """What is measured, by headings."""
    plan = speed_growth.FULL if full else speed_growth.SHORT
    plain = tuple(name for name in datasets if full or name not in SLOW)
    return {
        "Votes beside nearest-neighbor searches": lambda: speed_votes.main(datasets),
        "PEMeans beside a plain implementation": lambda: speed_fit.main("plain", plain),
        "DPKMeans beside k-means without privacy": lambda: speed_fit.main("kmeans", datasets),
        "Noise beside OpenDP": speed_noise.main,
        "Growth": lambda: speed_growth.growth(plan),
        "A fresh process": speed_import.main,
    }


def document(full: bool) -> str:
    """The whole file."""
    datasets = tuple(name for name in TABLE1 if reachable(name) in ("folder", "cache", "generator"))
    missing = ", without " + ", ".join(sorted(set(TABLE1) - set(datasets))) if datasets != TABLE1 else ""
    form = " (the full form)" if full else " (the quick form)"
    arguments = " --full" if full else ""
    parts = [ABOUT.format(arguments=arguments, form=form, machine=machine(), missing=missing)]
    for heading, section in sections(full, datasets).items():
        start = time.process_time()
        parts.append(f"## {heading}\n\n{section()}\n")
        print(f"{heading}: {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all data sets and sizes")
    parser.add_argument("--out", type=Path, default=SPEED, help="the file to write")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    asked.out.write_text(document(asked.full), encoding="utf-8")
    print(asked.out)


if __name__ == "__main__":
    main()

"""Rows larger than memory: a fit of Parquet files and of a memmap beside a fit of the same rows in memory.

Writes made-up rows to a temporary folder (twice, 5 GB by default), fits them in processes of their own, in
turns, and deletes them. Prints a table: seconds, processor seconds, peak memory, and whether what was
released is the same to the last bit.

Run it as ``python benchmarks/streaming.py`` (``--help`` lists its parameters).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, CLUSTERS = 16, 64
CHUNK = 500_000
FILES = 10
LIMIT_GIB, LEAST_SPEED = 1.5, 0.6
WAYS = ("memory", "parquet", "memmap")
METHODS: dict[str, dict[str, Any]] = {
    "DPKMeans": {},
    "PEMeans": {"n_iterations": 3, "max_candidates": 1024},
}
"""PEMeans with fewer candidates than by default, so that reading counts for more, not for less."""


def make(folder: Path, n_rows: int) -> None:
    """The same rows as Parquet files and as plain numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    centers = np.random.default_rng(0).uniform(-10, 10, (CLUSTERS, COLUMNS))
    (folder / "parquet").mkdir()
    mapped = np.memmap(folder / "rows.bin", dtype=np.float64, mode="w+", shape=(n_rows, COLUMNS))
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(COLUMNS)])
    per_file = -(-n_rows // FILES)
    for i, first in enumerate(range(0, n_rows, per_file)):
        with pq.ParquetWriter(folder / "parquet" / f"{i}.parquet", schema) as file:
            for start in range(first, min(first + per_file, n_rows), CHUNK):
                rng = np.random.default_rng(start + 1)
                size = min(start + CHUNK, first + per_file, n_rows) - start
                rows = centers[rng.integers(CLUSTERS, size=size)] + rng.standard_normal((size, COLUMNS))
                mapped[start : start + size] = rows
                file.write_table(pa.table([np.ascontiguousarray(c) for c in rows.T], schema=schema))
    mapped.flush()


def fit(way: str, method: str, folder: Path, n_rows: int, n_jobs: int) -> None:
    """One fit, in this process; prints what it took as JSON."""
    import pemeans

    warnings.simplefilter("ignore")
    path = folder / "rows.bin"
    data: Any = folder / "parquet"
    if way == "memory":
        data = np.fromfile(path).reshape(n_rows, COLUMNS)
    elif way == "memmap":
        data = np.memmap(path, mode="r", shape=(n_rows, COLUMNS), dtype=np.float64)
    model = getattr(pemeans, method)(
        CLUSTERS, domain=pemeans.Domain.box(-15, 15), random_state=0, n_jobs=n_jobs, **METHODS[method]
    )
    start, used = time.perf_counter(), time.process_time()
    model.fit(data)
    took, used = time.perf_counter() - start, time.process_time() - used
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 2**20  # type: ignore[index]
    released = hashlib.sha256(model.cluster_centers_.tobytes() + model.cluster_sizes_.tobytes()).hexdigest()
    print(json.dumps({"seconds": took, "cpu": used, "gib": peak, "released": released}))


def measure(way: str, method: str, folder: Path, n_rows: int, n_jobs: int) -> dict[str, Any]:
    """One fit in a process of its own."""
    command = [sys.executable, __file__, "--fit", way, method, str(folder)]
    command += ["--rows", str(n_rows), "--jobs", str(n_jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    print(
        f"  {method} {way}: {result['seconds']:.1f} s, {result['gib']:.2f} GiB", file=sys.stderr, flush=True
    )
    return result


def lines(method: str, runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The table's lines of one method: the fastest of the repeats, and the largest memory."""
    found = []
    memory = {key: min(run[key] for run in runs["memory"]) for key in ("seconds", "cpu")}
    for way, all_runs in runs.items():
        seconds, cpu = (min(run[key] for run in all_runs) for key in ("seconds", "cpu"))
        peak = max(run["gib"] for run in all_runs)
        same = len({run["released"] for run in (*runs["memory"], *all_runs)}) == 1
        found.append(
            f"| {method} | {way} | {seconds:.1f} | {memory['seconds'] / seconds:.2f} | {cpu:.1f} "
            f"| {memory['cpu'] / cpu:.2f} | {peak:.2f} | {'yes' if same else 'NO'} |"
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fit", nargs=3, metavar=("WAY", "METHOD", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit:
        way, method, folder = asked.fit
        fit(way, method, Path(folder), asked.rows, asked.jobs)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        make(folder, asked.rows)
        print(f"{asked.rows:,} rows of {COLUMNS} columns, k = {CLUSTERS}, n_jobs = {asked.jobs}\n")
        print("| method | rows in | seconds | speed | processor s | speed by these | peak GiB | same bits |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for method in asked.methods:
            runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for _ in range(asked.repeats):
                for way in WAYS:
                    runs[way].append(measure(way, method, folder, asked.rows, asked.jobs))
            print("\n".join(lines(method, runs)), flush=True)
    print(f"\nGoals: speed at least {LEAST_SPEED}, peak below {LIMIT_GIB} GiB.")


if __name__ == "__main__":
    main()

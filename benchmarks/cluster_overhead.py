"""Dask and Spark beside memory: what a release costs beyond the kernel, bytes sent, and the driver's memory.

Writes made-up rows as Parquet files to a temporary folder. Then each engine, on two workers of this machine
and in a process of its own, loads them into its memory, answers votes of several sizes, and fits; in turns,
so that other work on the machine hits all alike. Prints Markdown.

Bytes are counted on the loopback device, where workers and driver talk: other programs' bytes count too, so
run it as ``unshare --net sh -c 'ip link set lo up; python benchmarks/cluster_overhead.py'``. Spark's machines
hand rows to their own Python processes through sockets of the file system, which are not on that device.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from measuring import NOW, PEAK, forget_peak, goal_line, machine, memory, table

CLUSTERS = 16
CANDIDATES = (1, 256, 1024, 4096, 16384)
GOALS = {"dask": 1.3, "spark": 2.0}
ENGINES = ("memory", *GOALS)
ORDERS = ("first", "second")
"""Java compiles as it goes: after a whole fit a cluster is faster than after a few `votes`."""
DOMAIN = 15.0


def make(folder: Path, n_rows: int, columns: int, parts: int) -> None:
    """Clumps of rows in as many files as there are partitions."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    centers = np.random.default_rng(0).uniform(-10, 10, (CLUSTERS, columns))
    for part in range(parts):
        rng = np.random.default_rng(part + 1)
        size = n_rows // parts
        rows = centers[rng.integers(CLUSTERS, size=size)] + rng.standard_normal((size, columns))
        names = [f"x{j}" for j in range(columns)]
        pq.write_table(pa.table(list(rows.T), names=names), folder / f"{part}.parquet")


@contextmanager
def loaded(engine: str, folder: Path, parts: int) -> Iterator[Any]:
    """The rows in the engine's own memory, on two workers."""
    if engine == "memory":
        import pyarrow.parquet as pq

        yield pq.read_table(folder)
    elif engine == "dask":
        import dask.dataframe as dd
        from distributed import Client, LocalCluster, wait

        with (
            LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster),
        ):
            frame = dd.read_parquet(folder).persist()
            wait(frame)
            yield frame
    else:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        options = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.local.dir": str(folder.parent),
        }
        builder = SparkSession.builder.master("local-cluster[2,1,4096]").config("spark.executor.memory", "4g")
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        frame = session.read.parquet(str(folder)).repartition(parts).persist()
        frame.count()
        yield frame
        session.stop()


def family_seconds() -> float:
    """Processor seconds of this process and of all that came from it."""
    import psutil

    used = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.Error):  # it has just ended
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def bytes_on_loopback() -> int:
    found = re.search(r"lo:\s*(\d+)", Path("/proc/net/dev").read_text())
    return int(found[1]) if found else 0


@contextmanager
def metered() -> Iterator[dict[str, float]]:
    """Seconds, processor seconds of all processes, and bytes sent."""
    found: dict[str, float] = {}
    start, used, sent = time.perf_counter(), family_seconds(), bytes_on_loopback()
    yield found
    found["seconds"] = time.perf_counter() - start
    found["cpu"] = family_seconds() - used
    found["sent"] = bytes_on_loopback() - sent


def votes(data: Any, columns: int, repeats: int, sizes: list[int]) -> dict[str, dict[str, float]]:
    """What a release of votes costs, the fastest of several; for one candidate it is nearly all overhead."""
    from pemeans import Domain
    from pemeans.privacy.statistics import NearestVotes
    from pemeans.rows.base import open_source

    source = open_source(data, 2)
    rows = source.rows(Domain.box(-DOMAIN, DOMAIN).bind(source.n_rows, source.n_features), 2)
    found: dict[str, dict[str, float]] = {}
    for size in sizes:
        rng = np.random.default_rng(size)
        runs = []
        for _ in range(repeats + 1):
            candidates = rng.integers(-(2**20), 2**20, size=(size, columns)).astype(np.int32)
            with metered() as run:
                rows.total(NearestVotes(candidates))
            runs.append(run)
        # The first one also waits for the rows to be put on the grid.
        found[str(size)] = {key: min(run[key] for run in runs[1:]) for key in runs[0]}
    return found


def fit(method: str, data: Any) -> dict[str, Any]:
    """What a fit costs, and what it released."""
    import pemeans

    options: dict[str, Any] = {"n_iterations": 4} if method == "PEMeans" else {}
    domain = pemeans.Domain.box(-DOMAIN, DOMAIN)
    model = getattr(pemeans, method)(CLUSTERS, domain=domain, random_state=0, n_jobs=2, **options)
    forget_peak()
    before = memory(NOW)
    with metered() as run:
        model.fit(data)
    released = hashlib.sha256(model.cluster_centers_.tobytes() + model.cluster_sizes_.tobytes())
    grew = max(memory(PEAK) - before, 0.0)
    return {**run, "driver": grew, "released": released.hexdigest()}


def work(engine: str, folder: Path, asked: argparse.Namespace) -> None:
    """Everything about one engine, in this process; prints JSON."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"rows": asked.rows, "columns": asked.columns, "partitions": asked.partitions}
    with loaded(engine, folder, asked.partitions) as data:
        found["votes"] = votes(data, asked.columns, asked.repeats, asked.candidates)
        for method in asked.methods:
            found[method] = {order: fit(method, data) for order in ORDERS}
    print(json.dumps(found))


def run_engine(engine: str, folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--work", engine, str(folder), "--columns", str(asked.columns)]
    command += ["--repeats", str(asked.repeats), "--methods", *asked.methods]
    command += ["--rows", str(asked.rows), "--partitions", str(asked.partitions)]
    command += ["--candidates", *map(str, asked.candidates)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(engine, json.dumps(found), file=sys.stderr, flush=True)
    return found


def best(runs: list[dict[str, Any]], *path: str) -> float:
    """The least of a figure over the rounds."""
    found: list[Any] = [reduce(getitem, path, run) for run in runs]
    return float(min(found))


def show_releases(runs: dict[str, list[dict[str, Any]]], sizes: list[int]) -> None:
    columns = ["candidates"]
    columns += [f"{engine}: {what}" for engine in ENGINES for what in ("s", "processor s")]
    columns += [f"{engine}: KiB sent" for engine in GOALS]
    lines = []
    for size in map(str, sizes):
        line = [size]
        for engine in ENGINES:
            line += [f"{best(runs[engine], 'votes', size, key):.3f}" for key in ("seconds", "cpu")]
        lines.append(line + [f"{best(runs[engine], 'votes', size, 'sent') / 1024:.0f}" for engine in GOALS])
    print(table(columns, lines), end="\n\n")


def show_fits(runs: dict[str, list[dict[str, Any]]], methods: list[str]) -> None:
    columns = ["method", "fit", "engine", "s", "ratio", "processor s", "ratio", "MiB sent"]
    lines, goals = [], []
    for method, order in product(methods, ORDERS):
        same = len({run[method][order]["released"] for engine in ENGINES for run in runs[engine]}) == 1
        for engine in ENGINES:
            line = [method, order, engine]
            for key in ("seconds", "cpu"):
                took, least = (best(runs[name], method, order, key) for name in (engine, "memory"))
                line += [f"{took:.1f}", f"{took / least:.2f}"]
            sent = best(runs[engine], method, order, "sent")
            driver = max(run[method][order]["driver"] for run in runs[engine])
            lines.append([*line, f"{sent / 2**20:.0f}", f"{driver:.0f}", "yes" if same else "NO"])
            if engine in GOALS:
                what = f"{method} on {engine}, {order} fit"
                goals.append(goal_line(what, float(line[4]), GOALS[engine], "at most"))
    print(table([*columns, "driver's memory grew by MiB", "same bits"], lines), end="\n\n")
    print("\n".join(goals))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3, help="Releases of each size.")
    parser.add_argument("--rounds", type=int, default=1, help="Fits of each engine.")
    parser.add_argument("--methods", nargs="*", default=["DPKMeans", "PEMeans"])
    parser.add_argument("--candidates", type=int, nargs="*", default=list(CANDIDATES))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--work", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work[0], Path(asked.work[1]), asked)
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name) / "rows"
        folder.mkdir()
        make(folder, asked.rows, asked.columns, asked.partitions)
        runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
        for _ in range(asked.rounds):
            for engine in ENGINES:
                runs[engine].append(run_engine(engine, folder, asked))
    load = "/".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"{machine()} Load averages at the end: {load}.\n")
    print(
        f"{asked.rows:,} rows of {asked.columns} columns in {asked.partitions} partitions; k = {CLUSTERS}.\n"
    )
    show_releases(runs, asked.candidates)
    if asked.methods:
        show_fits(runs, asked.methods)


if __name__ == "__main__":
    main()

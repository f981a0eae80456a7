"""The command line on clusters: the model and labels that this machine alone gives, and one-line errors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import pemeans
from pemeans.cli import app
from pemeans.errors import ClusterError, DataError
from pemeans.rows import clusters

BOUNDS = ["--bounds", "age=0:120", "--bounds", "body.mass=10:60"]
FIT = ["fit", "visits", "-k", "2", *BOUNDS, "--seed", "1", "-q"]
SECRET = "91827364"


@pytest.fixture(autouse=True)
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files with a column of text that a fit leaves alone, and a name that Spark could misread."""
    monkeypatch.chdir(tmp_path)
    Path("visits").mkdir()
    rng = np.random.default_rng(0)
    for month in range(3):
        age, mass = rng.normal(rng.choice([25, 70], size=400), 5), rng.normal(25, 3, size=400)
        number = np.arange(400) + 400 * month
        table = {"ward": ["a", "b"] * 200, "number": number, "age": age, "body.mass": mass}
        pq.write_table(pa.table(table), f"visits/{month}.parquet")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask cluster of other processes, as an operator would start it."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def run_badly(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def check_same_as_here(*engine: str) -> None:
    """Fit and predict, here and there."""
    assert run(*FIT, "--out", "here.json").exit_code == 0
    assert run("predict", "here.json", "visits", "--out", "here.parquet").exit_code == 0
    there = run(*FIT, "--out", "there.json", *engine)
    assert there.exit_code == 0, there.output
    assert json.loads(Path("there.json").read_text()) == json.loads(Path("here.json").read_text())
    labeled = run("predict", "there.json", "visits", "--out", "labeled", *engine)
    assert labeled.exit_code == 0, labeled.output
    found = pq.read_table("labeled").sort_by("number")
    visits = pq.read_table("visits")
    assert found.drop("cluster").cast(visits.schema).equals(visits)
    assert found["cluster"].type == pa.int32()
    assert found["cluster"].to_pylist() == pq.read_table("here.parquet")["cluster"].to_pylist()


@pytest.mark.xdist_group("dask")
def test_dask_at_an_address(scheduler: str) -> None:
    check_same_as_here("--engine", "dask", "--address", scheduler)


@pytest.mark.xdist_group("dask")
def test_dask_started_here() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pemeans", *FIT, "--out", "m.json", "--engine", "dask", "--threads", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr  # the warning of the seed
    centers = pemeans.load("m.json").cluster_centers_
    assert run(*FIT, "--out", "here.json").exit_code == 0
    assert centers.tobytes() == pemeans.load("here.json").cluster_centers_.tobytes()


@pytest.mark.xdist_group("dask")
def test_dask_says_what_is_wrong(scheduler: str) -> None:
    there = ["--engine", "dask", "--address", scheduler]
    hole = pa.table({"age": [40.0, None], "body.mass": [float(SECRET), 20.0]})
    Path("holes").mkdir()
    pq.write_table(hole, "holes/0.parquet")
    (Path("visits") / "rows.csv").write_text(SECRET)
    for data, words in (
        ("holes", "missing value in column 'age'"),
        ("nowhere", "nowhere can't be read"),
        ("visits/rows.csv", "can't be read as Parquet"),
    ):
        error = run_badly("fit", data, *FIT[2:4], *BOUNDS, "--out", "m.json", *there)
        assert words in error
        assert SECRET not in error
    assert "no column 'agee'" in run_badly(
        "fit", "visits", "--bounds", "agee=0:120", "--out", "m.json", *there
    )
    assert "in memory" in run_badly(
        "fit", "visits", "--columns", "age", "--bounds-from-data", "-o", "m", *there
    )
    assert not Path("m.json").exists()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.mark.parametrize(
    ("engine", "scheme"), [("dask", "tcp://"), ("dask", ""), ("spark", "spark://"), ("spark", "sc://")]
)
def test_where_nobody_answers(engine: str, scheme: str) -> None:
    address = f"{scheme}127.0.0.1:{free_port()}"
    error = run_badly(*FIT, "--out", "m.json", "--engine", engine, "--address", address)
    assert f"--address {address}: no {engine} answers" in error


def test_who_answers_may_be_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "PATIENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        error = run_badly(*FIT, "--out", "m.json", "--engine", "dask", "--address", address)
    assert "no dask answers" in error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "tcp://host:8786"], "--address tcp://host:8786 of what?"),
        (
            ["--engine", "dask", "--address", "here"],
            "--address here is none of dask; write for example tcp://",
        ),
        (["--engine", "spark", "--address", "tcp://host:8786"], "none of spark"),
        (
            ["--engine", "dask", "--address", "tcp://host:8786", "--threads", "2"],
            "--threads 2 is for workers",
        ),
    ],
)
def test_options_that_do_not_fit(options: list[str], words: str) -> None:
    assert words in run_badly(*FIT, "--out", "m.json", *options)


@pytest.mark.parametrize(
    ("engine", "package", "extra"), [("dask", "dask.dataframe", "dask"), ("spark", "pyspark.sql", "spark")]
)
def test_an_extra_that_is_missing(
    engine: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = run_badly(*FIT, "--out", "m.json", "--engine", engine)
    assert f"pip install 'pemeans[{extra}]'" in error


def test_spark_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="Spark is an extra")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert "needs Java" in run_badly(*FIT, "--out", "m.json", "--engine", "spark")


def test_labels_do_not_overwrite() -> None:
    assert run(*FIT, "--out", "m.json").exit_code == 0
    predict = ["predict", "m.json", "visits", "--engine", "dask", "--out"]
    assert "--out visits is there already" in run_badly(*predict, "visits")


class Failing:
    """Stands for an engine that fails in its own code, with private words."""

    def __init__(self, *_: Any) -> None:
        self.columns = ["age"]

    def read(self, place: str) -> Any:
        raise RuntimeError(SECRET)


def test_errors_of_an_engine_are_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(clusters.ENGINES, "dask", Failing)
    with pytest.raises(DataError, match="can't be read"), clusters.open_cluster("dask", None, 1) as cluster:
        clusters.read_parquet(cluster, "visits")
    deep: dict[str, Any] = {"__name__": "distributed.client"}
    exec(f"def fail(): raise RuntimeError('{SECRET}')", deep)
    with pytest.raises(ClusterError, match="RuntimeError") as caught, clusters.open_cluster("dask", None, 1):
        deep["fail"]()
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(RuntimeError, match=SECRET), clusters.open_cluster("dask", None, 1):
        raise RuntimeError(SECRET)  # not the engine's: a bug


@pytest.mark.xdist_group("spark")
def test_spark_started_here() -> None:
    """In processes of their own: a session of another test may run in this one."""
    from shutil import which

    if which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on this machine: install default-jre-headless")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_clusters import *; "
        "check_same_as_here('--engine', 'spark')"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr

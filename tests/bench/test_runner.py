from __future__ import annotations

import io
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from rich.console import Console

from pemeans.bench import methods
from pemeans.bench.forecast import Forecast
from pemeans.bench.homes import FOLDER_VARIABLE
from pemeans.bench.runner import in_order, run_suite
from pemeans.bench.runs import Run, perform
from pemeans.bench.store import Store
from pemeans.bench.suites import SUITES, Part, Suite
from pemeans.bench.watching import unpack

TINY = Suite("tiny", "for tests", Part(("toy",), ("NonPrivateKMeans", "PEMeans"), (0.5, 4.0)), 3)
COMMAND = [
    sys.executable, "-c", "from pemeans.cli import main; main()", "bench", "run", "smoke",
    "--datasets", "toy", "--eps", "0.5,1", "--methods", "PEMeans,NonPrivateKMeans",
    "--repeats", "60", "--jobs", "2",
]  # fmt: skip
Losses = dict[Run, tuple[float | None, float | None]]


def quiet() -> Console:
    return Console(file=io.StringIO())


def losses(path: Path) -> Losses:
    with Store(path) as store:
        return {r.run: (r.outcome.loss, r.outcome.accuracy) for r in store.records()}


def test_same_seeds_same_results_however_they_are_run(tmp_path: Path) -> None:
    run_suite(TINY, tmp_path / "one", 3, jobs=1, console=quiet())
    run_suite(TINY, tmp_path / "two", 3, jobs=2, console=quiet())
    with joblib.parallel_config(backend="threading"):  # as Dask or Ray would take over
        run_suite(TINY, tmp_path / "threads", 3, jobs=2, console=quiet())
    first = losses(tmp_path / "one")
    assert len(first) == 3 + 2 * 3
    assert len(set(first.values())) > 3
    assert first == losses(tmp_path / "two") == losses(tmp_path / "threads")


def test_seeds_are_those_of_every_machine_and_differ() -> None:
    run = Run("iris", "PEMeans", "{}", 0.25, 0)
    assert run.seed == 3298884416
    others = [
        replace(run, dataset="adult"),
        replace(run, method="HDPEMeans"),
        replace(run, epsilon=0.5),
        replace(run, repeat=1),
    ]
    assert len({run.seed, *(other.seed for other in others)}) == 5
    assert replace(run, parameters='{"n_iterations": 3}').seed == run.seed


def test_a_second_time_nothing_is_left_to_do(tmp_path: Path) -> None:
    run_suite(TINY, tmp_path / "r", 2, jobs=1, console=quiet())
    again = run_suite(TINY, tmp_path / "r", 3, jobs=1, console=quiet())
    assert (again.done, again.before, again.complete) == (3, 6, True)


def test_killed_half_way_and_continued_gives_the_same_rows(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed.sqlite", tmp_path / "whole.sqlite"
    suite = SUITES["smoke"].limited(["toy"], ["PEMeans", "NonPrivateKMeans"], [0.5, 1.0])
    run_suite(suite, whole, 60, jobs=1, console=quiet())
    process = subprocess.Popen(
        [*COMMAND, "--out", str(killed)],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while count(killed) < 20 and process.poll() is None:
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = losses(killed)
    assert 20 <= len(done) < len(losses(whole))
    assert done.items() <= losses(whole).items()
    finished = subprocess.run([*COMMAND, "--out", str(killed)], check=True, capture_output=True, text=True)
    assert f"{len(done):,} of them done before" in finished.stdout
    assert losses(killed) == losses(whole)


def count(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not there yet
        return 0


class Broken:
    """A method that fails for one of its seeds."""

    bad_seed = Run("toy", "PEMeans", "{}", 0.5, 1).seed

    def __init__(self, random_state: int, **_: object) -> None:
        self.seed = random_state

    def fit(self, X: object) -> None:
        if self.seed == self.bad_seed:
            raise ZeroDivisionError("for this\nseed")
        self.cluster_centers_ = np.zeros((1, 2))


def test_a_failing_run_is_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = tmp_path / "r", io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(methods.Method, "_find", lambda self: Broken)
        summary = run_suite(TINY, path, 3, jobs=1, console=Console(file=out, width=200))
    assert (summary.done, len(summary.failed), summary.complete) == (8, 1, False)
    assert "PEMeans on toy at epsilon 0.5, repeat 1: ZeroDivisionError: for this seed" in out.getvalue()
    with Store(path) as store:
        failed = [r.outcome for r in store.records() if r.outcome.error]
    assert [outcome.run for outcome in failed] == [Run("toy", "PEMeans", "{}", 0.5, 1)]
    again = run_suite(TINY, path, 3, jobs=1, console=quiet())
    assert (again.done, again.complete) == (1, True)


def test_a_missing_or_wrong_data_set_is_told_and_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = TINY.limited(["toy", "nowhere", "damaged", "iris"], [], [])
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    np.savez(tmp_path / "iris.npz", X=np.zeros((150, 4)))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    summary = run_suite(suite, tmp_path / "r", 1, jobs=1, console=quiet())
    assert list(summary.missing) == ["nowhere", "damaged", "iris"]
    assert "checksum" in summary.missing["iris"]
    assert (summary.done, summary.complete) == (3, False)


def test_what_is_measured_is_the_loss_of_the_centers() -> None:
    outcome = perform(Run("toy", "NonPrivateKMeans", "{}", float("inf"), 0))
    assert outcome.loss is not None
    assert outcome.accuracy is not None
    assert outcome.seconds is not None
    assert outcome.peak_memory is not None
    assert 0 < outcome.loss < 1
    assert 0.5 < outcome.accuracy <= 1
    assert 1 << 24 < outcome.peak_memory < 1 << 34


def test_a_watched_run_gives_the_same_and_keeps_its_populations() -> None:
    run = Run("toy", "PEMeans", '{"n_iterations": 4, "variation_scale": 0.05}', float("inf"), 0)
    plain, watched = perform(run), perform(run, watch=True)
    assert plain.error is None
    assert plain.loss == watched.loss
    assert plain.trace is None
    assert watched.trace is not None
    scenes = unpack(watched.trace)
    assert len(scenes) == 4
    assert all(scene.selected.shape == (4, 2) for scene in scenes)
    assert scenes[0].population.shape == (4 * 11, 2)


def test_order_is_by_repeat_and_then_long_runs_first() -> None:
    forecast = Forecast(lambda name: (10_000 if name == "large" else 100, 2, 2))
    runs = [Run(name, "PEMeans", "{}", 1.0, r) for name in ("small", "large") for r in (1, 0)]
    ordered = in_order(runs, forecast)
    assert [(r.repeat, r.dataset) for r in ordered] == [
        (0, "large"),
        (0, "small"),
        (1, "large"),
        (1, "small"),
    ]


def test_forecast_learns_and_tells_the_time_left() -> None:
    forecast = Forecast(lambda name: (1000, 2, 2))
    slow, fast = Run("a", "PEMeans", "{}", 1.0, 0), Run("b", "PEMeans", "{}", 1.0, 0)
    forecast.learn(slow, 2.0)
    forecast.learn(replace(slow, repeat=1), 4.0)
    assert forecast.seconds(slow.cell) == pytest.approx(3.0)
    assert forecast.seconds(fast.cell) == pytest.approx(3.0)  # of the same size: by the method's rate
    assert forecast.left([(slow.cell, 4), (fast.cell, 0)], jobs=2) == pytest.approx(6.0)


def test_suites_share_their_runs() -> None:
    size = {name: (20_000, 32, 4) for suite in SUITES.values() for name in suite.part.datasets}
    runs = {name: set(suite.runs(2, size.__getitem__)) for name, suite in SUITES.items()}
    for part in ("tradeoff", "labels", "scaling"):
        assert runs[part]
        assert runs[part] <= runs["table1"]
    default = {run for run in runs["tune-variation"] if run.parameters == "{}"}
    assert len(default) == 34 * 2
    assert default <= runs["table1"]
    assert default <= runs["tune-iterations"]


def test_table1_has_what_the_protocol_asks() -> None:
    suite = SUITES["table1"]
    assert suite.repeats == 50
    runs = list(suite.runs(1, lambda name: (1000, 16, 4)))
    reference = [run for run in runs if run.method == "NonPrivateKMeans"]
    assert len(reference) == 34
    assert {run.epsilon for run in runs if run.method == "PEMeans"} == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert not any(run.method == "HDPEMeans" for run in runs)  # 16 dimensions need no projection
    wide = suite.runs(1, lambda name: (1000, 17, 4))
    assert any(run.method == "HDPEMeans" for run in wide)

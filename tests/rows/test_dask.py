"""A Dask cluster gives the fit that memory gives, bit for bit, whatever happens to its workers."""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.core import flatten
from distributed import Client, Future, LocalCluster, Worker
from distributed.core import Status
from one_answer import METHODS, SECRET, D, N, as_array, as_frame, fitted, wanted

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans
from pemeans.errors import ClusterError, DataError, DomainError
from pemeans.kernels.grid import GridArray, IntArray, Projection
from pemeans.progress import Progress
from pemeans.rows.base import open_source
from pemeans.rows.block import Block
from pemeans.rows.dask import DaskRows, DaskSource
from pemeans.rows.table import read_table

pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers, each a process of its own."""
    with (
        # A local cluster gives up a worker that is down again 15 seconds after it was lost.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def array(partitions: int) -> Any:
    return da.from_array(as_array(), chunks=(-(-N // partitions), D // 2))


def frame(partitions: int) -> Any:
    return dd.from_pandas(as_frame(), npartitions=partitions)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("partitions", [1, 64])
def test_any_number_of_chunks_gives_the_same_fit(client: Client, method: str, partitions: int) -> None:
    assert fitted(method, array(partitions)) == wanted(method, named=False)


@pytest.mark.parametrize(
    ("method", "partitions"), [*((method, 7) for method in METHODS), ("PEMeans", 1), ("PEMeans", 64)]
)
def test_any_number_of_partitions_gives_the_same_fit(client: Client, method: str, partitions: int) -> None:
    assert fitted(method, frame(partitions)) == wanted(method, named=True)


def test_without_a_cluster_the_fit_is_the_same() -> None:
    with dask.config.set(scheduler="threads"):
        assert fitted("DPKMeans", array(5)) == wanted("DPKMeans", named=False)


def with_empty_parts() -> dict[str, Any]:
    rows = da.from_array(as_array(), chunks=(90, D))
    nothing = da.zeros((0, D), chunks=(0, D))
    spread = pd.concat([as_frame(), as_frame() * np.nan], keys=[0, 1], names=["kept"]).reset_index("kept")
    padded = dd.from_pandas(spread, npartitions=9)
    return {
        "empty chunks": da.concatenate([nothing, rows[:900], nothing, nothing, rows[900:], nothing]),
        "unknown lengths": rows[da.from_array(np.ones(N, dtype=bool), chunks=90)],
        "filtered": padded[padded["kept"] == 0].drop(columns="kept"),
    }


@pytest.mark.parametrize("name", ["empty chunks", "unknown lengths", "filtered"])
def test_partitions_may_be_empty(client: Client, name: str) -> None:
    assert fitted("DPKMeans", with_empty_parts()[name]) == wanted("DPKMeans", named=name == "filtered")


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_killed_during_the_fit_changes_nothing(client: Client, method: str) -> None:
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.iteration in (1, 3):
            killed.append(client.run(os.getpid).popitem()[1])
            os.kill(killed[-1], signal.SIGKILL)

    assert fitted(method, array(7), progress=kill) == wanted(method, named=False)
    assert killed


@pytest.mark.parametrize("method", METHODS)
def test_all_workers_killed_at_once_change_nothing(client: Client, method: str) -> None:
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.iteration == 2:
            client.wait_for_workers(2, timeout=60)
            killed.extend(client.run(os.getpid).values())
            for process in killed:
                os.kill(process, signal.SIGKILL)

    assert fitted(method, array(7), progress=kill) == wanted(method, named=False)
    assert len(killed) == 2
    assert not left_behind(client), "rows, or totals, of a fit that is over"


def left_behind(client: Client) -> set[str]:
    """What the cluster still keeps; the news that nobody wants it takes a moment to get there."""
    for _ in range(100):
        kept = client.run_on_scheduler(lambda dask_scheduler: set(map(str, dask_scheduler.tasks)))
        if not kept:
            break
        time.sleep(0.05)
    return set(kept)


class SlowCount:
    """A question that takes its time: Dask would rather send rows to an idle worker than wait."""

    def __call__(self, block: Block) -> IntArray:
        time.sleep(0.2)
        return np.array([len(block.grid)])


def test_rows_stay_where_they_are(client: Client) -> None:
    """Otherwise bytes grow with the rows."""
    rows = opened(client, 5)

    def received(dask_worker: Worker) -> list[str]:
        return [key for log in dask_worker.transfer_incoming_log for key in map(str, log["keys"])]

    for _ in range(4):
        assert rows.total(SlowCount()) == N
    keys = [key for keys in client.run(received).values() for key in keys]
    assert any("SlowCount" in key for key in keys)
    assert not [key for key in keys if "_on_grid" in key]


class KillsWorkers:
    """A question that kills the worker that answers it, as many times as it is told."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def __call__(self, block: Block) -> IntArray:
        if len(list(self.folder.iterdir())) < self.times:
            (self.folder / uuid4().hex).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.array([len(block.grid)])


def opened(client: Client, partitions: int) -> DaskRows:
    client.wait_for_workers(2, timeout=60)
    source: DaskSource = open_source(array(partitions))  # type: ignore[assignment]
    return source.rows(Domain.box(-8, 8).bind(source.n_rows, source.n_features), None)


def test_workers_killed_by_a_question(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = opened(client, 4)
    assert rows.total(KillsWorkers(tmp_path, 3)) == N
    monkeypatch.setattr("pemeans.rows.dask.ATTEMPTS", 3)
    with pytest.raises(ClusterError, match="lost 3 times"):
        rows.total(KillsWorkers(tmp_path, 1000))


def test_a_worker_killed_when_it_has_the_total(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = opened(client, 4)
    assert rows.total(SlowCount()) == N
    killed: list[int] = []
    plain = Future.result

    def result(self: Future, timeout: float | None = None) -> Any:
        if not killed:
            (holder,) = client.who_has([self])[self.key]
            killed.append(client.run(os.getpid)[holder])
            os.kill(killed[0], signal.SIGKILL)
        return plain(self, timeout)

    monkeypatch.setattr(Future, "result", result)
    assert rows.total(SlowCount()) == N
    assert killed


def test_a_paused_worker_is_not_waited_for(client: Client) -> None:
    """Dask pauses a worker whose memory is nearly full."""

    def pause(status: Status, dask_worker: Worker) -> None:
        dask_worker.memory_manager.memory_pause_fraction = False
        dask_worker.status = status

    rows = opened(client, 4)
    assert rows.total(SlowCount()) == N
    paused = min(client.nthreads())
    client.run(pause, Status.paused, workers=[paused])
    assert rows.total(SlowCount()) == N
    client.run(pause, Status.running, workers=[paused])
    assert rows.total(SlowCount()) == N


def test_every_worker_has_its_share(client: Client) -> None:
    """Also the one that comes in the place of another."""
    rows = opened(client, 8)
    for _ in range(2):
        assert rows.total(SlowCount()) == N
        held = [sum("_on_grid" in str(key) for key in keys) for keys in client.has_what().values()]
        assert min(held) >= 4, "of eight"
        os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)
        assert rows.total(SlowCount()) == N
        client.wait_for_workers(2, timeout=60)


def count_projected(dask_worker: Worker) -> None:
    plain, dask_worker.projected = Projection.__call__, 0

    def counting(self: Projection, grid: GridArray) -> GridArray:
        dask_worker.projected += len(grid)
        return plain(self, grid)

    Projection.__call__ = counting  # type: ignore[method-assign]


def test_rows_are_projected_once(client: Client) -> None:
    client.run(count_projected)
    HDPEMeans(3, domain=Domain.box(-8, 8), n_iterations=6).fit(array(5))
    assert sum(client.run(lambda dask_worker: dask_worker.projected).values()) == N


def test_keys_tell_nothing(client: Client) -> None:
    """Keys reach dashboards and logs: a hash of a block would say whether it is the same as last time."""
    seen: list[set[str]] = []
    gc.collect()
    assert not left_behind(client)

    def look(progress: Progress) -> None:
        seen[-1].update(client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks))))

    rows = da.from_array(as_array(), chunks=(N // 3, D)).persist()
    for _ in range(2):
        seen.append(set())
        PEMeans(3, n_iterations=2, domain=Domain.box(-8, 8), progress=look).fit(rows)
    assert len(seen[0]) > 2 * 3
    assert seen[0] & seen[1] <= set(map(str, flatten(rows.__dask_keys__())))


def refusals() -> dict[str, Any]:
    hole, text = as_frame(), as_frame().astype(object)
    hole.iloc[700, 3], hole.iloc[700, 4] = np.nan, SECRET
    text["c3"] = f"{SECRET}"
    infinite = as_array().copy()
    infinite[700, 3], infinite[700, 4] = np.inf, SECRET
    return {
        "missing": hole,
        "text": text,
        "infinite": infinite,
        "complex": as_array() * 1j,
        "empty": as_array()[:0],
        "flat": as_array()[:, 0],
    }


@pytest.mark.parametrize("name", ["missing", "text", "infinite", "complex", "empty", "flat"])
def test_what_memory_refuses_is_refused_in_the_same_words(client: Client, name: str) -> None:
    data = refusals()[name]
    lazy = dd.from_pandas(data, npartitions=5) if isinstance(data, pd.DataFrame) else da.from_array(data)
    with pytest.raises(DataError) as expected:
        read_table(data)
    with pytest.raises(DataError) as caught:
        fitted("PEMeans", lazy)
    logs = str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    assert "123456" not in logs + str(caught.value)
    if name not in ("text", "flat"):  # pandas and Dask call a column of text by different names
        assert str(caught.value) == str(expected.value)


def test_the_domain_cannot_be_read_from_a_cluster() -> None:
    with pytest.raises(DomainError, match="in memory"), dask.config.set(scheduler="threads"):
        DPKMeans(3, domain="from-data").fit(array(2))


def test_labels_are_lazy_and_the_same(client: Client) -> None:
    plain = DPKMeans(3, domain=Domain.box(-8, 8), random_state=1, progress=lambda _: None).fit(as_array())
    named = DPKMeans(3, domain=Domain.box(-8, 8), random_state=1).fit(as_frame())
    of_array, of_frame = plain.predict(array(7)), named.predict(frame(7))
    assert isinstance(of_array, da.Array)
    assert isinstance(of_frame, dd.Series)
    assert np.array_equal(of_array.compute(), plain.predict(as_array()))
    labels = of_frame.compute()
    assert (labels.name, labels.dtype) == ("cluster", np.int32)
    assert np.array_equal(labels, named.predict(as_frame()))
    assert labels.index.equals(as_frame().index)
    filtered = with_empty_parts()["filtered"]
    assert np.array_equal(filtered.assign(cluster=named.predict(filtered))["cluster"].compute(), labels)
    with pytest.raises(DataError, match=re.escape("Feature names unseen at fit time")):
        named.predict(frame(2).rename(columns={"c1": "other"}))

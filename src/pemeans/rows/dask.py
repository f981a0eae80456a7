"""Rows in a Dask array or data frame: blocks that stay on the workers, and one graph for each release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from threading import Event
from time import sleep
from typing import Any

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from distributed import Client, futures_of, wait

from pemeans.domain import Domain
from pemeans.errors import DataError
from pemeans.kernels.grid import IntArray
from pemeans.rows.base import Question, refuse_to_read_domain
from pemeans.rows.block import Block
from pemeans.rows.memory import blocks_on_grid
from pemeans.rows.table import Table, check_filled, checked, read_part

BRANCHES = 16
"""How many partial sums a task adds up, so that neither a worker nor the driver ever holds many."""
PATIENCE = 1.0
"""Seconds between looks at whether the workers are still there that a total waits for."""


class DaskRows:
    """Rows of a Dask collection, on the grid and persisted where they are.

    On a cluster every block has a home, the worker that answers for it. Left to itself, Dask would send them
    to idle workers, and project them anew there. The blocks of a lost worker are made again, from the user's
    data. A task that runs twice counts once: a graph has one value for each key. Keys are random, and so tell
    nothing of the rows.

    Parameters
    ----------
    parts : sequence of Delayed
        Checked partitions, in the user's units.
    domain : Domain
        The bound domain.
    """

    def __init__(self, parts: Sequence[Delayed], domain: Domain) -> None:
        self._parts, self._ground = parts, delayed(domain, traverse=False)
        self._blocks = list(dask.persist(*(delayed(_on_grid)(part, self._ground) for part in parts)))
        self._threads: dict[str, int] = {}
        self._homes: list[str] = []
        if held := futures_of(self._blocks):  # none without a cluster
            wait(held)

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows: the question goes out once, sums come back up a tree."""
        if not (held := futures_of(self._blocks)):
            return np.asarray(self._sum(statistic, [{} for _ in self._blocks]).compute())
        client = held[0].client
        while True:
            self._settle(client)
            total = client.compute(self._sum(statistic, [{"workers": [home]} for home in self._homes]))
            done = Event()
            total.add_done_callback(lambda _, done=done: done.set())
            # Dask waits for ever for a worker that is gone: https://github.com/dask/distributed/issues/7346
            while not done.wait(PATIENCE) and set(self._homes) <= client.nthreads().keys():
                pass
            if done.is_set():
                return np.asarray(total.result())
            total.cancel()

    def _sum(self, statistic: Question, places: Sequence[Mapping[str, Any]]) -> Delayed:
        """A tree of sums of what the blocks answer at their places."""
        question = delayed(statistic, traverse=False)
        sums = []
        for blocks, place in zip(self._blocks, places, strict=True):
            with dask.annotate(**place):
                sums.append(delayed(_answer)(question, blocks))
        while len(sums) > 1:
            sums = [delayed(sum)(sums[i : i + BRANCHES]) for i in range(0, len(sums), BRANCHES)]
        return sums[0]

    def _settle(self, client: Client) -> None:
        """Where workers have come or gone, give each its share of the blocks; most stay where they are."""
        while not (threads := client.nthreads()):
            sleep(PATIENCE / 10)
        if threads == self._threads:
            return
        self._threads, self._homes = threads, []
        room = {home: ceil(len(self._blocks) * n / sum(threads.values())) for home, n in threads.items()}
        held = client.who_has(futures_of(self._blocks))
        for i, blocks in enumerate(self._blocks):
            home = next((home for home in held[blocks.key] if room.get(home)), None)
            if home is None:
                home = max(room, key=room.__getitem__)
                with dask.annotate(workers=[home]):
                    (self._blocks[i],) = dask.persist(delayed(_on_grid)(self._parts[i], self._ground))
            self._homes.append(home)
            room[home] -= 1


@dataclass(frozen=True, eq=False, repr=False)
class DaskSource:
    """A Dask collection whose partitions have been checked and counted."""

    parts: Sequence[Delayed]
    names: tuple[str, ...] | None
    n_rows: int
    n_features: int

    def rows(self, domain: Domain, n_jobs: int | None) -> DaskRows:
        """The rows on the domain's grid; the threads are the cluster's own."""
        return DaskRows(self.parts, domain)

    def domain_of_rows(self) -> Domain:
        """Refused."""
        return refuse_to_read_domain()


def open_source(data: Any) -> DaskSource:
    """Check every partition of a Dask array or data frame where it is, and count the rows."""
    like = read_part(_like(data))
    partitions = data.to_delayed() if _is_frame(data) else data.rechunk({1: -1}).to_delayed().ravel()
    parts = [delayed(checked)(partition) for partition in partitions]
    counts = dask.compute(*(delayed(_counted)(part) for part in parts))
    for count in counts:
        if isinstance(count, DataError):
            raise count
    check_filled(sum(counts), like.n_features)
    return DaskSource(parts, like.names, sum(counts), like.n_features)


def map_rows(data: Any, labels: Callable[[Any], npt.NDArray[np.int32]]) -> Any:
    """The labels of all rows, lazily: a Dask array of a Dask array, a column of a data frame."""
    empty = labels(_like(data))  # refuses other columns now, not when the labels are computed
    if not _is_frame(data):
        return data.rechunk({1: -1}).map_blocks(labels, drop_axis=1, dtype=empty.dtype, meta=empty)
    import pandas as pd

    return data.map_partitions(
        lambda part: pd.Series(labels(part), index=part.index, name="cluster"),
        meta=pd.Series(empty, index=data._meta.index, name="cluster"),
    )


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns")


def _like(data: Any) -> Any:
    """An empty part, with the columns and types of all parts."""
    if _is_frame(data):
        return data._meta
    if getattr(data, "ndim", None) != 2:
        raise DataError(f"X is a Dask {type(data).__name__}; pass a 2-dimensional Dask array or a DataFrame")
    return np.empty((0, data.shape[1]), data.dtype)


def _counted(part: Table | DataError) -> int | DataError:
    return part if isinstance(part, DataError) else part.n_rows


def _on_grid(part: Table | DataError, domain: Domain) -> list[Block]:
    if isinstance(part, DataError):
        raise part  # the data changed since it was checked
    return blocks_on_grid(part.values, domain)


def _answer(question: Question, blocks: list[Block]) -> IntArray | int:
    return sum(map(question, blocks))

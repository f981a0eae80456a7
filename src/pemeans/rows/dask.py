"""Rows in a Dask array or data frame: blocks that stay on the workers, and one graph for each release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil
from threading import Event
from time import sleep
from typing import Any

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from distributed import Client, Future, futures_of, wait

from pemeans.domain import Domain
from pemeans.errors import ClusterError, DataError
from pemeans.kernels.grid import IntArray
from pemeans.rows.base import Question, refuse_to_read_domain
from pemeans.rows.block import Block
from pemeans.rows.memory import blocks_on_grid
from pemeans.rows.table import Table, check_filled, checked, read_part

BRANCHES = 16
"""How many partial sums a task adds up, so that neither a worker nor the driver ever holds many."""
PATIENCE = 1.0
"""Seconds between looks at whether the workers are still there that a total waits for."""
FETCHING = 10.0
"""Seconds until a total is there that has been found; its worker may be lost on the way."""
ATTEMPTS = 10
"""How often workers may be lost over one question: more often, it is the question that kills them."""


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
            return np.asarray(self._sum(statistic, []).compute())
        client = held[0].client
        for _ in range(ATTEMPTS):
            self._settle(client)
            total, done = client.compute(self._sum(statistic, self._homes)), Event()
            total.add_done_callback(lambda _, done=done: done.set())
            # Dask waits for ever for a worker that is gone: https://github.com/dask/distributed/issues/7346
            while set(self._homes) <= _running(client).keys():
                if done.wait(PATIENCE) and (found := _fetched(total)) is not None:
                    return found
            total.cancel()
        raise ClusterError(
            f"workers were lost {ATTEMPTS} times over one question; "
            "give them more memory, or X more and smaller partitions"
        )

    def _sum(self, statistic: Question, homes: Sequence[str]) -> Delayed:
        """A tree of sums of what the blocks answer, at home where they have one."""
        question = delayed(statistic, traverse=False)
        sums = [_at(home, _answer, question, block) for home, block in zip_longest(homes, self._blocks)]
        while len(sums) > 1:
            sums = [delayed(sum)(sums[i : i + BRANCHES]) for i in range(0, len(sums), BRANCHES)]
        return sums[0]

    def _settle(self, client: Client) -> None:
        """Where workers have come or gone, give each its share of the blocks; those within it stay."""
        while not (threads := _running(client)):
            sleep(PATIENCE)
        if threads == self._threads:
            return
        room = {home: ceil(len(self._blocks) * n / sum(threads.values())) for home, n in threads.items()}
        held = client.who_has(futures_of(self._blocks))
        homes: dict[int, str] = {}
        for i, blocks in enumerate(self._blocks):
            if home := next((home for home in held[blocks.key] if room.get(home)), None):
                homes[i] = home
                room[home] -= 1
        for i in set(range(len(self._blocks))) - homes.keys():
            homes[i] = max(room, key=room.__getitem__)
            room[homes[i]] -= 1
            (self._blocks[i],) = dask.persist(_at(homes[i], _on_grid, self._parts[i], self._ground))
        self._threads, self._homes = threads, [homes[i] for i in range(len(homes))]


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
    counts = dask.compute(*(delayed(_counted)(part, like.n_features) for part in parts))
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


def _at(home: str | None, work: Callable[..., Any], *facts: Delayed) -> Delayed:
    """Work for one worker, or for any of them."""
    with dask.annotate(**({"workers": [home]} if home else {})):
        return delayed(work)(*facts)


def _fetched(total: Future) -> IntArray | None:
    """A total that has been found; None if its worker was lost on the way."""
    try:
        return np.asarray(total.result(FETCHING))
    except TimeoutError:
        if total.status == "error":  # the user's own reading took too long
            raise
        return None


def _running(client: Client) -> dict[str, int]:
    """The workers that take tasks, and their threads."""
    found: dict[str, int] = client.run_on_scheduler(
        lambda dask_scheduler: {worker.address: worker.nthreads for worker in dask_scheduler.running}
    )
    return found


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns")


def _like(data: Any) -> Any:
    """An empty part, with the columns and types of all parts."""
    if _is_frame(data):
        return data._meta
    if getattr(data, "ndim", None) != 2:
        raise DataError(f"X is a Dask {type(data).__name__}; pass a 2-dimensional Dask array or a DataFrame")
    return np.empty((0, data.shape[1]), data.dtype)


def _counted(part: Table | DataError, n_features: int) -> int | DataError:
    if isinstance(part, DataError):
        return part
    if part.n_features != n_features:
        return DataError(f"a partition of X has {part.n_features} columns, not {n_features}; make them alike")
    return part.n_rows


def _on_grid(part: Table | DataError, domain: Domain) -> list[Block]:
    if isinstance(part, DataError):
        raise part  # the data changed since it was checked
    return blocks_on_grid(part.values, domain)


def _answer(question: Question, blocks: list[Block]) -> IntArray | int:
    return sum(map(question, blocks))

"""Rows in a Dask array or data frame: blocks that stay on the workers, and one graph for each release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from distributed import futures_of, wait

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

    Blocks answer where they are: left alone, Dask sends them to idle workers, and projects them anew. It
    makes the blocks of a lost worker again, from the user's data. A task that runs twice counts once: a graph
    has one value for each key. Keys are random, so that they tell nothing of the rows.

    Parameters
    ----------
    parts : sequence of Delayed
        Checked partitions, in the user's units.
    domain : Domain
        The bound domain.
    """

    def __init__(self, parts: Sequence[Delayed], domain: Domain) -> None:
        ground = delayed(domain, traverse=False)
        self._blocks = dask.persist(*(delayed(_on_grid)(part, ground) for part in parts))

    def total(self, statistic: Question) -> IntArray:
        """The sum of the statistic over all rows: the question goes out once, sums come back up a tree."""
        if not (held := futures_of(self._blocks)):  # there is no cluster
            return np.asarray(self._sum(statistic, {}).compute())
        client = held[0].client
        while True:
            homes = client.who_has(wait(held).done)
            total, done = client.compute(self._sum(statistic, homes)), Event()
            total.add_done_callback(lambda _, done=done: done.set())
            # What is bound to a lost worker goes to another, but waits for ever if it was the last one:
            # https://github.com/dask/distributed/issues/7346
            while not done.wait(PATIENCE) and set().union(*homes.values()) <= client.nthreads().keys():
                pass
            if done.is_set():
                return np.asarray(total.result())
            total.cancel()

    def _sum(self, statistic: Question, homes: Mapping[str, Sequence[str]]) -> Delayed:
        """A tree of sums of the answers that blocks give at home."""
        question = delayed(statistic, traverse=False)
        sums = [_answer_at(homes.get(blocks.key), question, blocks) for blocks in self._blocks]
        while len(sums) > 1:
            sums = [delayed(sum)(sums[i : i + BRANCHES]) for i in range(0, len(sums), BRANCHES)]
        return sums[0]


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


def _answer_at(home: Sequence[str] | None, question: Delayed, blocks: Delayed) -> Delayed:
    """The answer of some blocks, by the worker that holds them as long as there is one."""
    with dask.annotate(**({"workers": list(home), "allow_other_workers": True} if home else {})):
        return delayed(_answer)(question, blocks)

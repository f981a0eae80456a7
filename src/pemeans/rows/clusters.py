"""A cluster at an address, and Parquet as its workers read and write it: what the command line needs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any, Protocol

from pemeans.errors import ClusterError, DataError, ParameterError, PemeansError
from pemeans.rows.files import check_present

PATIENCE = 10
"""Seconds until an address counts as one where nobody answers."""
PACKAGES = ("dask", "distributed", "pyspark", "py4j", "grpc")
"""What fails in there is about the cluster. Such errors can quote what tasks were given: they stay here."""
ADDRESSES = {
    "dask": (r".+:\d+", "tcp://host:8786"),
    "spark": (r"(spark|sc|k8s)://.+|yarn|local.*", "spark://host:7077, yarn or sc://host:15002"),
}
"""What addresses look like."""


class Cluster(Protocol):
    """An engine that runs."""

    def read(self, place: str) -> Any:
        """A lazy data frame of Parquet files."""
        ...

    def select(self, frame: Any, names: Sequence[str]) -> Any:
        """Some of its columns, in this order."""
        ...

    def write_labeled(self, frame: Any, labels: Any, place: str) -> None:
        """Write a folder of Parquet files: the frame and one column more, "cluster"."""
        ...


@contextmanager
def open_cluster(engine: str, address: str | None, workers: int | None) -> Iterator[Cluster]:
    """An engine at an address, or one of this machine's own that ends with the context.

    Parameters
    ----------
    engine : {"dask", "spark"}
        Which.
    address : str or None
        Of a Dask scheduler, a Spark master, or a Spark Connect server; None starts workers here.
    workers : int or None
        How many to start; None means one for each core.
    """
    if address is not None:
        _check_address(engine, address, workers)
    with _reworded(engine, address), ExitStack() as stack:
        yield ENGINES[engine](address, workers, stack)


def read_parquet(cluster: Cluster, place: str) -> Any:
    """A lazy data frame of a file, a folder, a pattern or a URL that every worker knows by this name."""
    try:
        return cluster.read(place)
    except Exception:
        pass
    # Raised out here, where no other error is chained.
    raise DataError(f"{place} can't be read as Parquet files; check the path")


def select(cluster: Cluster, frame: Any, wanted: Sequence[str] | None, place: str) -> Any:
    """The wanted columns of a frame that was read there; None means all."""
    for name in wanted or ():
        check_present(name, list(frame.columns), Path(place))
    return frame if wanted is None else cluster.select(frame, wanted)


class DaskCluster:
    """A Dask client, and its workers where none were there."""

    def __init__(self, address: str | None, workers: int | None, stack: ExitStack) -> None:
        import dask.dataframe
        from distributed import Client, LocalCluster

        self._frames = dask.dataframe
        if address is not None:
            stack.enter_context(Client(address, timeout=PATIENCE))
            return
        # Processes of one thread each; no dashboard, and the few pages that Dask always shows at any port.
        local = LocalCluster(
            workers or os.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )
        stack.enter_context(Client(stack.enter_context(local)))

    def read(self, place: str) -> Any:
        return self._frames.read_parquet(place)

    def select(self, frame: Any, names: Sequence[str]) -> Any:
        return frame[list(names)]

    def write_labeled(self, frame: Any, labels: Any, place: str) -> None:
        frame.assign(cluster=labels).to_parquet(
            place, write_index=False, name_function=lambda number: f"part-{number:06}.parquet"
        )


class SparkCluster:
    """A Spark session, classic or Connect."""

    def __init__(self, address: str | None, workers: int | None, stack: ExitStack) -> None:
        from pyspark.sql import SparkSession, functions

        self._column = functions.col
        builder = SparkSession.builder.appName("pemeans")
        if address is not None and address.startswith("sc://"):
            builder = builder.remote(address)
        else:
            builder = builder.master(address or f"local[{workers or '*'}]")
            for name, value in _classic_options(address).items():
                builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        stack.callback(self._session.stop)

    def read(self, place: str) -> Any:
        return self._session.read.parquet(place)

    def select(self, frame: Any, names: Sequence[str]) -> Any:
        return frame.select([self._column(f"`{name.replace('`', '``')}`") for name in names])

    def write_labeled(self, frame: Any, labels: Any, place: str) -> None:
        frame.withColumn("cluster", labels).write.parquet(place)


ENGINES: dict[str, Callable[[str | None, int | None, ExitStack], Cluster]] = {
    "dask": DaskCluster,
    "spark": SparkCluster,
}


def _classic_options(address: str | None) -> dict[str, str]:
    """What a session with a Java machine of its own must be told."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise ClusterError(
            "--engine spark needs Java, which is not on this machine; install Java 17 or later"
        )
    warnings.filterwarnings("ignore", "PySpark does not yet")  # of new versions of pandas
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    if address is not None:
        return quiet
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Nobody else may come in, by a page that shows what runs or by this machine's other names.
    return quiet | {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}


def _check_address(engine: str, address: str, workers: int | None) -> None:
    """An address of this engine, where somebody listens: engines themselves may wait forever."""
    pattern, example = ADDRESSES[engine]
    if not re.fullmatch(pattern, address):
        raise ParameterError(f"--address {address} is none of {engine}; write for example {example}")
    if workers is not None:
        raise ParameterError(f"--threads {workers} is for workers started here; leave it or --address away")
    hosts = re.findall(r"([\w.-]+):(\d+)", address)
    speaks_first = engine == "dask" and not address.startswith("tls")
    if hosts and not any(_answers(host, int(port), speaks_first) for host, port in hosts):
        raise ClusterError(f"--address {address}: no {engine} answers there; check host and port")


def _answers(host: str, port: int, speaks_first: bool) -> bool:
    try:
        with socket.create_connection((host, port), PATIENCE) as connection:
            return not speaks_first or bool(connection.recv(1))
    except (OSError, OverflowError, UnicodeError):
        return False


@contextmanager
def _reworded(engine: str, address: str | None) -> Iterator[None]:
    """Errors of an engine, in one line that quotes nothing of them."""
    where = "on this machine" if address is None else f"at {address}"
    try:
        yield
        return
    except PemeansError:
        raise
    except ImportError:
        extra = "pyspark[connect]" if (address or "").startswith("sc://") else f"pemeans[{engine}]"
        message = f"--engine {engine} needs packages that are missing here; pip install '{extra}'"
    except Exception as error:
        modules = {frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)}
        if not any(module.partition(".")[0] in PACKAGES for module in modules):
            raise
        message = (
            f"{engine} {where} failed with {type(error).__name__}; check that it runs, that its workers have "
            "this version of pemeans and enough memory, and read their logs"
        )
    raise ClusterError(message) from None

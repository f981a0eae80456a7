"""A Spark cluster gives the fit that memory gives, bit for bit, whatever happens to its executors."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psutil
import pyarrow as pa
import pyspark
import pytest
from one_answer import METHODS, NAMES, SECRET, N, as_array, as_frame, fitted, wanted
from pyspark.sql import SparkSession, functions

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans
from pemeans.errors import ClusterError, DataError, DomainError
from pemeans.kernels.grid import GridArray, Projection
from pemeans.privacy.statistics import NearestVotes
from pemeans.progress import Progress
from pemeans.rows import spark_tasks
from pemeans.rows.base import open_source
from pemeans.rows.table import read_table

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two executors, each a Java machine of its own."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on this machine: install default-jre-headless")
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
        environment.setenv("SPARK_WORKER_DIR", str(folder))
        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.local.dir", str(folder))
            .config("spark.sql.warehouse.dir", str(folder))
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def frame(spark: SparkSession, partitions: int) -> Any:
    return spark.createDataFrame(pa.Table.from_pandas(as_frame())).repartition(partitions)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("partitions", [1, 8])
def test_any_number_of_partitions_gives_the_same_fit(
    spark: SparkSession, method: str, partitions: int
) -> None:
    assert fitted(method, frame(spark, partitions)) == wanted(method, named=True)


def test_empty_partitions_and_a_tree_of_sums(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pemeans.rows.spark.BRANCHES", 3)
    spread = frame(spark, 1).repartition(13, functions.signum("c0"))
    assert fitted("PEMeans", spread) == wanted("PEMeans", named=True)


def test_rows_in_one_column(spark: SparkSession) -> None:
    from pyspark.ml.functions import array_to_vector

    arrays = frame(spark, 2).select(functions.array(*NAMES).alias("rows"))
    assert fitted("HDPEMeans", arrays) == wanted("HDPEMeans", named=False)
    vectors = arrays.select(array_to_vector("rows").alias("features"))
    assert fitted("PEMeans", vectors) == wanted("PEMeans", named=False)


def executors() -> list[int]:
    """The process ids of the executors."""
    family = psutil.Process().children(recursive=True)
    alive = [p for p in family if p.status() != psutil.STATUS_ZOMBIE]
    return [p.pid for p in alive if any("CoarseGrainedExecutorBackend" in word for word in p.cmdline())]


@pytest.mark.parametrize("method", ["DPKMeans", "HDPEMeans"])
def test_an_executor_killed_during_the_fit_changes_nothing(spark: SparkSession, method: str) -> None:
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.iteration == 2:
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)

    assert fitted(method, frame(spark, 4), progress=kill) == wanted(method, named=True)
    assert killed


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], set[Path]]:
    """What executors keep rows in; without what one left that was killed, which Spark removes at the end."""

    def found() -> set[Path]:
        return set(tmp_path_factory.getbasetemp().glob("spark[0-9]*/**/pemeans-*"))

    before = found()
    return lambda: found() - before


def test_rows_are_projected_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Counted where it happens, in other processes: what they see goes to a file each."""
    plain: Any = spark_tasks.answer

    def counting(*facts: Any) -> Iterator[pa.RecordBatch]:
        project = Projection.__call__

        def counted(self: Projection, grid: GridArray) -> GridArray:
            (tmp_path / uuid4().hex).write_text(str(len(grid)))
            return project(self, grid)

        Projection.__call__ = counted  # type: ignore[method-assign]
        yield from plain(*facts)
        Projection.__call__ = project  # type: ignore[method-assign]

    monkeypatch.setattr(spark_tasks, "answer", counting)
    HDPEMeans(3, domain=Domain.box(-8, 8), n_iterations=6).fit(frame(spark, 3))
    assert sum(int(path.read_text()) for path in tmp_path.iterdir()) == N


def test_rows_stay_no_longer_than_the_fit(spark: SparkSession, files: Callable[[], set[Path]]) -> None:
    during: list[Path] = []

    def look(progress: Progress) -> None:
        during[:] = files()
        assert {oct(path.stat().st_mode & 0o777) for path in during} == {"0o600"}

    fitted("HDPEMeans", frame(spark, 2), progress=look)
    on_grid, projected = 2, 2
    assert len(during) == on_grid + projected, "rows in the user's units are gone by now"
    assert not files()
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    with pytest.raises(DataError):
        fitted("PEMeans", frame(spark, 2).withColumn("c3", functions.lit(float("nan"))))
    assert not files()
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_rows_go_when_a_fit_fails(spark: SparkSession, files: Callable[[], set[Path]]) -> None:
    """Not only once nobody remembers the error any more."""

    def fail(progress: Progress) -> None:
        assert files()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        fitted("PEMeans", frame(spark, 2), progress=fail)
    assert not files(), caught
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_two_fits_of_one_frame_do_not_share_their_files(
    spark: SparkSession, files: Callable[[], set[Path]]
) -> None:
    data = frame(spark, 2)
    one, other = open_source(data), open_source(data)
    assert len(files()) == 2 + 2
    rows = other.rows(Domain.box(-8, 8).bind(N, len(NAMES)), None)
    one.forget()  # type: ignore[attr-defined]
    kept = files()
    assert len(kept) == 2
    assert rows.total(NearestVotes(np.zeros((1, len(NAMES)), dtype=np.int32))) == N
    assert {path.name.partition(".")[0] for path in files()} == {path.name for path in kept}
    other.forget()  # type: ignore[attr-defined]
    assert not files()


def test_a_cleared_cache_costs_the_files_once(spark: SparkSession, files: Callable[[], set[Path]]) -> None:
    seen: list[set[Path]] = []

    def clear(progress: Progress) -> None:
        if progress.iteration == 1:
            spark.catalog.clearCache()
        seen.append(files())

    assert fitted("PEMeans", frame(spark, 2), progress=clear) == wanted("PEMeans", named=True)
    assert len(seen[-1]) == 2
    assert seen[-1] == seen[-2]
    assert not files()


def test_files_that_vanish_are_written_again(spark: SparkSession, files: Callable[[], set[Path]]) -> None:
    vanished: list[Path] = []

    def vanish(progress: Progress) -> None:
        if progress.iteration == 2:
            vanished.extend(sorted(files())[:2])
            for path in vanished:
                path.unlink()

    assert fitted("PEMeans", frame(spark, 4), progress=vanish) == wanted("PEMeans", named=True)
    assert len(vanished) == 2
    assert not files()


def test_executors_that_do_not_have_the_files_are_passed_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when idle machines take busy ones' tasks: one part of four answers, the others when asked again."""
    plain: Any = spark_tasks.answer

    def is_first(name: str) -> bool:
        try:
            (tmp_path / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def seldom(*facts: Any) -> Iterator[pa.RecordBatch]:
        *others, batches = facts
        for batch in batches:
            (name,) = batch.column("file").to_pylist()
            if is_first(Path(name).name) and not is_first("answered"):
                found = {"rows": [0], "total": [b""], "absent": [[name]]}
                yield pa.RecordBatch.from_pydict(found, spark_tasks.SUMS)
            else:
                yield from plain(*others, iter([batch]))

    monkeypatch.setattr(spark_tasks, "answer", seldom)
    assert fitted("PEMeans", frame(spark, 4)) == wanted("PEMeans", named=True)
    assert len(list(tmp_path.iterdir())) == 4 + 1, "no file was written twice"


def test_rows_that_are_nowhere_are_not_left_out(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(*facts: Any) -> Iterator[pa.RecordBatch]:
        for batch in facts[-1]:
            found = {"rows": [0], "total": [b""], "absent": [batch.column("file").to_pylist()]}
            yield pa.RecordBatch.from_pydict(found, spark_tasks.SUMS)

    monkeypatch.setattr(spark_tasks, "answer", forgetful)
    with pytest.raises(ClusterError, match="write X to storage"):
        fitted("PEMeans", frame(spark, 2))


def test_what_spark_would_encrypt_on_disk_stays_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark_tasks, "SHARED_MEMORY", str(tmp_path))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/nowhere")
    batch = pa.record_batch({"rows": pa.array([[1.0, 2.0]])})
    (kept,) = spark_tasks.keep(True, "pemeans-", None, iter([batch]))
    assert Path(kept.column("file")[0].as_py()).parent == tmp_path


def test_what_memory_refuses_is_refused_in_the_same_words(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    data = frame(spark, 2)
    holes = as_frame()
    holes.iloc[7, 3], holes.iloc[7, 4] = np.inf, SECRET
    spoiled = data.withColumn(
        "c3", functions.when(functions.col("c1") > 1, float("inf")).otherwise(functions.lit(SECRET))
    )
    missing = data.withColumn("c3", functions.when(functions.col("c1") > 1, functions.lit(SECRET)))
    for refused, same in ((spoiled, holes), (missing, holes), (data.limit(0), as_frame()[:0])):
        with pytest.raises(DataError) as expected:
            read_table(same)
        with pytest.raises(DataError) as caught:
            fitted("PEMeans", refused)
        assert str(caught.value) == str(expected.value)
    for refused, words in (
        (data.withColumn("c3", functions.lit(f"{SECRET}")), "column 'c3' of X holds string, not numbers"),
        (
            data.select(functions.array("c1", functions.when(functions.col("c2") > 1, SECRET)).alias("rows")),
            "in column 1",
        ),
        (
            data.select(functions.when(functions.col("c2") > 1, functions.array("c1")).alias("rows")),
            "missing or of different len",
        ),
        (
            data.select(functions.expr("sequence(1, case when c2 > 1 then 2 else 1 end)")),
            "of different lengths",
        ),
        (data.select("c1", "c1"), "same name"),
        (
            data.select(functions.array(functions.lit(f"{SECRET}")).alias("c1")),
            "column 'c1' of X holds string",
        ),
    ):
        with pytest.raises(DataError, match=words) as caught:
            fitted("PEMeans", refused)
        assert "123456" not in str(caught.value)
    printed = capfd.readouterr()
    assert "123456" not in printed.out + printed.err
    with pytest.raises(DomainError, match="in memory"):
        DPKMeans(3, domain="from-data").fit(data)


def test_labels_are_a_lazy_column(spark: SparkSession) -> None:
    data = frame(spark, 3).withColumn("odd.name", functions.lit(1))
    named = PEMeans(3, domain=Domain.box(-8, 8), n_iterations=1, random_state=1).fit(as_frame())
    labeled = data.withColumn("cluster", named.predict(data.select(NAMES))).select("c0", "cluster")
    found = sorted(map(tuple, labeled.collect()))
    labels = named.predict(as_frame())
    assert found == sorted(zip(as_array()[:, 0].tolist(), labels.tolist(), strict=True))
    with pytest.raises(DataError, match="Feature names unseen at fit time"):
        named.predict(data)
    plain = PEMeans(3, domain=Domain.box(-8, 8), n_iterations=1, random_state=1).fit(as_array())
    arrays = data.select("c0", functions.array(*NAMES).alias("rows"))
    of_arrays = arrays.select("c0", plain.predict(arrays.select("rows"))).collect()
    assert sorted(map(tuple, of_arrays)) == found

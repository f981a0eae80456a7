"""Rows that are read in chunks give what the same rows in memory give, bit for bit; and are refused alike."""

from __future__ import annotations

import decimal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pemeans import DataError, Domain, DPKMeans, HDPEMeans, PEMeans
from pemeans.errors import DataTypeError
from pemeans.kernels.placing import Columns
from pemeans.privacy.statistics import NearestVotes
from pemeans.rows import stream
from pemeans.rows.base import ReadableSource, open_source
from pemeans.rows.stream import Part, StreamSource, spread
from pemeans.rows.table import read_table

N, D = 700, 18
RNG = np.random.default_rng(5)
X = np.concatenate([RNG.normal(c, 1, size=(N // 2, D)) for c in (-4, 4)])[RNG.permutation(N)]
NAMES = [f"column {j}" for j in range(D)]
TABLE = pa.table(dict(zip(NAMES, X.T, strict=True)))
DOMAIN = Domain.box(-8, np.linspace(7, 9, D))
SECRET = 123456.789


def in_parts(table: pa.Table, folder: Path, parts: int = 3, group: int = 64) -> Path:
    """A folder of files with several row groups, in which other programs left things."""
    folder.mkdir()
    size = -(-len(table) // parts)
    for i in range(parts):
        pq.write_table(table[i * size : (i + 1) * size], folder / f"part-{i}.parquet", row_group_size=group)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    return folder


def mapped(folder: Path, array: npt.NDArray[Any], mode: Any = "r", order: Any = "C", offset: int = 0) -> Any:
    path = folder / "rows.bin"
    whole = np.memmap(path, dtype=array.dtype, mode="w+", shape=array.shape, order=order, offset=offset)
    whole[:] = array
    whole.flush()
    return np.memmap(path, dtype=array.dtype, mode=mode, shape=array.shape, order=order, offset=offset)


def one_file(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "rows.parquet")
    return folder / "rows.parquet"


def partitioned(folder: Path) -> ds.Dataset:
    """The last column's values are in the names of the folders."""
    for value in np.unique(X[:, -1].round()):
        chosen = TABLE.filter(pa.array(X[:, -1].round() == value)).select(NAMES[:-1])
        place = folder / f"{NAMES[-1]}={value}"
        place.mkdir()
        pq.write_table(chosen, place / "0.parquet")
    kinds = pa.schema([(NAMES[-1], pa.float64())])
    return ds.dataset(folder, partitioning=ds.partitioning(kinds, flavor="hive"))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "file": one_file,
    "file as text": lambda folder: str(one_file(folder)),
    "folder": lambda folder: in_parts(TABLE, folder / "parts"),
    "folder with slash": lambda folder: f"{in_parts(TABLE, folder / 'parts')}/",
    "folder in a folder": lambda folder: in_parts(TABLE, folder / "parts").parent,
    "pattern": lambda folder: str(in_parts(TABLE, folder / "parts") / "*.parquet"),
    "pattern of folders": lambda folder: str(in_parts(TABLE, folder / "parts").parent / "**" / "*.parquet"),
    "dataset": lambda folder: ds.dataset(in_parts(TABLE, folder / "parts")),
    "dataset in memory": lambda _: ds.dataset(TABLE),
    "filtered dataset": lambda folder: ds.dataset(one_file(folder)).filter(ds.field(NAMES[0]) > -1e9),
    "memmap": lambda folder: mapped(folder, X),
    "memmap by columns": lambda folder: mapped(folder, X, order="F"),
    "memmap with a header": lambda folder: mapped(folder, X, offset=4099),
    "memmap to change": lambda folder: mapped(folder, X, mode="r+"),
    "private memmap": lambda folder: mapped(folder, X, mode="c"),
    "part of a memmap": lambda folder: mapped(folder, np.repeat(X, 2, axis=0))[::2],
    "memmap backward": lambda folder: mapped(folder, X[::-1].copy())[::-1],
}
METHODS: dict[str, Any] = {
    "PEMeans": lambda **more: PEMeans(
        2, n_iterations=3, n_variations=20, domain=DOMAIN, random_state=0, **more
    ),
    "HDPEMeans": lambda **more: HDPEMeans(
        2, n_iterations=4, n_variations=20, domain=DOMAIN, random_state=0, **more
    ),
    "DPKMeans": lambda **more: DPKMeans(2, domain=DOMAIN, random_state=0, **more),
}


def released(model: Any) -> tuple[bytes, bytes]:
    return model.cluster_centers_.tobytes(), model.cluster_sizes_.tobytes()


@pytest.fixture(scope="module")
def in_memory() -> dict[str, Any]:
    return {name: method(n_jobs=1).fit(X) for name, method in METHODS.items()}


@pytest.mark.parametrize("held", [0, stream.HELD_BYTES])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_the_same_fit_as_in_memory(
    source: Callable[[Path], Any],
    method: str,
    held: int,
    tmp_path: Path,
    in_memory: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "HELD_BYTES", held)
    data = source(tmp_path)
    model = METHODS[method](n_jobs=2).fit(data)
    assert released(model) == released(in_memory[method])
    assert model.n_features_in_ == D
    assert model.receipt_.n_rows == N
    if isinstance(data, np.memmap):
        assert not hasattr(model, "feature_names_in_")
        assert (data == X).all()
    else:
        assert list(model.feature_names_in_) == NAMES
        assert (model.predict(data) == model.predict(TABLE)).all()
        assert np.allclose(model.score(data), model.score(TABLE), rtol=1e-12)
        assert (model.transform(data) == model.transform(TABLE)).all()


@pytest.mark.parametrize("rows", [1, 7, 64, N - 1])
@pytest.mark.parametrize("held", [0, 20_000])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_chunks_and_threads_do_not_matter(
    rows: int,
    held: int,
    n_jobs: int,
    tmp_path: Path,
    in_memory: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "MOST_ROWS", rows)
    monkeypatch.setattr(stream, "HELD_BYTES", held)
    for module in ("parquet", "memmap"):
        monkeypatch.setattr(f"pemeans.rows.{module}.PART_ROWS", 2 * rows)
    folder = in_parts(TABLE, tmp_path / "parts")
    for data in (folder, ds.dataset(folder), mapped(tmp_path, X)):
        assert released(METHODS["PEMeans"](n_jobs=n_jobs).fit(data)) == released(in_memory["PEMeans"])


def test_rows_come_in_their_order(tmp_path: Path) -> None:
    for data in (in_parts(TABLE, tmp_path / "parts"), mapped(tmp_path, X)):
        source = open_source(data)
        assert isinstance(source, ReadableSource)
        assert (np.concatenate(list(source.chunks())) == X).all()


def test_columns_given_by_values_of_folders(tmp_path: Path) -> None:
    dataset = partitioned(tmp_path)
    whole = dataset.to_table().select(NAMES)
    model = METHODS["DPKMeans"]().fit(whole)
    assert released(METHODS["DPKMeans"]().fit(dataset)) == released(model)


def test_a_domain_from_the_data_is_the_same(tmp_path: Path) -> None:
    wanted = read_table(X).domain_of_rows()
    assert open_source(in_parts(TABLE, tmp_path / "parts")).domain_of_rows() == wanted
    assert read_table(X[::-1]).domain_of_rows() == wanted


KINDS: dict[str, Callable[[npt.NDArray[np.int64]], Any]] = {
    "float32": lambda v: pa.array((v / 7).astype(np.float32)),
    "float16": lambda v: pa.array((v / 8).astype(np.float16)),
    "float64": lambda v: pa.array(v / 7),
    "int8": lambda v: pa.array(v.astype(np.int8)),
    "uint64": lambda v: pa.array((v - v.min()).astype(np.uint64)),
    "int64": lambda v: pa.array(v + 2**53 + 1),
    "bool": lambda v: pa.array(v > 0),
    "decimal": lambda v: pa.array([decimal.Decimal(int(x)) / 1000 for x in v], pa.decimal128(20, 4)),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_any_kind_of_number(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(-100, 100, size=300)
    table = pa.table({"a": kind(numbers), "b": numbers / 10})
    method = PEMeans(2, domain=Domain.box(-50, 60), n_iterations=2, n_variations=9, random_state=0)
    assert released(method.fit(in_parts(table, tmp_path / "parts"))) == released(method.fit(table))


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "u8", "?"])
def test_memmaps_of_any_kind_of_number(dtype: str, tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 100, size=(300, 2)).astype(dtype)
    method = PEMeans(2, domain=Domain.box(0, 60), n_iterations=2, n_variations=9, random_state=0)
    assert released(method.fit(mapped(tmp_path, array))) == released(method.fit(array))


def test_columns_in_another_order_are_found_by_name(tmp_path: Path, in_memory: dict[str, Any]) -> None:
    folder = in_parts(TABLE, tmp_path / "parts")
    pq.write_table(pq.read_table(folder / "part-1.parquet").select(NAMES[::-1]), folder / "part-1.parquet")
    assert released(METHODS["DPKMeans"]().fit(folder)) == released(in_memory["DPKMeans"])


# --- What is refused --------------------------------------------------------------------------------------


def refused(data: Any, error: type[Exception] = DataError) -> str:
    """The message, after a look for secrets in all that a log would show."""
    with pytest.raises(error) as caught:
        METHODS["PEMeans"]().fit(data)
    assert isinstance(caught.value.__context__, FileNotFoundError | None)
    assert caught.value.__cause__ is None
    assert "123456" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_what_is_not_finite_is_said_in_the_same_words(tmp_path: Path) -> None:
    for i, bad in enumerate((None, np.nan, np.inf)):
        column = [SECRET] * 500 + [bad] + [SECRET] * 199
        table = TABLE.set_column(3, NAMES[3], pa.array(column, pa.float64()))
        wanted = refused(table)
        assert "contains NaN, infinity or a missing value in column 'column 3'" in wanted
        folder = in_parts(table, tmp_path / f"parts {i}")
        assert refused(folder) == refused(ds.dataset(folder)) == wanted


def test_missing_whole_numbers(tmp_path: Path) -> None:
    table = TABLE.set_column(0, NAMES[0], pa.array([123456, None] * (N // 2), pa.int64()))
    assert "missing value in column 'column 0'" in refused(in_parts(table, tmp_path / "parts"))


def test_memmaps_are_refused_in_the_same_words(tmp_path: Path) -> None:
    bad = X.copy()
    bad[600, 2] = np.nan
    for array in (bad, X[0], X[:, :2] + 1j, X.astype("M8[s]"), X.astype("S9")):
        assert refused(mapped(tmp_path, array)) == refused(array)


@pytest.mark.parametrize(
    "column", [pa.array(["123456"] * N), pa.array(["123456"] * N).dictionary_encode(), pa.nulls(N)]
)
def test_columns_that_hold_no_numbers(column: Any, tmp_path: Path) -> None:
    table = TABLE.append_column("name", column)
    folder = in_parts(table, tmp_path / "parts")
    message = refused(folder, DataTypeError)
    assert message == refused(ds.dataset(folder), DataTypeError) == refused(table, DataTypeError)
    assert message.startswith("column 'name' of X holds ")


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    assert "0 sample(s) (shape=(0, 18))" in refused(in_parts(TABLE[:0], tmp_path / "rows"))
    assert "0 feature(s)" in refused(in_parts(TABLE.select([]), tmp_path / "columns"))


def test_columns_of_the_same_name(tmp_path: Path) -> None:
    folder = in_parts(TABLE.append_column(NAMES[0], pa.array(X[:, 0])), tmp_path / "parts")
    assert "has 2 columns called 'column 0'" in refused(folder)


def test_files_that_differ(tmp_path: Path) -> None:
    folder = in_parts(TABLE, tmp_path / "parts")
    pq.write_table(TABLE.append_column("more", pa.array(X[:, 0])), folder / "part-1.parquet")
    assert "part-1.parquet has a column 'more', which" in refused(folder)
    pq.write_table(TABLE.rename_columns(["weight", *NAMES[1:]]), folder / "part-1.parquet")
    with pytest.raises(Exception, match=r"part-1\.parquet has no column 'column 0'; did you mean"):
        METHODS["PEMeans"]().fit(folder)
    pq.write_table(TABLE.set_column(0, NAMES[0], pa.array(["123456"] * N)), folder / "part-1.parquet")
    assert "column 'column 0' of X holds String" in refused(folder, DataTypeError)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    folder = in_parts(TABLE, tmp_path / "parts")
    assert refused("123456").startswith("X is text, and no file or folder is called so")
    assert refused(f"{folder}/*.parq").startswith("X is text")
    assert "no file matches" in refused(folder / "*.parq")
    assert "can't be read: No such file" in refused(folder / "part-9.parquet")
    (tmp_path / "nothing").mkdir()
    assert "has no file that ends in .parquet" in refused(tmp_path / "nothing")
    (folder / "part-1.parquet").write_bytes(b"PAR1" + b"123456" * 9)
    assert "part-1.parquet is damaged or not a Parquet file" in refused(folder)
    (folder / "part-1.parquet").write_bytes(b"")
    assert "part-1.parquet is empty" in refused(folder)
    (tmp_path / "hive" / "year=2020").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "hive" / "year=2020" / "0.parquet")
    assert "pass pyarrow.dataset.dataset(" in refused(tmp_path / "hive")


def test_damage_in_the_middle_of_a_file(tmp_path: Path) -> None:
    path = in_parts(TABLE, tmp_path / "parts") / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[1000:9000] = b"\xff" * 8000
    path.write_bytes(content)
    assert "part-1.parquet is damaged" in refused(path.parent)


def test_rows_that_vanish_while_a_fit_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HELD_BYTES", 0)
    folder = in_parts(TABLE, tmp_path / "parts")
    rows = open_source(folder).rows(DOMAIN.bind(N, D), 2)
    question = NearestVotes(np.zeros((1, D), dtype=np.int32))
    assert rows.total(question).tolist() == [N]
    pq.write_table(TABLE[:200], folder / "part-1.parquet", row_group_size=64)
    with pytest.raises(DataError, match="has changed while it was read"):
        rows.total(question)


def test_rows_that_vanish_before_they_are_held(tmp_path: Path) -> None:
    folder = in_parts(TABLE, tmp_path / "parts")
    source = open_source(folder)
    pq.write_table(TABLE[:200], folder / "part-1.parquet", row_group_size=64)
    with pytest.raises(DataError, match="has changed while it was read"):
        source.rows(DOMAIN.bind(N, D), 2)


def test_reprs_show_no_values(tmp_path: Path) -> None:
    source = open_source(in_parts(TABLE, tmp_path / "parts"))
    for thing in (source, source.rows(DOMAIN.bind(N, D), 1)):
        assert "[" not in repr(thing)
        assert str(N) not in repr(thing)


# --- How they are read ------------------------------------------------------------------------------------


def numbers(count: int, read: list[int]) -> Part:
    def part() -> Iterator[Columns]:
        for i in range(count):
            read.append(i)
            yield [np.array([float(i)])]

    return Part(count, part)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_few_chunks_are_in_memory_at_once(threads: int) -> None:
    read: list[int] = []
    seen = 0
    for _ in spread([numbers(100, read), numbers(100, read)], lambda columns: columns, threads):
        seen += 1
        assert len(read) - seen <= 6 * threads + 2
    assert seen == 200


def test_one_thread_keeps_the_order() -> None:
    found = spread([numbers(50, []), numbers(50, [])], lambda columns: columns[0][0], 1)
    assert list(found) == [*range(50), *range(50)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_ends_all_threads(threads: int) -> None:
    def broken() -> Iterator[Columns]:
        yield [np.zeros(1)]
        raise RuntimeError

    before = threading.active_count()
    with pytest.raises(RuntimeError):
        list(spread([numbers(1000, []), Part(1, broken)], len, threads))
    with pytest.raises(ZeroDivisionError):
        list(spread([numbers(1000, [])], lambda columns: 1 // 0, threads))
    for _ in spread([numbers(1000, [])], len, threads):
        break
    assert threading.active_count() == before


def test_sources_are_taken_as_they_are(tmp_path: Path) -> None:
    source = open_source(one_file(tmp_path))
    assert isinstance(source, StreamSource)
    assert open_source(source) is source


PROGRAM = """
import re, sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pemeans import Domain
from pemeans.privacy.statistics import SecondMoments
from pemeans.rows import stream
from pemeans.rows.base import open_source
stream.HELD_BYTES = 0

def looked_at(data, n, d):
    source = open_source(data, 2)
    source.rows(Domain.box(0, 1).bind(n, d), 2).total(SecondMoments(d))

def memory(name):
    return int(re.search(name + ":\\s*([0-9]+)", Path("/proc/self/status").read_text())[1])

n, d, kind, path = 4_000_000, 8, *sys.argv[1:]
if kind == "parquet":
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(d)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for i in range(4):
            chunk = np.random.default_rng(i).random((d, n // 4))
            file.write_table(pa.table(list(chunk), schema=schema))
    data = path
    pq.write_table(pa.table(list(chunk[:, :99]), schema=schema), path + ".parquet")
    looked_at(path + ".parquet", 99, d)
else:
    np.memmap(path, mode="w+", dtype="f8", shape=(n, d))[::1000] = 0.5
    data = np.memmap(path, mode="r", dtype="f8", shape=(n, d))
    looked_at(data[:99], 99, d)
pa.default_memory_pool().release_unused()
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = memory("VmRSS")
looked_at(data, n, d)
print((memory("VmHWM") - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
@pytest.mark.parametrize("kind", ["parquet", "memmap"])
def test_little_memory_is_used(kind: str, tmp_path: Path) -> None:
    """256 MB of rows: threads have 16 chunks or so of 4 MB in memory at once, and the libraries theirs."""
    command = [sys.executable, "-c", PROGRAM, kind, str(tmp_path / "rows.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 170

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from made_up import record

from pemeans.bench.store import Store, read_records, write_parquet
from pemeans.errors import DataError

RECORDS = [
    record("iris", "PEMeans", 0.25, 0, 0.125, accuracy=0.5),
    record("toy", "PEMeans", inf, 1, 0.1, parameters='{"selection": "top-k"}', trace=b"\x00\xff"),
    record("iris", "LSHKMeans", 1.0, 0, None, error="ValueError: no"),
]


def filled(path: Path) -> Path:
    with Store(path) as store:
        for one in RECORDS:
            store.add(one.suite, one.outcome)
    return path


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    assert read_records([filled(tmp_path / "r.sqlite")]) == RECORDS


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    write_parquet(RECORDS, tmp_path / "runs.parquet")
    assert read_records([tmp_path / "runs.parquet"]) == RECORDS


def test_a_run_that_is_repeated_replaces_its_row(tmp_path: Path) -> None:
    path = filled(tmp_path / "r.sqlite")
    with Store(path) as store:
        store.add("smoke", replace(RECORDS[2].outcome, error=None, loss=0.5))
        assert len(store.records()) == 3
        assert len(store.finished()) == 3


def test_failed_runs_are_not_finished(tmp_path: Path) -> None:
    with Store(filled(tmp_path / "r.sqlite")) as store:
        assert store.finished() == {one.run for one in RECORDS[:2]}


def test_of_several_files_the_later_counts(tmp_path: Path) -> None:
    other = record("iris", "PEMeans", 0.25, 0, 9.0)
    write_parquet([other], tmp_path / "later.parquet")
    found = read_records([filled(tmp_path / "r.sqlite"), tmp_path / "later.parquet"])
    assert len(found) == 3
    assert other in found


def test_files_that_are_no_results_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("hello " * 1000)
    (tmp_path / "x.parquet").write_text("hello")
    for name in ("x.sqlite", "x.parquet", "missing.sqlite"):
        with pytest.raises(DataError, match=name):
            read_records([tmp_path / name])

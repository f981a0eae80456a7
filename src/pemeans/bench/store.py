"""Results in one SQLite file, a row a run, safe against being killed at any moment."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pemeans.bench.runs import Outcome, Run
from pemeans.errors import DataError

SCHEMA = """
CREATE TABLE IF NOT EXISTS environments (id INTEGER PRIMARY KEY, description TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS runs (
    suite TEXT NOT NULL,
    dataset TEXT NOT NULL,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL,
    epsilon REAL NOT NULL,
    repeat INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    loss REAL,
    accuracy REAL,
    seconds REAL,
    peak_memory INTEGER,
    trace BLOB,
    error TEXT,
    finished TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments (id),
    PRIMARY KEY (dataset, method, parameters, epsilon, repeat)
);
"""
FIELDS = (
    "suite", "dataset", "method", "parameters", "epsilon", "repeat", "seed", "loss", "accuracy", "seconds",
    "peak_memory", "trace", "error", "finished",
)  # fmt: skip
SELECT = (
    f"SELECT {', '.join(f'runs.{field}' for field in FIELDS)}, environments.description AS environment "
    "FROM runs JOIN environments ON environments.id = runs.environment"
)
PARQUET = ".parquet"
PAGES_BESIDE = 50
"""About as many rows."""


@dataclass(frozen=True)
class Record:
    """A finished run as it is read back."""

    suite: str
    run: Run
    outcome: Outcome


class Store:
    """The results file of one or more suites.

    A run is known by data set, method, parameters, epsilon and repeat, whatever suite it is part of: suites
    that share runs share results.

    Parameters
    ----------
    path : Path
        The file; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Every row is a transaction of its own. In WAL mode a killed process loses what it did not
            # commit, and nothing else; only a power cut may also take the last few rows.
            self._db = sqlite3.connect(path, isolation_level=None, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            # What is committed waits in a file beside this one; move it over often, but not at every row,
            # as that waits for the disk.
            self._db.execute(f"PRAGMA wal_autocheckpoint={PAGES_BESIDE}")
            self._db.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise DataError(
                f"{path} can't be used as a results file ({error}); choose another --out"
            ) from None
        self._environments: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add(self, suite: str, outcome: Outcome) -> None:
        """Write one row, in the place of an earlier one of the same run."""
        run = outcome.run
        values = (
            suite, run.dataset, run.method, run.parameters, run.epsilon, run.repeat, run.seed, outcome.loss,
            outcome.accuracy, outcome.seconds, outcome.peak_memory, outcome.trace, outcome.error,
            outcome.finished, self._environment(outcome.environment),
        )  # fmt: skip
        marks = ", ".join("?" * len(values))
        self._db.execute(
            f"INSERT OR REPLACE INTO runs ({', '.join(FIELDS)}, environment) VALUES ({marks})", values
        )

    def finished(self) -> set[Run]:
        """All runs that ended without an error."""
        rows = self._db.execute(
            "SELECT dataset, method, parameters, epsilon, repeat FROM runs WHERE error IS NULL"
        )
        return {Run(*row) for row in rows}

    def seconds(self) -> list[tuple[Run, float]]:
        """How long every finished run took."""
        rows = self._db.execute(
            "SELECT dataset, method, parameters, epsilon, repeat, seconds FROM runs WHERE error IS NULL"
        )
        return [(Run(*row[:-1]), row[-1]) for row in rows]

    def records(self) -> list[Record]:
        """All rows."""
        self._db.row_factory = sqlite3.Row
        return [_record(dict(row)) for row in self._db.execute(SELECT)]

    def _environment(self, description: str) -> int:
        if description not in self._environments:
            self._db.execute("INSERT OR IGNORE INTO environments (description) VALUES (?)", (description,))
            found = self._db.execute("SELECT id FROM environments WHERE description = ?", (description,))
            self._environments[description] = int(found.fetchone()[0])
        return self._environments[description]


def read_records(paths: Iterable[Path]) -> list[Record]:
    """All rows of one or more results files: SQLite as the runner writes them, or Parquet as reports do.

    Where files hold the same run, the one of the later file counts.
    """
    found: dict[Run, Record] = {}
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path} is not there; run a suite first: pemeans bench run table1 --out {path}")
        for record in _read(path):
            found[record.run] = record
    return list(found.values())


def write_parquet(records: Iterable[Record], path: Path) -> None:
    """The same rows in a compact form that is fit for keeping."""
    rows = [
        {**{field: _value(record, field) for field in FIELDS}, "environment": record.outcome.environment}
        for record in records
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd")


def _read(path: Path) -> list[Record]:
    try:
        if path.suffix == PARQUET:
            return [_record(row) for row in pq.read_table(path).to_pylist()]
        with Store(path) as store:
            return store.records()
    except (pa.ArrowException, sqlite3.Error, KeyError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is not a results file ({' '.join(str(error).split())[:80]})") from None


def _record(row: dict[str, Any]) -> Record:
    run = Run(row["dataset"], row["method"], row["parameters"], float(row["epsilon"]), int(row["repeat"]))
    measured = ("finished", "environment", "loss", "accuracy", "seconds", "peak_memory", "trace", "error")
    return Record(row["suite"], run, Outcome(run, **{field: row[field] for field in measured}))


def _value(record: Record, field: str) -> Any:
    if field == "suite":
        return record.suite
    return getattr(record.run if hasattr(record.run, field) else record.outcome, field)

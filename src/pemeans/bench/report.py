"""Everything that is made of results: tables, figures, the page, and a compact copy of the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pemeans.bench.analysis import Results
from pemeans.bench.figures import draw_all
from pemeans.bench.findings import as_markdown, detailed, differences, findings
from pemeans.bench.page import page
from pemeans.bench.rendering import FORMATS
from pemeans.bench.store import read_records, write_parquet
from pemeans.bench.tables import Table1, build
from pemeans.errors import DataError

TABLE_FILE, SUMMARY_FILE, PAGE_FILE, RUNS_FILE = "table1", "summary.md", "index.html", "runs.parquet"


def write_report(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Write the report of some results files.

    Parameters
    ----------
    sources : sequence of Path
        Files of `pemeans bench run`, or copies from earlier reports.
    folder : Path
        Where everything goes; made if it is not there.

    Returns
    -------
    list of Path
        The files: the table in each format, what it comes to beside the paper, the figures, the results, and
        the page, which holds all of it.
    """
    records = read_records(sources)
    if not records:
        raise DataError(f"{', '.join(map(str, sources))}: no run has finished yet; run a suite first")
    results = Results(records)
    folder.mkdir(parents=True, exist_ok=True)
    table = build(results)
    written = [folder / f"{TABLE_FILE}.{ending}" for ending in FORMATS if table.rows]
    for path in written:
        path.write_text(FORMATS[path.suffix[1:]](table), encoding="utf-8")
    if table.rows:
        written.append(folder / SUMMARY_FILE)
        written[-1].write_text(_summary(results, table), encoding="utf-8")
    drawn, without = draw_all(results, folder)
    written += [path for figure in drawn for path in (figure.png, figure.svg)]
    write_parquet(records, folder / RUNS_FILE)
    (folder / PAGE_FILE).write_text(page(results, table, drawn, without), encoding="utf-8")
    return [*written, folder / RUNS_FILE, folder / PAGE_FILE]


def _summary(results: Results, table: Table1) -> str:
    """Means and comparisons with the paper, to be read without a browser."""
    found = [*findings(results, table), detailed(differences(results, table))]
    return f"# Summary\n\nWritten by `pemeans bench report`; not to be edited.\n\n{as_markdown(found)}"

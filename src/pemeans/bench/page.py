"""One HTML page with all of it, which needs nothing but itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from html import escape
from statistics import fmean

from pemeans.bench.analysis import Results
from pemeans.bench.figures import Drawn, Plate
from pemeans.bench.findings import Finding, findings
from pemeans.bench.methods import ALL_METHODS, METHODS
from pemeans.bench.registry import REGISTRY, find
from pemeans.bench.rendering import as_html
from pemeans.bench.tables import Table1

STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #5c6670; --line: #dfe3e8; --best: #e3f3e6; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 90rem; padding: 2rem 1.2rem 4rem; color: var(--ink); background: #fff;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 52rem; }
.lead { color: var(--soft); margin-top: 0; }
nav a { display: inline-block; margin-right: 1.1rem; }
a { color: #0b5cad; }
.wide { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; font-size: .78rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .45rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
         white-space: nowrap; }
th { min-width: 2.2rem; font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
table.text td, table.text th { text-align: left; white-space: normal; }
table.findings { font-size: .86rem; }
table.findings td:first-child, table.findings th:first-child { min-width: 11rem; max-width: 30rem;
                                                              white-space: normal; }
table.findings th { min-width: 5rem; max-width: 9rem; }
table.results { font-size: .72rem; }
table.results th[colspan] { text-align: center; }
table.results th, table.results td { padding-inline: .28rem; }
table.results .size { display: block; color: var(--soft); font-size: .72rem; }
table.results thead th { position: sticky; top: 0; background: #fff; }
td.best { background: var(--best); }
table.results td:first-child, table.results th:first-child { position: sticky; left: 0; background: #fff; }
tfoot td { color: var(--soft); }
tfoot td:first-child { white-space: normal; }
.half { display: block; font-size: .74rem; }
.paper { display: block; color: var(--soft); font-size: .74rem; }
figure { margin: 1.6rem 0 2.2rem; }
figure img { min-width: 40rem; max-width: 100%; height: auto; border: 1px solid var(--line);
             border-radius: 4px; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 52rem; margin-top: .4rem; }
.warning { background: #fff6e0; border: 1px solid #e8cf8f; border-radius: 4px; padding: .7rem 1rem;
           max-width: 52rem; }
"""
PROTOCOL = (
    "Every data set is centered by its mean and divided by its largest norm; this uses the private rows, "
    "and is the same advantage for every method. The radius is 1; methods that want a box are told the "
    "exact largest coordinate.",
    "delta = n<sup>-1.1</sup>; epsilon is 0.25, 0.5, 1, 2 and 4. DP-Lloyd and Balcan et al. keep pure "
    "epsilon-differential privacy, without a delta.",
    "The loss is the mean squared distance of the rows to the nearest center. It is computed by the "
    "benchmark from the centers, not by the methods. The area under the loss over epsilon is taken by the "
    "trapezoidal rule, repeat by repeat; a constant loss c gives 3.75 c. Non-private is scikit-learn's "
    "KMeans with one start.",
    "Intervals are 95 % confidence intervals of the mean over repeats (Student's t). Seeds follow from "
    "data set, method, epsilon and number of the repeat. A seeded run is not private: seeds are for "
    "studies.",
    "An improvement is 1 - (best of ours) / (best of the baselines), data set by data set, from the mean "
    "areas. With two methods the smaller of two means is taken, as in the paper, which favors whoever has "
    "more methods.",
    "A star marks data that are not the paper's own numbers; gray figures in the table are the paper's, "
    "which rounds to four decimals.",
)


def page(results: Results, table: Table1, drawn: Sequence[Drawn], without: Sequence[Plate]) -> str:
    """The whole page."""
    sections = {
        "summary": ("Summary", _summary(results, table)),
        "table1": ("Table 1", _table(table)),
        "figures": ("Figures", _figures(drawn, without)),
        "protocol": ("Protocol", _items(PROTOCOL)),
        "runs": ("Runs, repeats and time", _runs(results) + _failures(results)),
        "data": ("Data sets", _data(results)),
        "machine": ("Machine and versions", _machine(results)),
    }
    links = "".join(f'<a href="#{anchor}">{title}</a>' for anchor, (title, _) in sections.items())
    body = "".join(
        f'<section id="{anchor}"><h2>{title}</h2>\n{content}</section>\n'
        for anchor, (title, content) in sections.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>pemeans benchmark</title>\n<style>{STYLE}</style></head>\n<body>\n"
        "<h1>k-means with differential privacy: the methods compared</h1>\n"
        '<p class="lead">Made by <code>pemeans bench report</code> from the runs described below.</p>\n'
        f"<nav>{links}</nav>\n{body}</body></html>\n"
    )


def _summary(results: Results, table: Table1) -> str:
    finished = len(results.records) - len(results.failed)
    number = f"{finished:,} runs of {len(_methods(results))} methods on {len(results.datasets)} data sets."
    parts = [_found(finding) for finding in findings(results, table)]
    return f"<p>{number}</p>\n" + _unfinished(results, table) + "".join(parts)


def _found(finding: Finding) -> str:
    text = escape(finding.text).replace(" %", "&nbsp;%")
    return (
        f"<h3>{escape(finding.title)}</h3>\n<p>{text}</p>\n"
        f"{_plain_table(finding.head, finding.lines, kind='findings')}"
    )


def _unfinished(results: Results, table: Table1) -> str:
    """A warning where numbers are few or of different sources."""
    remarks = []
    repeats = [c.ours.repeats for row in table.rows for c in row.cells.values() if c.ours]
    if repeats and min(repeats) < max(repeats):
        remarks.append(
            f"Methods and data sets have different numbers of repeats, from {min(repeats)} to {max(repeats)}."
        )
    if repeats and min(repeats) < 2:
        remarks.append("Where there is one repeat only, no interval is given, and the number means little.")
    sources = {json.loads(record.outcome.environment)["source"] for record in results.records}
    if len(sources) > 1:
        remarks.append(
            f"The runs are of {len(sources)} different versions of the source; which methods ran with which "
            "stands at the end of this page."
        )
    if results.failed:
        remarks.append(
            f"{len(results.failed):,} runs failed; they are listed below and not part of any mean."
        )
    return f'<div class="warning">{" ".join(remarks)}</div>\n' if remarks else ""


def _table(table: Table1) -> str:
    if not table.rows:
        return "<p>No data set has results at all five budgets yet; run the suite table1.</p>\n"
    return (
        "<p>Area under the loss over epsilon: mean ± half width of the 95 % interval; the best private "
        "method of each row is marked; the paper's figure is gray. A star: not the paper's own data. On a "
        "narrow screen the table scrolls sideways.</p>\n"
        f'<div class="wide">{as_html(table)}</div>\n'
    )


def _figures(drawn: Sequence[Drawn], without: Sequence[Plate]) -> str:
    text = ""
    for figure in drawn:
        image = base64.b64encode(figure.png.read_bytes()).decode("ascii")
        title, caption = escape(figure.plate.title), escape(figure.plate.caption)
        text += (
            f'<figure id="{figure.plate.name}"><div class="wide"><img alt="{title}" '
            f'src="data:image/png;base64,{image}"></div>\n'
            f"<figcaption><strong>{title}.</strong> {caption}</figcaption></figure>\n"
        )
    if without:
        names = "; ".join(f"{escape(plate.title)} (suite {plate.suite})" for plate in without)
        text += f"<p>Not drawn, as there are no results for them: {names}.</p>\n"
    return text


def _items(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>\n"


def _methods(results: Results) -> list[str]:
    ran = {record.run.method for record in results.records}
    return [method.name for method in ALL_METHODS if method.name in ran]


def _runs(results: Results) -> str:
    """How often each method ran, how long that took, and what memory."""
    lines = []
    for name in _methods(results):
        mine = [r for r in results.records if r.run.method == name and r.outcome.error is None]
        if not mine:
            continue
        repeats: dict[tuple[str, str, str, float], int] = {}
        for record in mine:
            repeats[record.run.cell] = repeats.get(record.run.cell, 0) + 1
        seconds = [record.outcome.seconds or 0.0 for record in mine]
        peak = max(record.outcome.peak_memory or 0 for record in mine)
        low, high = min(repeats.values()), max(repeats.values())
        lines.append(
            [
                METHODS[name].label,
                f"{len(mine):,}",
                f"{low}" if low == high else f"{low} to {high}",
                f"{fmean(seconds):.3f}",
                f"{max(seconds):.2f}",
                f"{sum(seconds) / 60:.1f}",
                f"{peak / 2**20:,.0f}",
            ]
        )
    head = ["Method", "runs", "repeats of a setting", "mean s", "longest s", "all min", "peak memory MiB"]
    remark = "<p>Times are of the fit alone, in one thread; memory is that of the whole process.</p>\n"
    return remark + _plain_table(head, lines)


def _failures(results: Results) -> str:
    if not results.failed:
        return "<p>No run failed.</p>\n"
    shown = results.failed[:50]
    lines = [
        [o.run.method, o.run.dataset, f"{o.run.epsilon:g}", str(o.run.repeat), (o.error or "")[:200]]
        for o in shown
    ]
    more = (
        f"<p>and {len(results.failed) - len(shown):,} more.</p>\n" if len(results.failed) > len(shown) else ""
    )
    head = ["Failed: method", "data set", "epsilon", "repeat", "error"]
    return _plain_table(head, lines, kind="text") + more


def _data(results: Results) -> str:
    """Where the data come from; a line for all data sets of which the same is to be said."""
    alike: dict[tuple[str, ...], list[str]] = {}
    registered = [name for name in REGISTRY if name in results.datasets]
    for name in dict.fromkeys([*registered, *results.datasets]):
        alike.setdefault(_about(name), []).append(name)
    lines = [[", ".join(names), *about] for about, names in alike.items()]
    head = ["Data sets", "Source and remarks", "Paper's numbers?", "License"]
    return _plain_table(head, lines, kind="text")


def _about(name: str) -> tuple[str, ...]:
    """Source and remarks, whether it is the paper's own, license."""
    entry = find(name)
    if entry is None:
        return "not registered: somebody's own", "", ""
    return (
        f"{entry.source}. {entry.note}".strip(),
        "yes" if entry.same_as_paper else "no",
        entry.license,
    )


def _machine(results: Results) -> str:
    lines = []
    for description in dict.fromkeys(record.outcome.environment for record in results.records):
        facts = json.loads(description)
        mine = [r.run.method for r in results.records if r.outcome.environment == description]
        methods = ", ".join(METHODS[name].label for name in METHODS if name in mine)
        packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
        lines.append(
            [
                f"{len(mine):,}",
                methods,
                f"{facts['processor']}, {facts['cores']} cores, {facts['system']}",
                f"Python {facts['python']}, {packages}",
                facts["source"],
            ]
        )
    return _plain_table(["Runs", "Methods", "Machine", "Versions", "Source fingerprint"], lines, kind="text")


def _plain_table(head: Sequence[str], lines: Sequence[Sequence[str]], kind: str = "numbers") -> str:
    row = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>\n" for line in lines
    )
    table = f'<table class="{kind}"><thead><tr>{row}</tr></thead><tbody>\n{body}</tbody></table>'
    return f'<div class="wide">{table}</div>\n'

"""Table 1 as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from html import escape
from math import floor, isnan, log10
from textwrap import wrap

from pemeans.bench.analysis import Estimate
from pemeans.bench.tables import EVOLUTION, PAPER_IMPROVEMENT, Cell, Row, Summary, Table1

DECIMALS = 4
"""As in the paper; our own small numbers get more."""
NONE, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
PLUS_MINUS = " ± "
NARROW = 12
"""Letters in a line of a title in LaTeX."""
FACTS = 4
"""Columns before the methods: name, n, d and k."""
PAPER_TITLE = "Paper's improvement"
GROUP_TITLE = "Improvement over the best baseline"


def plus_minus(found: Estimate) -> str:
    """A mean and the half width of its interval, to the same decimals.

    Examples
    --------
    >>> plus_minus(Estimate(mean=0.000101, half=2.6e-6, repeats=20))
    '0.000101 ± 0.000003'
    """
    decimals = _decimals(found.mean)
    return f"{found.mean:.{decimals}f}" + (
        "" if isnan(found.half) else f"{PLUS_MINUS}{found.half:.{decimals}f}"
    )


def _decimals(value: float) -> int:
    """Four, or as many as show three digits."""
    return DECIMALS if value >= 0.01 or value <= 0 else 2 - floor(log10(value))


def percent(share: float) -> str:
    """A share in percent, with its sign."""
    return NONE if isnan(share) else f"{100 * share:+.2f} %"


def as_csv(table: Table1) -> str:
    """Every number in full: means, half widths of the intervals, repeats, and the paper's figures."""
    head = ["dataset", "n", "d", "k", "same_data_as_paper"]
    for method in table.methods:
        head += [method.name, f"{method.name}_ci95", f"{method.name}_repeats", f"{method.name}_paper"]
    improvements = [*(c.name for c in table.comparisons), PAPER_IMPROVEMENT]
    head += ["best", *(f"improvement_{name}" for name in improvements)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in table.rows:
        line: list[object] = [row.dataset, *row.size, int(row.same_as_paper)]
        for method in table.methods:
            cell = row.cells[method.name]
            ours = [cell.ours.mean, cell.ours.half, cell.ours.repeats] if cell.ours else ["", "", 0]
            line += [*ours, "" if cell.paper is None else cell.paper]
        writer.writerow([*line, row.best, *(row.improvements[name] for name in improvements)])
    return text.getvalue()


def as_markdown(table: Table1) -> str:
    """Mean ± half width of the interval, best in bold, the paper's figure in brackets."""

    def cell(value: Cell, best: bool) -> str:
        ours = "" if value.ours is None else plus_minus(value.ours)
        ours = f"**{ours}**" if best and ours else ours
        return " ".join(part for part in (ours, _bracketed(value)) if part) or NONE

    lines = [_head(table), *(_line(table, row, cell) for row in table.rows), *_foot(table)]
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [lines[0], rule, *lines[1:]])


def as_html(table: Table1) -> str:
    """A table element with classes for a style sheet; n, d and k stand below the name of a data set."""

    def cell(value: Cell, best: bool) -> str:
        mean, _, half = plus_minus(value.ours).partition(PLUS_MINUS) if value.ours else (NONE, "", "")
        strong = f"<strong>{mean}</strong>" if best else mean
        strong += f'<span class="half">{PLUS_MINUS}{half}</span>' if half else ""
        return strong + ("" if value.paper is None else _gray(f"{value.paper:.{DECIMALS}f}"))

    columns = _columns(table)[FACTS:-1]
    beside = next((c.name for c in table.comparisons if c.ours == EVOLUTION), None)

    def line(values: list[str], paper: str, best: str | None = None) -> str:
        text = ""
        for column, value in zip(columns, values, strict=True):
            mark = " class='best'" if column == best else ""
            text += f"<td{mark}>{value}{_gray(paper) if column == beside else ''}</td>"
        return text

    head = f"<tr><th colspan='{1 + len(table.methods)}'></th>"
    head += f"<th colspan='{len(table.comparisons)}'>{GROUP_TITLE}</th></tr>\n" if beside else "</tr>\n"
    head += "<tr><th>Data set</th>"
    for title in _head(table)[FACTS:-1]:
        head += f"<th>{escape(title.replace(' improvement', ''))}</th>"
    body = ""
    for row in table.rows:
        name, n, d, k, *values, paper = _line(table, row, cell)
        first = f'<td>{escape(name)}<span class="size">n {n}, d {d}, k {k}</span></td>'
        body += f"<tr>{first}{line(values, paper, row.best)}</tr>\n"
    foot = ""
    for title, _, _, _, *values, paper in _foot(table):
        foot += f"<tr><td>{escape(title)}</td>{line(values, paper)}</tr>\n"
    return (
        f"<table class='results'>\n<thead>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n"
        f"<tfoot>\n{foot}</tfoot>\n</table>\n"
    )


def _gray(paper: str) -> str:
    """A figure of the paper, where there is one."""
    return f'<span class="paper">{paper}</span>' if paper not in ("", NONE) else ""


def as_latex(table: Table1) -> str:
    """A tabular for the packages booktabs and xcolor, to be scaled to the width of a page."""

    def cell(value: Cell, best: bool) -> str:
        mean, _, half = plus_minus(value.ours).partition(PLUS_MINUS) if value.ours else (NONE, "", "")
        lines = [rf"\textbf{{{mean}}}" if best else _latex(mean)]
        lines += [rf"\scriptsize$\pm$ {half}"] if half else []
        lines += [] if value.paper is None else [rf"\scriptsize\color{{gray}}{value.paper:.{DECIMALS}f}"]
        return _stacked(lines, "t", "r")

    first, *titles = _head(table)
    head = [first, *(_stacked(map(_latex, wrap(title, NARROW)), "b", "r") for title in titles)]
    rows = []
    for row in table.rows:
        line = _line(table, row, cell)
        beside = len(line) - len(table.comparisons) - 1
        cells = [text if FACTS <= i < beside else _latex(text) for i, text in enumerate(line)]
        rows.append(" & ".join(cells) + r" \\ \addlinespace[2pt]")
    foot = [
        " & ".join([_stacked(map(_latex, wrap(title, 2 * NARROW)), "t", "l"), *map(_latex, line)]) + r" \\"
        for title, *line in _foot(table)
    ]
    columns = "l" + "r" * (len(head) - 1)
    lines = [
        "% needs \\usepackage{booktabs,xcolor,graphicx}; gray: the figure of the paper; fits a page within",
        "% \\resizebox{\\textwidth}{!}{...}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *rows,
        r"\midrule",
        *foot,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Table1], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "html": as_html,
}
"""How to write the table, by file ending."""


def _columns(table: Table1) -> list[str]:
    """What stands in each column, methods by their names."""
    return ["", "", "", "", *(m.name for m in table.methods), *(c.name for c in table.comparisons), ""]


def _head(table: Table1) -> list[str]:
    titles = (m.label for m in table.methods)
    return ["Data set", "n", "d", "k", *titles, *(c.title for c in table.comparisons), PAPER_TITLE]


def _line(table: Table1, row: Row, cell: Callable[[Cell, bool], str]) -> list[str]:
    first = [row.dataset + ("" if row.same_as_paper else "*"), *map(_count, row.size)]
    cells = [cell(row.cells[m.name], m.name == row.best) for m in table.methods]
    improvements = [percent(row.improvements[c.name]) for c in table.comparisons]
    return [*first, *cells, *improvements, percent(row.improvements[PAPER_IMPROVEMENT])]


def _count(number: int) -> str:
    return str(number) if number else NONE


def _foot(table: Table1) -> list[list[str]]:
    """Two lines for each summary: ratios with the mean improvements, then the paper's ratios."""
    lines = []
    for summary in table.summaries:
        improvements = [percent(summary.improvements[c.name]) for c in table.comparisons]
        ours = _ratios(table, summary, summary.ratios)
        paper = _ratios(table, summary, summary.paper_ratios)
        last = percent(summary.improvements[PAPER_IMPROVEMENT])
        lines.append([f"Mean, {summary.title}", "", "", "", *ours, *improvements, last])
        lines.append([f"The paper's, {summary.title}", "", "", "", *paper, *[""] * len(improvements), ""])
    return lines


def _ratios(table: Table1, summary: Summary, ratios: dict[str, float]) -> list[str]:
    return ["" if isnan(r := ratios.get(m.name, float("nan"))) else f"{TIMES} {r:.3f}" for m in table.methods]


def _bracketed(cell: Cell) -> str:
    return "" if cell.paper is None else f"[{cell.paper:.{DECIMALS}f}]"


def _stacked(lines: Iterable[str], place: str, side: str) -> str:
    """Lines above one another in one cell."""
    # The braces keep LaTeX from taking a bracket that follows for an argument.
    return rf"\begin{{tabular}}[{place}]{{@{{}}{side}@{{}}}}" + r"\\{}".join(lines) + r"\end{tabular}"


def _latex(text: str) -> str:
    """Plain text for LaTeX."""
    for plain, written in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), (TIMES, r"$\times$"), (NONE, "--")):
        text = text.replace(plain, written)
    return text

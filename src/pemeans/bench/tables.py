"""Table 1: areas under the loss curve of all methods on all data sets, beside the paper's."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from math import exp, isnan, log, nan
from statistics import fmean

from pemeans.bench.analysis import Estimate, Results, estimate
from pemeans.bench.datasets import size_of
from pemeans.bench.methods import ALL_METHODS, METHODS, REFERENCE, Method, Role
from pemeans.bench.registry import TABLE1, find
from pemeans.errors import DataError

FASTLLOYDS = ("FastLloydPaper", "FastLloyd6", "FastLloyd")
"""As in the paper's runs; told the box of the data; and by its authors' own rule of iterations besides."""
SAME_BELOW = "PEMeans"
"""What HDPE-means is on data of at most 16 dimensions."""


@dataclass(frozen=True)
class Cell:
    """One method on one data set: ours, and the paper's figure where there is one."""

    ours: Estimate | None
    paper: float | None


@dataclass(frozen=True)
class Row:
    """One data set."""

    dataset: str
    size: tuple[int, int, int]
    same_as_paper: bool
    cells: dict[str, Cell]
    best: str | None
    improvements: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    """One column of improvements: the best of some methods against the best of some others."""

    name: str
    title: str
    words: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    needs: frozenset[str] = frozenset()
    """Methods without which the title would promise too much."""
    printed: bool = False
    """Against the figures that the paper prints for the baselines, not against our own runs of them."""


EVOLUTION = tuple(method.name for method in ALL_METHODS if method.role is Role.EVOLUTION)
BASELINES = tuple(method.name for method in ALL_METHODS if method.role is Role.BASELINE)


def _against(name: str, title: str, words: str, fastlloyd: str) -> Comparison:
    """Private Evolution against the baselines, with one variant of FastLloyd only."""
    theirs = tuple(method for method in BASELINES if method == fastlloyd or method not in FASTLLOYDS)
    return Comparison(name, title, words, EVOLUTION, theirs, frozenset({fastlloyd}))


COMPARISONS = (
    _against(
        "as_in_paper",
        "PE improvement, FastLloyd as in the paper",
        "PE-means or HDPE-means against baselines with FastLloyd as the paper ran it: six iterations, box "
        "[-1, 1]",
        "FastLloydPaper",
    ),
    _against(
        "six_iterations",
        "PE improvement, FastLloyd with T=6",
        "PE-means or HDPE-means against baselines with FastLloyd at six iterations, in the data's box",
        "FastLloyd6",
    ),
    _against(
        "own_rule",
        "PE improvement, FastLloyd by its own rule",
        "PE-means or HDPE-means against baselines with FastLloyd by its authors' rule, in the data's box",
        "FastLloyd",
    ),
    Comparison(
        "dpkmeans", "DPKMeans improvement", "DPKMeans against all baselines", ("DPKMeans",), BASELINES
    ),
    Comparison(
        "dpkmeans_printed",
        "DPKMeans improvement, baselines as printed",
        "DPKMeans against the baselines' figures as the paper prints them",
        ("DPKMeans",),
        BASELINES,
        printed=True,
    ),
)
"""The paper's improvement column, the same with a fair FastLloyd, and DPKMeans over all baselines: over ours,
which are stronger than the paper's, and over the paper's figures."""
PAPER_IMPROVEMENT = "paper"


@dataclass(frozen=True)
class Summary:
    """A line below the table: a mean over some data sets."""

    title: str
    datasets: tuple[str, ...]
    ratios: dict[str, float]
    paper_ratios: dict[str, float]
    improvements: dict[str, float]


@dataclass(frozen=True)
class Table1:
    """The whole table."""

    methods: tuple[Method, ...]
    comparisons: tuple[Comparison, ...]
    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]


def paper_table() -> dict[str, dict[str, float]]:
    """The paper's Table 1: by data set, then by column.

    Examples
    --------
    >>> paper_table()["iris"]["pe_means"]
    0.2894
    """
    with resources.files("pemeans.bench").joinpath("paper_table1.csv").open(encoding="utf-8") as file:
        records = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            record["dataset"]: {name: float(v) for name, v in record.items() if v and name != "dataset"}
            for record in records
        }


def build(results: Results) -> Table1:
    """The table of whatever data sets have results at all five budgets."""
    paper = paper_table()
    known = [name for name in TABLE1 if name in results.datasets]
    others = [name for name in results.datasets if name not in TABLE1]
    ran = {record.run.method for record in results.records}
    made = (_row(results, name, paper.get(name, {}), ran) for name in (*known, *others))
    rows = [row for row in made if row is not None]
    methods = tuple(m for m in ALL_METHODS if any(row.cells[m.name].ours for row in rows))
    there = {method.name for method in methods}
    comparisons = tuple(
        c for c in COMPARISONS if there & set(c.ours) and there & set(c.theirs) and there >= c.needs
    )
    listed = [row for row in rows if row.dataset in paper]
    same = [row for row in listed if row.same_as_paper]
    groups = [("all data sets of the paper", listed), ("those with the paper's own numbers", same)]
    summaries = tuple(_summary(title, group, methods, paper) for title, group in groups if group)
    return Table1(methods, comparisons, tuple(rows), summaries)


def _row(results: Results, dataset: str, paper: dict[str, float], ran: set[str]) -> Row | None:
    """None where no private method has run at all budgets; `ran` names the methods with results anywhere."""
    cells = {}
    for method in ALL_METHODS:
        areas = results.areas(dataset, method.name)
        ours = estimate(areas) if len(areas) else None
        cells[method.name] = Cell(ours, paper.get(method.paper) if method.paper else None)
    means = {m.name: _mean(cells[m.name]) for m in ALL_METHODS if m.private and cells[m.name].ours}
    if not means:
        return None
    printed = {m.name: paper[m.paper] for m in ALL_METHODS if m.paper in paper}
    improvements = {
        c.name: _improvement(means, c, printed if c.printed else means, set(printed) if c.printed else ran)
        for c in COMPARISONS
    }
    improvements[PAPER_IMPROVEMENT] = paper.get("improvement", nan) / 100
    entry = find(dataset)
    return Row(
        dataset,
        _size(dataset),
        entry is not None and entry.same_as_paper,
        cells,
        min(means, key=lambda name: means[name]),
        improvements,
    )


def _size(dataset: str) -> tuple[int, int, int]:
    """n, d and k; zeros for a data set of somebody's own that is not at hand here."""
    try:
        return size_of(dataset)
    except DataError:
        return 0, 0, 0


def _mean(cell: Cell) -> float:
    return nan if cell.ours is None else cell.ours.mean


def _improvement(
    means: dict[str, float], comparison: Comparison, against: dict[str, float], ran: set[str]
) -> float:
    """1 - best of ours / best of theirs; NaN while a baseline that ran elsewhere is missing here."""
    ours = [means[name] for name in comparison.ours if name in means]
    theirs = [against.get(name, nan) for name in comparison.theirs if name in ran]
    return 1 - min(ours) / min(theirs) if ours and theirs and not any(map(isnan, theirs)) else nan


def _summary(
    title: str, rows: Sequence[Row], methods: Sequence[Method], paper: dict[str, dict[str, float]]
) -> Summary:
    """Means over rows: of the improvements, and the geometric mean of each method over non-private."""
    ratios, paper_ratios = {}, {}
    for method in methods:
        if method.private:
            ratios[method.name] = _geometric([_ratio(row, method) for row in rows])
            if method.paper:
                lines = [paper[row.dataset] for row in rows]
                paper_ratios[method.name] = _geometric([_paper_ratio(line, method.paper) for line in lines])
    names = [*(c.name for c in COMPARISONS), PAPER_IMPROVEMENT]
    means = {name: _plain_mean([row.improvements[name] for row in rows]) for name in names}
    return Summary(f"{title} ({len(rows)})", tuple(row.dataset for row in rows), ratios, paper_ratios, means)


def _ratio(row: Row, method: Method) -> float:
    """A method's area over the non-private one; HDPE-means is PE-means where there is nothing to project."""
    name = SAME_BELOW if method.above and row.size[1] <= method.above else method.name
    return _mean(row.cells[name]) / _mean(row.cells[REFERENCE])


def _paper_ratio(line: dict[str, float], column: str) -> float:
    value = line.get(column, line.get("pe_means", nan) if column == "hdpe_means" else nan)
    return value / line["nonprivate"]


def _geometric(ratios: Sequence[float]) -> float:
    return exp(fmean(log(ratio) for ratio in ratios)) if ratios and not any(map(isnan, ratios)) else nan


def _plain_mean(values: Sequence[float]) -> float:
    return fmean(values) if values and not any(map(isnan, values)) else nan


def label_of(method: str) -> str:
    """A method's name in tables and figures."""
    return METHODS[method].label

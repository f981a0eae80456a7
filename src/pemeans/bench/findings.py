"""What the results say beside what the paper says, in a few tables: computed, never written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, isnan, log, sqrt
from statistics import fmean

import numpy as np

from pemeans.bench.analysis import Results
from pemeans.bench.methods import METHODS
from pemeans.bench.rendering import NONE, TIMES, percent
from pemeans.bench.tables import PAPER_IMPROVEMENT, Summary, Table1

PAPER_RUNS = 50
PAPER_ROUNDING = 1e-4 / sqrt(12)
"""Standard deviation of what four decimals leave out."""
LEAST_RUNS = 5
"""With fewer runs our own spread is a guess."""
FAR = 3.0
"""A difference of so many standard errors is more than noise."""


@dataclass(frozen=True)
class Finding:
    """A small table with the words that it needs; the first column is text."""

    title: str
    text: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Difference:
    """Our mean area less the paper's: in standard errors of both, and as a factor."""

    dataset: str
    method: str
    ours: float
    error: float
    paper: float
    z: float

    @property
    def factor(self) -> float:
        """Ours over the paper's."""
        return self.ours / self.paper


def findings(results: Results, table: Table1) -> list[Finding]:
    """All that there are numbers for."""
    found = [_improvements(table), _multiples(table), _agreement(differences(results, table))]
    return [finding for finding in found if finding.lines]


def differences(results: Results, table: Table1) -> list[Difference]:
    """Every figure of the paper for which there are runs on the same data.

    The paper gives areas to four decimals, as means of 50 runs, without errors. Our own spread stands in for
    the paper's.
    """
    found = []
    for row in (row for row in table.rows if row.same_as_paper):
        for method in table.methods:
            cell = row.cells[method.name]
            if cell.ours and cell.paper is not None and cell.ours.repeats >= LEAST_RUNS:
                areas = results.areas(row.dataset, method.name)
                spread = float(np.std(areas, ddof=1))
                error = spread / sqrt(len(areas))
                both = hypot(error, spread / sqrt(PAPER_RUNS), PAPER_ROUNDING)
                z = (cell.ours.mean - cell.paper) / both
                found.append(Difference(row.dataset, method.name, cell.ours.mean, error, cell.paper, z))
    return found


def detailed(found: Sequence[Difference]) -> Finding:
    """A line for each difference, method by method."""
    return Finding(
        "Every figure of the paper beside ours",
        "On data that are the paper's own. z: our mean area less the paper's, in standard errors of both; "
        "our own spread stands in for the paper's, which prints none.",
        ("Method", "data set", "ours", "± s.e.", "paper's", "ours / paper's", "z"),
        tuple(
            (
                METHODS[d.method].label,
                d.dataset,
                f"{d.ours:.5f}",
                f"{d.error:.5f}",
                f"{d.paper:.4f}",
                f"{d.factor:.3f}",
                f"{d.z:+.1f}",
            )
            for d in sorted(found, key=lambda d: list(METHODS).index(d.method))
        ),
    )


def _improvements(table: Table1) -> Finding:
    """The paper's headline: as the paper ran its baselines, and with a fair FastLloyd."""
    lines = [
        (comparison.words, *(percent(s.improvements[comparison.name]) for s in table.summaries))
        for comparison in table.comparisons
    ]
    if lines:
        last = [percent(s.improvements[PAPER_IMPROVEMENT]) for s in table.summaries]
        lines.append(("The paper's own figure: PE-means or HDPE-means against its baselines", *last))
    return Finding(
        "What becomes of the paper's 26 %",
        f"Mean improvement over the best baseline of each data set. {_in_words(table)}".strip(),
        ("Compared", *_titles(table.summaries)),
        tuple(lines),
    )


def _in_words(table: Table1) -> str:
    """The answer in a sentence, once all three variants of FastLloyd have run."""
    variants = ("as_in_paper", "six_iterations", "own_rule")
    if not table.summaries or not {c.name for c in table.comparisons} >= set(variants):
        return ""
    whole = table.summaries[0].improvements
    paper, ran, box, rule = (percent(whole[name]) for name in (PAPER_IMPROVEMENT, *variants))
    if NONE in (ran, box, rule):
        return ""
    return (
        f"The paper prints {paper}. With FastLloyd as the paper ran it, our runs give {ran}; once it is told "
        f"the box of the data, {box}; and once it also takes as many iterations as its authors' own rule "
        f"says, {rule}."
    )


def _multiples(table: Table1) -> Finding:
    """Each private method's area over the non-private one."""
    private = [method for method in table.methods if method.private]
    lines = [
        (
            method.label,
            *(
                _times(ratios.get(method.name))
                for s in table.summaries
                for ratios in (s.ratios, s.paper_ratios)
            ),
        )
        for method in private
    ]
    head = [title for name in _titles(table.summaries) for title in (name, "in the paper")]
    return Finding(
        "How far from k-means without privacy",
        "Area as a multiple of the non-private one: geometric mean over data sets.",
        ("Method", *head),
        tuple(lines) if table.summaries else (),
    )


def _agreement(found: Sequence[Difference]) -> Finding:
    """How many of the paper's figures each method's runs confirm."""
    lines = []
    for name in METHODS:
        mine = [d for d in found if d.method == name]
        if mine:
            above, below = ([d for d in mine if sign * d.z > FAR] for sign in (1, -1))
            mean = exp(fmean(log(d.factor) for d in mine))
            lines.append(
                (
                    METHODS[name].label,
                    str(len(mine)),
                    str(len(mine) - len(above) - len(below)),
                    str(len(below)),
                    str(len(above)),
                    f"{mean:.3f}",
                )
            )
    return Finding(
        "Our figures beside the paper's",
        f"On data that are the paper's own: at how many sets our mean area is within {FAR:g} standard errors "
        "(of both; our own spread stands in for the paper's), and where it is not.",
        (
            "Method",
            "data sets",
            "within noise",
            "ours lower",
            "ours higher",
            "ours / paper's, geometric mean",
        ),
        tuple(lines),
    )


def _titles(summaries: Sequence[Summary]) -> list[str]:
    return [summary.title[:1].upper() + summary.title[1:] for summary in summaries]


def _times(ratio: float | None) -> str:
    return NONE if ratio is None or isnan(ratio) else f"{TIMES} {ratio:.3f}"


def as_markdown(found: Sequence[Finding]) -> str:
    """All findings, one after another."""
    return "\n".join(_section(finding) for finding in found)


def _section(finding: Finding) -> str:
    rule = ("---", *["---:"] * (len(finding.head) - 1))
    rows = "".join(f"| {' | '.join(line)} |\n" for line in (finding.head, rule, *finding.lines))
    return f"## {finding.title}\n\n{finding.text}\n\n{rows}"

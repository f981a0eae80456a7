from __future__ import annotations

from math import hypot, sqrt

import numpy as np
import pytest
from made_up import constant, results

from pemeans.bench.findings import PAPER_ROUNDING, as_markdown, detailed, differences, findings
from pemeans.bench.store import Record
from pemeans.bench.tables import build, paper_table

PAPER = paper_table()["iris"]


def everything(*parts: list[Record]) -> list[Record]:
    """Methods on iris, with spread: LSH has the paper's figure, the others have not."""
    losses = {
        "NonPrivateKMeans": 0.04,
        "PEMeans": 0.06,
        "DPKMeans": 0.045,
        "LSHKMeans": PAPER["google_lsh"] / 3.75,
        "FastLloyd": 0.08,
        "FastLloyd6": 0.1,
        "FastLloydPaper": 0.12,
    }
    runs = [
        constant("iris", name, [loss * (1 + r / 100) for r in (-2, -1, 0, 1, 2)])
        for name, loss in losses.items()
    ]
    return [one for run in (*runs, *parts) for one in run]


def test_what_becomes_of_the_headline_is_said_in_figures() -> None:
    made = results(everything())
    headline = findings(made, build(made))[0]
    shares = [f"{100 * (1 - 0.06 / best):+.2f} %" for best in (0.12, 0.1, 0.08)]
    assert shares == ["+50.00 %", "+40.00 %", "+25.00 %"]
    places = [headline.text.index(share) for share in ("+27.28 %", *shares)]
    assert places == sorted(places)
    assert [line[1] for line in headline.lines[:3]] == shares
    assert headline.lines[-1][1] == "+27.28 %"


def test_nothing_is_said_of_the_headline_before_all_variants_have_run() -> None:
    made = results([one for one in everything() if one.run.method != "FastLloyd6"])
    headline = findings(made, build(made))[0]
    assert "The paper prints" not in headline.text
    assert len(headline.lines) == 5


def test_a_difference_is_in_standard_errors_of_both() -> None:
    areas = 3.75 * 0.06 * (1 + np.arange(-2, 3) / 100)
    spread = areas.std(ddof=1)
    made = results(everything())
    found = {d.method: d for d in differences(made, build(made))}
    assert set(found) == {"NonPrivateKMeans", "PEMeans", "LSHKMeans", "FastLloydPaper"}
    wanted = (areas.mean() - PAPER["pe_means"]) / hypot(spread / sqrt(5), spread / sqrt(50), PAPER_ROUNDING)
    assert found["PEMeans"].z == pytest.approx(wanted)
    assert found["LSHKMeans"].z == pytest.approx(0, abs=1e-9)
    assert found["LSHKMeans"].factor == pytest.approx(1)


def test_only_the_papers_own_data_and_runs_enough_are_compared() -> None:
    few, other = constant("adult", "PEMeans", [0.1] * 4), constant("scale_4_4", "PEMeans", [0.1, 0.2] * 5)
    made = results(everything(few, other))
    assert {d.dataset for d in differences(made, build(made))} == {"iris"}


def test_agreement_is_counted() -> None:
    made = results(everything())
    lines = {line[0]: line[1:4] for line in findings(made, build(made))[2].lines}
    assert lines["Google-LSH"] == ("1", "1", "0")
    assert lines["PE-means"] == ("1", "0", "1")


def test_markdown_has_as_many_cells_in_every_line() -> None:
    made = results(everything())
    table = build(made)
    found = [*findings(made, table), detailed(differences(made, table))]
    assert len(found) == 4
    for section in as_markdown(found).split("## ")[1:]:
        cells = {line.count("|") for line in section.splitlines() if line.startswith("|")}
        assert len(cells) == 1

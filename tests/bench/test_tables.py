from __future__ import annotations

import csv
import io
import re
from math import isnan

import pytest
from made_up import constant, record, results

from pemeans.bench.rendering import as_csv, as_html, as_latex, as_markdown
from pemeans.bench.store import Record
from pemeans.bench.tables import build, paper_table


def everything() -> list[Record]:
    """iris (paper: PE 27.28 %) and g2_64, with areas that are 3.75 times the losses below."""
    return [
        *constant("iris", "NonPrivateKMeans", [0.04]),
        *constant("iris", "PEMeans", [0.05, 0.07]),
        *constant("iris", "DPKMeans", [0.045, 0.045]),
        *constant("iris", "LSHKMeans", [0.15]),
        *constant("iris", "FastLloyd", [0.08, 0.08]),
        *constant("iris", "FastLloyd6", [0.1, 0.1]),
        *constant("iris", "FastLloydPaper", [0.12, 0.12]),
        *constant("g2_64", "NonPrivateKMeans", [0.2]),
        *constant("g2_64", "PEMeans", [0.5]),
        *constant("g2_64", "HDPEMeans", [0.25]),
        *constant("g2_64", "DPKMeans", [0.2]),
        *constant("g2_64", "LSHKMeans", [0.2]),
        *constant("g2_64", "FastLloyd", [0.3]),
        *constant("g2_64", "FastLloyd6", [0.4]),
        *constant("g2_64", "FastLloydPaper", [0.4]),
    ]


def test_paper_table_is_consistent_with_its_own_improvements() -> None:
    paper = paper_table()
    for name, line in paper.items():
        ours = min(line[m] for m in ("pe_means", "hdpe_means") if m in line)
        theirs = min(line[m] for m in ("google_lsh", "fastlloyd", "dp_lib", "icml17"))
        # The paper computes with more than its four decimals.
        slack = 100 * (0.00005 / theirs + 0.00005 * ours / theirs**2) + 0.01
        assert 100 * (1 - ours / theirs) == pytest.approx(line["improvement"], abs=slack), name
    mean = sum(line["improvement"] for line in paper.values()) / len(paper)
    assert round(mean) == 26


def test_numbers_against_hand_computation() -> None:
    table = build(results(everything()))
    iris, g2 = table.rows
    assert (iris.dataset, iris.size, g2.dataset) == ("iris", (150, 4, 3), "g2_64")
    ours = iris.cells["PEMeans"].ours
    assert ours is not None
    assert ours.mean == pytest.approx(3.75 * 0.06)
    assert ours.half == pytest.approx(12.7062 * 3.75 * 0.01, rel=1e-4)
    assert ours.repeats == 2
    assert iris.cells["PEMeans"].paper == 0.2894
    assert (iris.best, g2.best) == ("DPKMeans", "DPKMeans")
    assert iris.improvements["as_in_paper"] == pytest.approx(1 - 0.06 / 0.12)
    assert iris.improvements["six_iterations"] == pytest.approx(1 - 0.06 / 0.1)
    assert iris.improvements["own_rule"] == pytest.approx(1 - 0.06 / 0.08)
    assert iris.improvements["dpkmeans"] == pytest.approx(1 - 0.045 / 0.08)
    assert iris.improvements["dpkmeans_printed"] == pytest.approx(1 - 3.75 * 0.045 / 0.3979)
    assert iris.improvements["paper"] == pytest.approx(0.2728)
    assert g2.improvements["as_in_paper"] == pytest.approx(1 - 0.25 / 0.2)  # HDPE-means against LSH


def test_means_over_all_and_over_the_papers_own_data() -> None:
    mnist = [
        *constant("mnist", "NonPrivateKMeans", [0.1]),
        *constant("mnist", "PEMeans", [0.4]),
        *constant("mnist", "HDPEMeans", [0.2]),
        *constant("mnist", "DPKMeans", [0.1]),
        *constant("mnist", "LSHKMeans", [0.4]),
        *constant("mnist", "FastLloyd", [0.4]),
        *constant("mnist", "FastLloyd6", [0.4]),
        *constant("mnist", "FastLloydPaper", [0.4]),
    ]
    table = build(results(everything(), mnist))
    whole, same = table.summaries
    assert set(whole.datasets) == {"iris", "mnist", "g2_64"}
    assert same.datasets == ("iris", "g2_64")
    assert same.improvements["as_in_paper"] == pytest.approx((0.5 - 0.25) / 2)
    assert whole.improvements["as_in_paper"] == pytest.approx((0.5 - 0.25 + 0.5) / 3)
    assert same.improvements["paper"] == pytest.approx((0.2728 + 0.0949) / 2)
    assert same.ratios["PEMeans"] == pytest.approx((1.5 * 2.5) ** 0.5)
    assert same.ratios["HDPEMeans"] == pytest.approx((1.5 * 1.25) ** 0.5)  # PE-means where d is at most 16
    assert same.paper_ratios["PEMeans"] == pytest.approx(((0.2894 / 0.1361) * (1.1538 / 1.0956)) ** 0.5)


@pytest.mark.parametrize("missing", ["LSHKMeans", "FastLloydPaper"])
def test_no_improvement_is_claimed_while_a_baseline_is_missing(missing: str) -> None:
    part = [one for one in everything() if (one.run.dataset, one.run.method) != ("iris", missing)]
    table = build(results(part))
    assert isnan(table.rows[0].improvements["as_in_paper"])
    assert not isnan(table.rows[1].improvements["as_in_paper"])
    assert isnan(table.summaries[0].improvements["as_in_paper"])


def test_no_improvement_is_named_after_a_variant_that_never_ran() -> None:
    part = [one for one in everything() if one.run.method != "FastLloydPaper"]
    shown = [c.name for c in build(results(part)).comparisons]
    assert shown == ["six_iterations", "own_rule", "dpkmeans", "dpkmeans_printed"]


def test_data_sets_outside_the_paper_have_rows_but_no_part_in_means() -> None:
    table = build(results(everything(), constant("mine", "PEMeans", [1.0])))
    assert [row.dataset for row in table.rows] == ["iris", "g2_64", "mine"]
    assert all("mine" not in summary.datasets for summary in table.summaries)


def test_unfinished_data_sets_are_left_out() -> None:
    table = build(results(everything(), [record("adult", "PEMeans", 1.0, 0, 0.1)]))
    assert "adult" not in [row.dataset for row in table.rows]


def test_csv_reads_back() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(build(results(everything()))))))
    assert [line["dataset"] for line in lines] == ["iris", "g2_64"]
    assert float(lines[0]["PEMeans"]) == pytest.approx(0.225)
    assert lines[0]["PEMeans_paper"] == "0.2894"
    assert lines[0]["HDPEMeans"] == ""
    assert float(lines[0]["improvement_own_rule"]) == pytest.approx(0.25)


def test_markdown_marks_the_best_and_shows_the_papers_figure() -> None:
    text = as_markdown(build(results(everything())))
    head, rule, iris, *_ = text.splitlines()
    assert head.count("|") == rule.count("|") == iris.count("|")
    assert "| 0.2250 ± 0.4765 [0.2894] |" in iris
    assert "| **0.1688 ± 0.0000** |" in iris
    assert "+40.00 %" in iris


def test_latex_is_balanced_and_escaped() -> None:
    text = as_latex(build(results(everything())))
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}")
    assert text.count("{") == text.count("}")
    assert r"g2\_64" in text
    assert r"+40.00 \%" in text
    assert r"\textbf{0.1688}\\{}\scriptsize$\pm$ 0.0000" in text
    assert r"\\[" not in text  # LaTeX would take what follows for a length
    assert "±" not in text


def test_html_marks_the_best() -> None:
    text = as_html(build(results(everything())))
    assert "<td class='best'><strong>0.1688</strong><span class=\"half\"> ± 0.0000</span></td>" in text
    assert text.count("<tr>") == text.count("</tr>")


def test_html_shows_the_papers_improvement_below_ours() -> None:
    text = as_html(build(results(everything())))
    assert '<td>+50.00 %<span class="paper">+27.28 %</span></td>' in text
    assert 'iris<span class="size">n 150, d 4, k 3</span>' in text
    head, *rows = re.findall(r"<tr>(?!<th colspan).*?</tr>", text)
    assert {row.count("<td") for row in rows} == {head.count("<th")}

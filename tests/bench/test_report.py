from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made_up import constant, grid, record, results
from matplotlib.image import imread

from pemeans.bench.figures import PLATES, Plate
from pemeans.bench.methods import ALL_METHODS
from pemeans.bench.registry import REGISTRY
from pemeans.bench.report import write_report
from pemeans.bench.runs import perform
from pemeans.bench.store import Record, write_parquet
from pemeans.bench.suites import ITERATION_GRID, LABELED, REAL, SUITES, VARIATION_GRID
from pemeans.bench.tuning import grids
from pemeans.errors import DataError

BLUE, ORANGE = (0, 114, 178), (213, 94, 0)
"""The colors of PE-means and DPKMeans."""
DATASETS = (*REAL, *LABELED[4:], "scale_4_4", "scale_16_4", "scale_4_64", "sklearn_4_4", "sklearn_16_4")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def paper_like() -> list[Record]:
    """Results of every suite, without running much: every method a little worse than the one before."""
    records = []
    for i, method in enumerate(ALL_METHODS):
        for j, name in enumerate(DATASETS):
            if REGISTRY[name].d > method.above:
                accuracy = 0.9 - i / 20 if name in LABELED else None
                losses = [0.01 * (1 + j) * (1 + i / 3) * (1 + r / 50) for r in range(3)]
                records += constant(name, method.name, losses, accuracy)
    for name in ("iris", "adult", "letter", "g2_64"):
        for settings in (ITERATION_GRID, VARIATION_GRID):
            records += grid(name, {0.1 + 0.001 * i: dict(p) for i, p in enumerate(settings)})
    for run in SUITES["vote-splitting"].runs(1, lambda name: (200, 2, 4)):
        records.append(Record("vote-splitting", run, perform(run, watch=True)))
    return records


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_parquet(paper_like(), folder / "results.parquet")
    write_report([folder / "results.parquet"], folder / "out")
    return folder / "out"


def colors(picture: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.asarray(np.rint(255 * imread(picture)[..., :3]), dtype=np.int64)


def share_of(color: tuple[int, int, int], picture: Path) -> float:
    return float((np.abs(colors(picture) - color).max(axis=2) <= 12).mean())


@pytest.mark.parametrize("plate", PLATES, ids=lambda plate: plate.name)
def test_every_figure_is_drawn_in_both_formats(report: Path, plate: Plate) -> None:
    name = plate.name
    picture = colors(report / f"{name}.png")
    assert min(picture.shape[:2]) > 500
    assert (picture < 250).any(axis=2).mean() > 0.01  # not blank
    assert (np.ptp(picture, axis=2) > 60).mean() > 1e-3  # nor without color
    svg = (report / f"{name}.svg").read_text(encoding="utf-8")
    assert "<svg" in svg
    assert len(svg) > 10_000


def test_reports_of_the_same_results_are_the_same(tmp_path: Path) -> None:
    write_parquet(constant("iris", "PEMeans", [0.1, 0.2], 0.5), tmp_path / "r.parquet")
    first, second = tmp_path / "first", tmp_path / "second"
    written = write_report([tmp_path / "r.parquet"], first)
    write_report([first / "runs.parquet"], second)
    assert {path.suffix for path in written} == {".csv", ".md", ".tex", ".html", ".png", ".svg", ".parquet"}
    for path in written:
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def test_the_page_needs_nothing_but_itself(report: Path) -> None:
    text = (report / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert len(sources) > len(PLATES)
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert "@import" not in text
    assert "<script" not in text


def test_the_page_says_what_must_be_said(report: Path) -> None:
    text = (report / "index.html").read_text(encoding="utf-8")
    for said in ("95 %", "n<sup>-1.1</sup>", "Source fingerprint", "Not the authors' features", "Python"):
        assert said in text or said.replace("'", "&#x27;") in text


def test_the_page_in_a_browser(report: Path, tmp_path: Path) -> None:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no browser: install Debian's chromium to have the page looked at")
    shot = tmp_path / "page.png"
    subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,9000", f"--screenshot={shot}",
            (report / "index.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip
    picture = colors(shot)
    assert picture.shape == (9000, 1400, 3)
    assert (picture[:2000].min(axis=(1, 2)) < 200).mean() > 0.2  # title, summary and table
    assert share_of(BLUE, shot) > 3e-4  # the figures are shown
    assert share_of(ORANGE, shot) > 1e-4
    assert share_of((227, 243, 230), shot) > 1e-3  # the best of each row is tinted: the style is applied


def test_a_report_of_little_says_what_is_missing(tmp_path: Path) -> None:
    write_parquet(
        [record("iris", "PEMeans", 1.0, 0, 0.1), record("iris", "PEMeans", 2.0, 0, None, error="E: no")],
        tmp_path / "r.parquet",
    )
    written = write_report([tmp_path / "r.parquet"], tmp_path / "out")
    assert {path.name for path in written} >= {"index.html", "runs.parquet"}
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "run the suite table1" in text
    assert "Not drawn" in text
    assert "1 runs failed" in text
    assert "E: no" in text


def test_no_results_no_report(tmp_path: Path) -> None:
    write_parquet([], tmp_path / "r.parquet")
    with pytest.raises(DataError, match="run a suite first"):
        write_report([tmp_path / "r.parquet"], tmp_path / "out")


def test_the_best_of_half_a_grid_is_not_drawn() -> None:
    def settings(count: int) -> dict[float, dict[str, object]]:
        return {0.1 + 0.001 * i: dict(p) for i, p in enumerate(VARIATION_GRID[:count])}

    suite = SUITES["tune-variation"]
    assert grids(results(grid("iris", settings(24))), suite) == []
    (whole,) = grids(results(grid("iris", settings(25))), suite)
    assert whole.best == pytest.approx(0.1 * 1.01)
    assert len(whole.losses) == 25

"""What the documentation shows must be so: its Python runs, its commands work, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from math import exp
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from pemeans.cli import app
from pemeans.privacy.accounting import mu_of

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LARGEST_PICTURE = 150 * 1024


def named(page: Path) -> str:
    return page.name


@cache
def blocks(page: Path) -> tuple[tuple[str, str], ...]:
    """Language and content of every fenced block."""
    found = tuple(FENCE.findall(page.read_text(encoding="utf-8")))
    assert 2 * len(found) == page.read_text(encoding="utf-8").count("```"), "a block is not closed"
    return found


def commands(program: str) -> list[str]:
    """Every line of the pages' console blocks that runs a program."""
    consoles = [content for page in PAGES for kind, content in blocks(page) if kind == "console"]
    return [line for content in consoles for line in content.splitlines() if line.startswith(f"{program} ")]


def anchors(page: Path) -> set[str]:
    """What links may name after a #: the page's headings, written as forges write them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def with_python() -> list[Path]:
    return [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))]


@pytest.mark.parametrize("page", with_python(), ids=named)
def test_python_runs_and_prints_what_is_shown(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Blocks of a page share their names, as a reader would type them one after another."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for kind, content in blocks(page):
        if kind == "python":
            exec(compile(content, page.name, "exec"), names)
            printed = capsys.readouterr().out
        elif kind == "text":
            assert content in printed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), target
        assert linked.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(linked), target


def test_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another, on a made-up patients.csv with the columns that they name and one more."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    ages, indices = rng.uniform(0, 120, 500), rng.uniform(10, 60, 500)
    rows = [f"{age:.0f},{index:.1f},ward" for age, index in zip(ages, indices, strict=True)]
    Path("patients.csv").write_text("\n".join(["age,bmi,ward", *rows]), encoding="utf-8")
    shown = commands("pemeans")
    assert {shlex.split(line)[1] for line in shown} >= {"fit", "inspect", "predict"}
    for line in shown:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}: {result.output}"
    assert Path("model.json").is_file()
    assert Path("labels.parquet").is_file()


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert {"make demo", "make test"} <= set(commands("make"))
    assert {line.split()[1] for line in commands("make")} <= targets


def test_what_epsilon_buys_is_computed() -> None:
    """The README's table, from the definition and from mu, for the n and delta that it states."""
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+ %) \| ([\d.]+ %) \|$", text, re.MULTILINE)
    assert [float(row[0]) for row in rows] == [0.1, 0.5, 1, 2, 4]
    delta = 20_000**-1.1
    for shown, any_method, this_noise in rows:
        epsilon = float(shown)
        assert any_method == f"{100 * (exp(epsilon) + delta) / (1 + exp(epsilon)):.1f} %"
        assert this_noise == f"{100 * norm.cdf(mu_of(epsilon, delta) / 2):.1f} %"


def test_changelog_has_the_current_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_picture_is_small() -> None:
    assert 0 < (ROOT / "docs" / "pemeans.png").stat().st_size <= LARGEST_PICTURE

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pemeans.bench.commands import bench_app, data_app
from pemeans.bench.homes import CACHE_VARIABLE, FOLDER_VARIABLE
from pemeans.cli import spoken


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(bench_app(spoken), list(arguments))


def data(*arguments: str) -> Result:
    return CliRunner().invoke(data_app(spoken), list(arguments))


def test_run_then_report(tmp_path: Path) -> None:
    results, out = tmp_path / "r.sqlite", tmp_path / "report"
    ran = bench("run", "vote-splitting", "--out", str(results), "--repeats", "2", "--jobs", "1")
    assert ran.exit_code == 0, ran.output
    assert "4 runs done, 0 were done before" in ran.output
    reported = bench("report", str(results), "--out", str(out))
    assert reported.exit_code == 0, reported.output
    assert (out / "index.html").is_file()
    assert (out / "figure1-vote-splitting.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "tabel1"), "Error: suite 'tabel1' is not known; choose from table1"),
        (("run", "smoke", "--methods", "KMeans"), "Error: method 'KMeans' is not known; choose from"),
        (("run", "smoke", "--eps", "1,zero"), "Error: --eps '1,zero' is not a list of positive numbers"),
        (("run", "smoke", "--eps", "-1"), "Error: --eps '-1' is not a list of positive numbers"),
        (("run", "smoke", "--jobs", "0"), "Error: --jobs 0 would do nothing"),
        (("run", "smoke", "--out", "no/such/r.sqlite"), "there is no folder"),
        (("report", "missing.sqlite"), "Error: missing.sqlite is not there"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    found = bench(*arguments)
    assert found.exit_code == 1
    assert message in found.output
    assert "Traceback" not in found.output


def test_a_missing_data_set_shows_in_the_exit_code(tmp_path: Path) -> None:
    found = bench(
        "run", "smoke", "--datasets", "toy,mnist", "--methods", "NonPrivateKMeans", "--jobs", "1",
        "--out", str(tmp_path / "r.sqlite"),
    )  # fmt: skip
    assert found.exit_code == 1
    assert "Left out: data set 'mnist' has no public home" in found.output
    assert "2 runs done" in found.output
    assert found.output.endswith("The same command tries them again.\n")  # and no word of a bug


def test_list_show_and_fetch() -> None:
    listed = data("list").output.splitlines()
    assert len(listed) == 1 + 34 + 2 + 2
    assert any(line.split()[:5] == ["gas", "36,733", "12", "6", "home"] for line in listed)
    shown = data("show", "letter").output
    assert "license: CC BY 4.0" in shown
    assert "home: https://" in shown
    for name in ("letter", "scale_16_4", "mnist"):
        assert max(map(len, [*listed, *data("show", name).output.splitlines()])) <= 80
    assert data("show", "nothing").exit_code == 1
    fetched = data("fetch", "sklearn_4_4", "mnist")
    assert fetched.exit_code == 1
    assert "sklearn_4_4: 20,000 rows of 4 columns, 4 clusters" in fetched.output
    assert fetched.output.endswith(f"set {FOLDER_VARIABLE} to a folder that holds mnist.npz\n")

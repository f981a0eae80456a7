"""The demo runs as a newcomer runs it, finds the groups, and says what it leaves behind."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pemeans
from pemeans import demo
from pemeans.bounds import read_bounds
from pemeans.cli import app
from pemeans.report.tables import plain_console
from pemeans.rows.files import read_columns

PNG = b"\x89PNG\r\n\x1a\n"
PICTURES = ("age-systolic.png", "bmi-glucose.png")


def test_the_clinic_is_the_same_every_time_and_within_its_bounds() -> None:
    one, two = demo.clinic(), demo.clinic()
    np.testing.assert_array_equal(one.rows, two.rows)
    assert one.rows.shape == (5000, 4)
    for values, (low, high) in zip(one.rows.T, demo.BOUNDS.limits.values(), strict=True):
        assert low <= values.min()
        assert values.max() <= high
    assert np.bincount(one.groups).tolist() == [group.size for group in demo.GROUPS]


def test_each_group_lies_where_it_was_put() -> None:
    patients = demo.clinic()
    for number, group in enumerate(demo.GROUPS):
        middle = patients.rows[patients.groups == number].mean(axis=0)
        assert (np.abs(middle - group.mean) < 0.3 * np.array(group.deviation)).all()


def test_every_group_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DPKMeans", functools.partial(pemeans.DPKMeans, random_state=0))
    found = demo.cluster(demo.clinic())
    assert 1 <= found.private_loss / found.exact_loss < 1.1
    for number, group in enumerate(demo.GROUPS):
        assert (np.abs(found.exact[number] - group.mean) < 0.5 * np.array(group.deviation)).all()
        assert (np.abs(found.private[number] - group.mean) < group.deviation).all()
        assert abs(found.sizes[number] - group.size) < 0.25 * group.size


def test_the_command_leaves_everything_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["demo", "--out", "new/folder"])
    assert (result.exit_code, result.stderr) == (0, "")
    for word in ("diabetes", "found privately", "KMeans without privacy", "NearestVotes", "operating system"):
        assert word in result.stdout
    folder = tmp_path / "new" / "folder"
    assert not pemeans.load(folder / "model.json").receipt_.seeded
    assert read_bounds(folder / "bounds.toml") == demo.BOUNDS
    table = read_columns(folder / "clinic.csv")
    np.testing.assert_array_equal(np.column_stack(table.columns), demo.clinic().rows)
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(PNG)
        assert name in result.stdout


def test_without_matplotlib_only_the_pictures_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "pemeans.report.pictures", raising=False)
    demo.run(tmp_path, plain_console())
    hint = "No pictures: matplotlib is missing; install it with: pip install matplotlib\n"
    assert hint in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bounds.toml", "clinic.csv", "model.json"]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "taken")])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is a file; give a folder" in result.stderr

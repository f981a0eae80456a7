from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pemeans.bench.datasets import load, local_file, normalize, size_of
from pemeans.bench.homes import CACHE_VARIABLE, FOLDER_VARIABLE
from pemeans.bench.registry import REGISTRY, TABLE1, find
from pemeans.bench.tables import paper_table
from pemeans.errors import DataError

FOLDER = Path(os.environ.get(FOLDER_VARIABLE) or Path(__file__).parents[3] / "shared" / "data")
GENERATED = [name for name in TABLE1 if name.startswith("sklearn_")]
STORED = [name for name in REGISTRY if name not in GENERATED]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path


def test_the_registry_holds_all_of_table_1() -> None:
    assert list(TABLE1) == list(paper_table())
    assert len(TABLE1) == 34
    for entry in REGISTRY.values():
        assert entry.source
        assert entry.license
        assert entry.checksum is not None
        assert len(entry.checksum) == 64


@pytest.mark.parametrize("name", GENERATED)
def test_generated_data_have_their_checksums(name: str) -> None:
    points = load(name)  # raises if a checksum is wrong
    assert points.size == size_of(name)
    assert points.y is not None


@pytest.mark.parametrize("name", STORED)
def test_stored_data_have_their_checksums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (FOLDER / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not at hand; {FOLDER_VARIABLE} may name a folder that has it")
    monkeypatch.setenv(FOLDER_VARIABLE, str(FOLDER))
    assert load(name).size == size_of(name)


def test_every_data_set_says_where_it_comes_from_or_why_not() -> None:
    for name in TABLE1:
        entry = find(name)
        assert entry is not None
        homeless = entry.home is None and entry.make is None
        assert homeless == (name == "mnist" or entry.family == "scale")
        assert not homeless or entry.note


def test_a_file_with_other_numbers_is_refused(folder: Path) -> None:
    np.savez(folder / "sklearn_4_4.npz", X=load("sklearn_4_4").X + 1)
    with pytest.raises(DataError, match="does not have the checksum of sklearn_4_4"):
        load("sklearn_4_4")


def test_own_data_need_no_registration(folder: Path) -> None:
    X = np.arange(12.0).reshape(6, 2)
    np.savez(folder / "labeled.npz", X=X, y=[0, 0, 1, 1, 2, -1])
    np.savez(folder / "counted.npz", X=X, k=5)
    np.savez(folder / "neither.npz", X=X)
    assert load("labeled").size == (6, 2, 3)
    assert load("counted").size == (6, 2, 5)
    with pytest.raises(DataError, match="does not say how many clusters"):
        load("neither")
    np.savez(folder / "many.npz", X=X, k=7)
    with pytest.raises(DataError, match="k=7 clusters of 6 rows can't be"):
        load("many")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "not a readable"),
        (b"", "not a readable"),
        (np.array([[1.0, np.nan]]), "not a table of finite numbers"),
        (np.array([1.0, 2.0]), "not a table of finite numbers"),
        (np.array([["a"]]), "not a readable"),
    ],
)
def test_unusable_files_are_told(
    folder: Path, content: bytes | np.ndarray[tuple[int, ...], np.dtype[np.generic]], message: str
) -> None:
    path = folder / "mine.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, X=content, k=1)
    with pytest.raises(DataError, match=message):
        load("mine")


def test_names_can_not_lead_out_of_the_folder(folder: Path) -> None:
    np.savez(folder.parent / "secret.npz", X=np.eye(2), k=1)
    assert local_file("../secret") is None


def test_a_folder_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=f"{FOLDER_VARIABLE}=.*is not a folder"):
        load("iris")


def test_normalized_data_fill_the_unit_ball_around_their_mean() -> None:
    X = np.random.default_rng(0).normal(5, 3, size=(500, 7))
    normalized = normalize(X)
    assert np.allclose(normalized.mean(axis=0), 0, atol=1e-12)
    assert np.isclose(np.linalg.norm(normalized, axis=1).max(), 1)
    ratio = (X - X.mean(axis=0)) / normalized
    assert np.allclose(ratio, ratio[0, 0])
    for equal in (1.0, 0.1, 0.0, -1e300):
        assert normalize(np.full((7, 2), equal)).tolist() == [[0.0, 0.0]] * 7


@pytest.mark.parametrize("factor", [2.0**1000, 2.0**-1000])
def test_units_do_not_matter_to_normalized_data(factor: float) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert np.array_equal(normalize(factor * X), normalize(X))

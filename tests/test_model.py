"""Model files: the same model comes back, and a file that is not whole is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pemeans import Domain, DPKMeans, HDPEMeans, ModelFileError, PEMeans, load
from pemeans.model import FORMAT, VERSION, _checksum

RNG = np.random.default_rng(11)
X = RNG.normal(size=(97, 3))
SEED = 987654321
CASES: dict[str, Any] = {
    "box": PEMeans(3, domain=Domain.box([-3, -4, -1 / 3], [3, 4, 0.7])),
    "scaled box": PEMeans(3, domain=Domain.box(-3, 3, scale=True)).set_params(
        epsilon=np.float32(0.3), n_samples=np.int64(99)
    ),
    "ball": HDPEMeans(domain=Domain.ball(2, 0.1), delta=1e-7, selection="top-k").set_params(
        n_clusters=np.uint8(3)
    ),
    "recommended": DPKMeans(3, domain=Domain.box(-3, 3), epsilon=0.5),
    "no noise": PEMeans(3, domain=Domain.box(-3, 3), epsilon=math.inf),
    "seeded": PEMeans(3, domain=Domain.box(-3, 3), random_state=SEED, n_iterations=2, n_variations=7),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    PEMeans(2, domain=Domain.box(-3, 3), n_iterations=2).fit(
        pd.DataFrame(X[:, :2], columns=["Größe", "b"])
    ).save(path)
    return path


def rewritten(path: Path, change: Any) -> Path:
    """The file after a change of its document, with a checksum that fits."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    document["checksum"] = _checksum(json.dumps(document))
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("model", CASES.values(), ids=CASES)
def test_the_same_model_comes_back(model: Any, tmp_path: Path) -> None:
    model.fit(X).save(tmp_path / "a.json")
    back = load(tmp_path / "a.json")
    assert type(back) is type(model)
    assert back.cluster_centers_.tobytes() == model.cluster_centers_.tobytes()
    assert back.cluster_sizes_.tobytes() == model.cluster_sizes_.tobytes()
    assert back.receipt_ == model.receipt_
    assert back.domain_ == model.domain_
    assert back.n_features_in_ == 3
    assert back.predict(X * 2).tobytes() == model.predict(X * 2).tobytes()
    assert back.transform(X).tobytes() == model.transform(X).tobytes()
    back.save(tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    assert back.fit(X[:50]).cluster_centers_.shape == (3, 3)  # its parameters are those of a fit


def test_feature_names_come_back(saved: Path) -> None:
    model = load(saved)
    assert list(model.feature_names_in_) == ["Größe", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X[:, :2], columns=["b", "Größe"]))
    assert "Größe" in saved.read_text(encoding="utf-8")


def test_a_name_that_utf8_cannot_hold_comes_back(tmp_path: Path) -> None:
    """The budget is spent by then: a fit must not be lost to an odd name."""
    names = pd.Index(["half a pair: \ud83d", "b\\"], dtype=object)
    model = PEMeans(2, domain=Domain.box(-3, 3), n_iterations=1).fit(pd.DataFrame(X[:, :2], columns=names))
    model.save(tmp_path / "model.json")
    assert list(load(tmp_path / "model.json").feature_names_in_) == list(names)


def test_a_field_that_is_there_twice_is_refused(saved: Path) -> None:
    """A reader would believe the first, the program the last."""
    text = saved.read_text(encoding="utf-8")
    for field in ('"epsilon": 1.0', '"seeded": false', '"method": "PEMeans"', '"checksum"'):
        name, value = field.partition(":")[0], "true"
        saved.write_text(text.replace(field, f"{name}: {value}, {field}", 1), encoding="utf-8")
        with pytest.raises(ModelFileError, match="names a field twice") as caught:
            load(saved)
        assert caught.value.__context__ is None


def test_the_parameters_are_those_of_the_fit(tmp_path: Path) -> None:
    model = PEMeans(2, domain=Domain.box(-3, 3), n_iterations=2).fit(X)
    model.set_params(n_clusters=7, epsilon=-1).save(tmp_path / "m.json")
    assert (load(tmp_path / "m.json").n_clusters, load(tmp_path / "m.json").epsilon) == (2, 1.0)


def test_a_person_can_read_the_file(saved: Path) -> None:
    document = json.loads(saved.read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    assert document["domain"] == {
        "shape": "box", "lower": [-3, -3], "upper": [3, 3], "scale": False, "from_data": False, "n_rows": 97,
    }  # fmt: skip
    lines = saved.read_text(encoding="utf-8").splitlines()
    for center in document["cluster_centers"]:
        assert any(line.strip(" ,") == json.dumps(center) for line in lines), "a center stands on one line"


def test_the_file_holds_no_row_and_no_seed(tmp_path: Path) -> None:
    for name, model in CASES.items():
        model.fit(X).save(tmp_path / f"{name}.json")
        text = (tmp_path / f"{name}.json").read_text()
        assert str(SEED) not in text
        assert "random_state" not in text
        assert not [value for value in X.ravel() if repr(float(value))[:12] in text]


def test_a_seeded_model_still_says_so_after_loading(tmp_path: Path) -> None:
    CASES["seeded"].fit(X).save(tmp_path / "m.json")
    model = load(tmp_path / "m.json")
    assert model.random_state is None
    assert model.receipt_.seeded
    assert "not private" in repr(model)


def test_every_flipped_digit_is_noticed(saved: Path) -> None:
    """Also the last of seventeen, which no longer changes the number that it stands for."""
    text = saved.read_text(encoding="utf-8")
    for place, digit in enumerate(text):
        if digit in "0123456789":
            other = str((int(digit) + 1) % 10)
            saved.write_text(text[:place] + other + text[place + 1 :], encoding="utf-8")
            with pytest.raises(ModelFileError, match=r"damaged|version|not a pemeans model"):
                load(saved)


def test_every_truncation_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [*range(0, len(whole) - 2, 13), len(whole) - 2]:
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"damaged|not text"):
            load(saved)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is damaged: it is not JSON"),
        (b"age,bmi\n57,123456.789\n", "is damaged: it is not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "can't be read: it is not text"),
        (b"[" * 200_000, "is damaged: it is not JSON"),
        (b'{"a":' * 200_000, "is damaged: it is not JSON"),
        (b"9" * 5000, "is damaged: it is not JSON"),
        (b"null", "is not a pemeans model file; pass one written by model.save"),
        (b"[1, 2]", "is not a pemeans model file"),
        (b'{"format": "other"}', "is not a pemeans model file"),
        (b'{"format": "pemeans-model"}', "its version is not a whole number"),
        (b'{"format": "pemeans-model", "version": true}', "its version is not a whole number"),
        (b'{"format": "pemeans-model", "version": 2}', "has version 2, but .* up to 1; upgrade pemeans"),
        (b'{"format": "pemeans-model", "version": 1}', "its checksum does not match"),
        (b'{"format": "pemeans-model", "version": 1, "x": ' + b"[" * 900 + b"]" * 900 + b"}", "damaged"),
    ],
)
def test_what_is_no_model_file_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=says) as caught:
        load(tmp_path / "model.json")
    assert "model.json" in str(caught.value)
    assert "123456" not in str(caught.value)
    assert caught.value.__context__ is None


def _set(*keys: Any) -> Any:
    """A change: the last is what the field at the others becomes."""
    *way, last, value = keys

    def change(document: Any) -> None:
        for key in way:
            document = document[key]
        document[last] = value

    return change


FORGED: dict[str, Any] = {
    "method": _set("method", "KMeans"),
    "method no text": _set("method", ["PEMeans"]),
    "centers as text": _set("cluster_centers", 0, 0, "0.5"),
    "centers missing": _set("cluster_centers", 0, 0, None),
    "centers infinite": _set("cluster_centers", 0, 0, math.inf),
    "centers ragged": _set("cluster_centers", 0, [1.0]),
    "centers fewer": _set("cluster_centers", [[0.0, 0.0]]),
    "no centers": lambda document: document.update(cluster_centers=[], cluster_sizes=[]),
    "sizes fractional": _set("cluster_sizes", 0, 1.5),
    "sizes huge": _set("cluster_sizes", 0, 10**30),
    "sizes as text": _set("cluster_sizes", 0, "1"),
    "names text": _set("feature_names", "ab"),
    "names too few": _set("feature_names", ["a"]),
    "names numbers": _set("feature_names", [1, 2]),
    "domain upside down": _set("domain", "lower", [9.0, 9.0]),
    "domain of other width": _set("domain", "lower", [-3.0, -3.0, -3.0]),
    "domain shape": _set("domain", "shape", "torus"),
    "domain flag": _set("domain", "from_data", "no"),
    "domain rows": _set("domain", "n_rows", "97"),
    "epsilon": _set("parameters", "epsilon", -1.0),
    "epsilon as text": _set("parameters", "epsilon", "1.0"),
    "clusters": _set("parameters", "n_clusters", 3),
    "clusters true": _set("parameters", "n_clusters", True),
    "seed": _set("parameters", "random_state", 0),
    "unknown parameter": _set("parameters", "shell", "rm"),
    "parameters list": _set("parameters", [1]),
    "receipt list": _set("receipt", []),
    "receipt sigma": _set("receipt", "releases", 0, "sigma", -1.0),
    "receipt sigma text": _set("receipt", "releases", 0, "sigma", "1.0"),
    "receipt name": _set("receipt", "releases", 0, "name", 5),
    "receipt delta": _set("receipt", "delta", 7.0),
    "receipt seeded": _set("receipt", "seeded", 0),
    "receipt releases": _set("receipt", "releases", {"a": 1}),
    "extra field": _set("labels", [0, 1]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_field_that_is_not_what_it_should_be_is_refused(change: Any, saved: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"is damaged: .*; save the model again|does not know; upgrade"
    ) as caught:
        load(rewritten(saved, change))
    assert caught.value.__context__ is None


def test_a_field_that_is_missing_is_refused(saved: Path) -> None:
    text = saved.read_text(encoding="utf-8")
    for field in set(json.loads(text)) - {"checksum"}:
        saved.write_text(text, encoding="utf-8")
        with pytest.raises(ModelFileError):
            load(rewritten(saved, lambda document, field=field: document.pop(field)))


def test_layout_alone_is_no_damage(saved: Path) -> None:
    load(rewritten(saved, lambda document: None))
    document = json.loads(saved.read_text(encoding="utf-8"))
    saved.write_text(json.dumps(document, indent=7, sort_keys=True), encoding="utf-8")
    load(saved)


def test_a_path_that_does_not_work_is_named(tmp_path: Path) -> None:
    model = PEMeans(2, domain=Domain.box(-3, 3), n_iterations=1).fit(X)
    rows: Any = np.array([[123456.789]])
    for path, says in (
        (
            tmp_path / "no" / "m.json",
            "m.json can't be written: No such file or directory; check that its folder",
        ),
        (tmp_path, "can't be written: Is a directory"),
        ("nul\0l", "can't be written: ValueError"),
        (rows, "path=<ndarray> can't be written: TypeError"),
    ):
        with pytest.raises(ModelFileError, match=says):
            model.save(path)
    for path, says in (
        (tmp_path / "m.json", "m.json can't be read: No such file or directory; check the path"),
        (tmp_path, "can't be read: Is a directory"),
        ("nul\0l", "can't be read: ValueError"),
        (rows, "path=<ndarray> can't be read: TypeError"),
    ):
        with pytest.raises(ModelFileError, match=says):
            load(path)


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        PEMeans().save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()

"""The faces of the baselines: constructor and receipt as with all other methods; their own parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from pemeans.domain import Domain
from pemeans.errors import ParameterError
from pemeans.estimators import load
from pemeans.parameters import OPTIONAL, RULES
from pemeans.peers import BalcanKMeans, DPLloyd, FastLloyd, LSHKMeans

FACES: tuple[Any, ...] = (LSHKMeans, FastLloyd, DPLloyd, BalcanKMeans)
PURE = (DPLloyd, BalcanKMeans)
FACE = pytest.mark.parametrize("face", FACES)
RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(center, 0.05, size=(2000, 3)) for center in (-0.4, 0.0, 0.4)])


def fitted(face: Any, **parameters: Any) -> Any:
    settings = {"epsilon": 5.0, "domain": Domain.ball(1.0), "random_state": 0, "n_jobs": 1} | parameters
    return face(3, **settings).fit(ROWS)


@FACE
def test_a_fit_finds_the_clusters_and_its_receipt_adds_up(face: Any) -> None:
    model = fitted(face)
    assert model.cluster_centers_.shape == (3, 3)
    assert ((ROWS[:, np.newaxis] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1).mean() < 0.2
    receipt = model.receipt_
    assert receipt.delta == (0.0 if face in PURE else pytest.approx(len(ROWS) ** -1.1))
    assert 0 < receipt.epsilon_spent <= 5.0
    running = [line["epsilon_so_far"] for line in receipt.to_dict()["releases"]]
    assert running == sorted(running)
    assert running[-1] == receipt.epsilon_spent
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "inertia_")


@FACE
def test_parameters_have_rules_and_survive_a_clone(face: Any) -> None:
    parameters = face().get_params()
    assert parameters.keys() <= RULES.keys()
    unset = {name for name, value in parameters.items() if value is None}
    assert unset == {*OPTIONAL, "domain"} & parameters.keys()
    assert clone(face(5, epsilon=0.5)).get_params() == parameters | {"n_clusters": 5, "epsilon": 0.5}


@FACE
def test_saved_models_are_read_back(face: Any, tmp_path: Path) -> None:
    model = fitted(face)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert type(again) is face
    assert np.array_equal(again.cluster_centers_, model.cluster_centers_)
    assert again.receipt_ == model.receipt_


@pytest.mark.parametrize("face", PURE)
def test_a_pure_guarantee_takes_no_delta(face: Any) -> None:
    with pytest.raises(ParameterError, match="delta"):
        fitted(face, delta=1e-5)


def test_the_private_root_is_released_and_charged() -> None:
    names = [release.name for release in fitted(LSHKMeans, private_root=True).receipt_.releases]
    assert names.count("root") == 1
    assert "root" not in [release.name for release in fitted(LSHKMeans).receipt_.releases]


def test_starts_of_lsh_cost_no_privacy() -> None:
    one, ten = (fitted(LSHKMeans, n_init=starts) for starts in (1, 10))
    assert one.receipt_ == ten.receipt_
    with pytest.raises(ParameterError, match="n_init=0 is not a whole number from 1"):
        fitted(LSHKMeans, n_init=0)


def test_the_papers_fixed_six_iterations_of_fastlloyd() -> None:
    names = [release.name for release in fitted(FastLloyd, n_iterations=6).receipt_.releases]
    assert names == ["residual sums", "counts"] * 6


@pytest.mark.parametrize("face", [FastLloyd, DPLloyd, BalcanKMeans])
def test_a_smaller_box_changes_the_result(face: Any) -> None:
    assert not np.array_equal(fitted(face).cluster_centers_, fitted(face, box=0.6).cluster_centers_)

"""The scikit-learn faces: what goes in, what comes out, and what must never come out."""

from __future__ import annotations

import dataclasses
import gc
import logging
import pickle
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pemeans import (
    DataError,
    Domain,
    DomainError,
    ParameterError,
    PEMeans,
    PrivacyLeakWarning,
    SeededNoiseWarning,
)
from pemeans.estimators import METHODS
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.statistics import NearestVotes
from pemeans.rows.memory import MemoryRows

RNG = np.random.default_rng(8)
BOX = Domain.box(-10, 10)
X = np.concatenate([RNG.normal(c, 1, size=(500, 2)) for c in (-5, 0, 5)])
WIDE = np.concatenate([RNG.normal(c, 1, size=(500, 20)) for c in (-5, 0, 5)])
SECRET = 123456.789

each_method = pytest.mark.parametrize("method", METHODS.values())


def small(method: Any = PEMeans, **parameters: Any) -> Any:
    settings: dict[str, Any] = {"n_clusters": 3, "domain": BOX, "random_state": 0, "n_jobs": 1}
    if issubclass(method, PEMeans):
        settings |= {"n_iterations": 4, "n_variations": 8}
    return method(**(settings | parameters))


def bytes_of(model: Any) -> tuple[bytes, bytes]:
    return model.cluster_centers_.tobytes(), model.cluster_sizes_.tobytes()


# --- What comes out -----------------------------------------------------------------------------------------


@each_method
@pytest.mark.parametrize("data", [X, WIDE], ids=["2 features", "20 features"])
def test_clusters_are_found(method: Any, data: Any) -> None:
    truth = np.repeat([0, 1, 2], 500)
    model = method(3, epsilon=2.0, domain=BOX, random_state=1)
    labels = model.fit_predict(data)
    assert adjusted_rand_score(truth, labels) > 0.9
    assert labels.dtype == np.int32
    assert model.cluster_centers_.shape == (3, data.shape[1])
    assert np.abs(np.sort(model.cluster_centers_[:, 0]) - [-5, 0, 5]).max() < 1.5
    assert abs(model.cluster_sizes_.sum() - 1500) < 300
    assert model.receipt_.epsilon_spent <= 2.0
    assert model.n_features_in_ == data.shape[1]


@each_method
def test_transform_predict_and_score_agree(method: Any) -> None:
    model = small(method).fit(X)
    distances = model.transform(X)
    assert distances.shape == (1500, 3)
    gaps = X[:, None] - model.cluster_centers_
    assert np.allclose(distances, np.sqrt((gaps**2).sum(axis=2)))
    assert np.array_equal(distances.argmin(axis=1), model.predict(X))
    assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum())
    assert np.array_equal(model.fit_transform(X), distances)


def test_with_scale_distances_are_in_half_widths() -> None:
    model = small(domain=Domain.box([-10, -1000], [10, 1000], scale=True)).fit(X * [1, 100])
    gaps = (X[:, None] * [1, 100] - model.cluster_centers_) / [10, 1000]
    assert np.allclose(model.transform(X * [1, 100]), np.sqrt((gaps**2).sum(axis=2)))


def test_a_row_gets_the_same_answer_in_any_company() -> None:
    model = small().fit(WIDE)
    distances, labels = model.transform(WIDE), model.predict(WIDE)
    order = RNG.permutation(len(WIDE))
    assert model.transform(WIDE[order]).tobytes() == distances[order].tobytes()
    for piece in (slice(0, 1), slice(7, 8), slice(3, 500, 7)):
        assert model.transform(WIDE[piece]).tobytes() == distances[piece].tobytes()
        assert np.array_equal(model.predict(WIDE[piece]), labels[piece])
    assert model.transform(np.asfortranarray(WIDE)).tobytes() == distances.tobytes()


def test_rows_to_predict_are_taken_as_they_are() -> None:
    model = small().fit(X)
    far = np.array([[1e6, 0.0], [0.0, -1e6]])
    assert np.allclose(model.transform(far), 1e6, rtol=1e-4)
    assert np.isfinite(model.transform(np.array([[1.7e308, -1.7e308], [1e200, 0.0]]))).all()
    assert np.isfinite(model.score(np.full((10, 2), 1.7e308)))


# --- What goes in -------------------------------------------------------------------------------------------


def layouts(array: Any, folder: Path) -> dict[str, Any]:
    """The same numbers in every layout that NumPy knows."""
    readonly = array.copy()
    readonly.flags.writeable = False
    np.save(folder / "x.npy", array)
    unaligned = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    unaligned[:] = array
    return {
        "C": np.ascontiguousarray(array),
        "Fortran": np.asfortranarray(array),
        "strided": np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::2, ::3],
        "backward": array[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": readonly,
        "memory-mapped": np.load(folder / "x.npy", mmap_mode="r"),
        "unaligned": unaligned,
        "big endian": array.astype(array.dtype.newbyteorder(">")),
        "nested lists": array.tolist(),
    }


@each_method
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_])
@pytest.mark.parametrize(
    "domain", [BOX, Domain.ball(9, 0.3), Domain.box(-7, 9, scale=True), "from-data"], ids=str
)
@pytest.mark.filterwarnings("ignore::pemeans.errors.PrivacyLeakWarning")
def test_every_layout_gives_the_same_model(method: Any, dtype: Any, domain: Any, tmp_path: Path) -> None:
    data = np.abs(WIDE[::7]).round(2).astype(dtype)
    models = {
        name: bytes_of(small(method, domain=domain).fit(rows))
        for name, rows in layouts(data, tmp_path).items()
    }
    assert len(set(models.values())) == 1, models.keys()


def test_single_and_double_precision_of_the_same_numbers_give_the_same_model() -> None:
    single = X.astype(np.float32)
    assert bytes_of(small().fit(single)) == bytes_of(small().fit(single.astype(np.float64)))


@each_method
def test_every_frame_gives_the_model_of_the_array(method: Any) -> None:
    columns = {"age": X[:, 0], "bmi": X[:, 1]}
    wanted = bytes_of(small(method).fit(X))
    batch = pa.RecordBatch.from_pydict(columns)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), batch):
        model = small(method).fit(frame)
        assert bytes_of(model) == wanted
        assert list(model.feature_names_in_) == ["age", "bmi"]
        assert "age [-10, 10]" in str(model.receipt_)
        for other in (pd.DataFrame, pl.DataFrame, pa.table):
            assert np.array_equal(model.predict(other(columns)), model.predict(frame))
            with pytest.raises(DataError, match="must be in the same order"):
                model.predict(other({"bmi": X[:, 1], "age": X[:, 0]}))
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.predict(X)


def test_a_refit_forgets_the_names_of_other_columns() -> None:
    model = small().fit(pl.DataFrame({"age": X[:, 0], "bmi": X[:, 1]}))
    assert not hasattr(model.fit(X), "feature_names_in_")


def test_fits_do_not_change_the_rows() -> None:
    rows = X * 3
    small().fit(rows)
    assert np.array_equal(rows, X * 3)


# --- With the rest of scikit-learn --------------------------------------------------------------------------


@each_method
def test_clone_and_parameters(method: Any) -> None:
    model = small(method, epsilon=0.5, progress=print)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert bytes_of(copy.set_params(progress=False).fit(X)) == bytes_of(
        model.set_params(progress=False).fit(X)
    )
    with pytest.raises(ValueError, match="Invalid parameter 'clusters'"):
        model.set_params(clusters=3)


def test_in_a_pipeline() -> None:
    steps = make_pipeline(FunctionTransformer(np.log1p), small(domain=Domain.box(0, 5)))
    labels = steps.fit_predict(np.exp(np.abs(X)) - 1)
    assert np.array_equal(labels, small(domain=Domain.box(0, 5)).fit_predict(np.log1p(np.exp(np.abs(X)) - 1)))


def test_in_a_grid_search() -> None:
    search = GridSearchCV(small(), {"n_clusters": np.arange(1, 4), "epsilon": [1.0, np.float32(4)]}, cv=2)
    search.fit(RNG.permutation(X))
    assert search.best_params_["n_clusters"] == 3
    assert search.best_estimator_.cluster_centers_.shape == (3, 2)


@each_method
def test_pickles(method: Any) -> None:
    model = small(method).fit(WIDE)
    back = pickle.loads(pickle.dumps(model))
    assert bytes_of(back) == bytes_of(model)
    assert back.receipt_ == model.receipt_
    assert np.array_equal(back.predict(WIDE), model.predict(WIDE))


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_output_in_frames(kind: Any, frame: Any) -> None:
    model = small().set_output(transform=kind).fit(X)
    found = model.transform(X)
    assert isinstance(found, frame)
    assert list(found.columns) == ["pemeans0", "pemeans1", "pemeans2"] == list(model.get_feature_names_out())


def test_predictions_need_a_fit() -> None:
    for use in (PEMeans().predict, PEMeans().transform, PEMeans().score):
        with pytest.raises(NotFittedError):
            use(X)


# --- Domain, seed and size ----------------------------------------------------------------------------------


def test_a_domain_from_the_data_is_warned_of_and_noted() -> None:
    with pytest.warns(PrivacyLeakWarning, match="read from the private rows.*Pass public bounds") as caught:
        model = small(domain="from-data", random_state=None).fit(X)
    assert [Path(warning.filename).name for warning in caught] == ["test_estimators.py"]
    assert model.domain_.from_data
    assert "Note: the domain was read from the private rows" in str(model.receipt_)
    assert np.allclose(model.domain_.center, X.mean(axis=0))
    with pytest.warns(PrivacyLeakWarning, match="read from the private rows"):
        again = small(domain=model.domain_, random_state=None).fit(X)
    assert "Note: the domain was read from the private rows" in str(again.receipt_)


def test_a_seed_is_warned_of_and_noted() -> None:
    with pytest.warns(SeededNoiseWarning, match="not private. Leave random_state=None") as caught:
        model = small(random_state=3).fit(X)
    assert [Path(warning.filename).name for warning in caught] == ["test_estimators.py"]
    assert model.receipt_.seeded
    assert "NOT private" in str(model.receipt_)
    assert repr(model).endswith("# seeded noise: reproducible, not private")


def test_without_a_seed_there_is_no_warning_and_no_repetition(recwarn: pytest.WarningsRecorder) -> None:
    first, second = (small(random_state=None).fit(X) for _ in range(2))
    assert not list(recwarn)
    assert bytes_of(first) != bytes_of(second)
    assert not first.receipt_.seeded
    assert "seed" not in repr(first)


def test_the_same_seed_gives_the_same_model() -> None:
    seeds: list[Any] = [7, np.int64(7)]
    assert len({bytes_of(small(random_state=seed).fit(X)) for seed in seeds}) == 1
    for make in (np.random.RandomState, np.random.default_rng):
        used = make(7)
        first, second = (bytes_of(small(random_state=used).fit(X)) for _ in range(2))
        assert first == bytes_of(small(random_state=make(7)).fit(X))
        assert first != second, "a generator moves on"
    assert bytes_of(small(random_state=7).fit(X)) != bytes_of(small(random_state=8).fit(X))


def test_the_number_of_threads_changes_nothing() -> None:
    many = np.tile(X, (30, 1))
    assert len({bytes_of(small(n_jobs=jobs).fit(many)) for jobs in (1, 2, -1, None)}) == 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every statistic that the rows are asked."""
    seen: list[Any] = []
    total = MemoryRows.total

    def spy(self: MemoryRows, statistic: Any) -> Any:
        seen.append(statistic)
        return total(self, statistic)

    monkeypatch.setattr(MemoryRows, "total", spy)
    return seen


def test_all_hyper_parameters_follow_the_public_number_of_rows(asked: list[Any]) -> None:
    sizes: dict[int, set[Any]] = {}
    for rows, n_samples in ((X, None), (X[:100], 1500), (X[:1], 1500), (X, 100)):
        asked.clear()
        model = small(n_samples=n_samples, n_variations=None).fit(rows)
        n = n_samples or len(rows)
        assert model.receipt_.n_rows == model.domain_.n_rows == n
        assert model.receipt_.delta == n**-1.1
        assert isinstance(asked[0], NearestVotes)
        sizes.setdefault(n, set()).add((len(asked[0].candidates), model.receipt_.releases[0].sigma))
    assert {n: len(found) for n, found in sizes.items()} == {1500: 1, 100: 1}
    assert sizes[1500] != sizes[100]


def test_delta_can_be_chosen() -> None:
    assert small(delta=1e-9).fit(X).receipt_.delta == 1e-9


# --- Errors: before anything is released, and never with a private value ------------------------------------


def dirty(value: Any, dtype: Any = float) -> Any:
    rows = np.full((5, 2), SECRET).astype(dtype)
    rows[3, 1] = value
    return rows


GOOD = np.full((5, 2), SECRET)
REFUSED: dict[str, tuple[dict[str, Any], Any, type[Exception], str]] = {
    "NaN": ({}, dirty(np.nan), DataError, "contains NaN.*column 1"),
    "infinity": ({}, dirty(-np.inf), DataError, "infinity.*column 1"),
    "missing": ({}, pl.DataFrame({"a": [SECRET, None, 1, 2]}), DataError, "missing value in column 'a'"),
    "text": ({}, dirty("SECRET", object), DataError, "not a string"),
    "dict": ({}, dirty({"SECRET": SECRET}, object), DataError, "must be a number"),
    "text column": ({}, pd.DataFrame({"a": ["SECRET"] * 5}), DataError, "column 'a'.*drop it or encode it"),
    "dates": ({}, dirty(1).astype("M8[s]"), DataError, "datetime64"),
    "complex": ({}, dirty(1j, complex), DataError, "Complex"),
    "sparse": ({}, sparse.csr_matrix(GOOD), DataError, "sparse.*toarray"),
    "lazy": ({}, pl.LazyFrame({"a": [SECRET]}), DataError, "collect it first"),
    "empty": ({}, np.empty((0, 2)), DataError, r"0 sample\(s\)"),
    "1-d": ({}, GOOD[0], DataError, "Reshape your data"),
    "3-d": ({}, GOOD[None], DataError, "got 3D array"),
    "ragged": ({}, [[SECRET], [SECRET, SECRET]], DataError, "equal length"),
    "no clusters": ({"n_clusters": 0}, GOOD, ParameterError, "n_clusters=0"),
    "more clusters than rows": (
        {"n_clusters": 6},
        GOOD,
        ParameterError,
        "n_clusters=6 is more than n_samples=5",
    ),
    "no budget": ({"epsilon": 0}, GOOD, ParameterError, "epsilon=0"),
    "delta": ({"delta": 1.5}, GOOD, ParameterError, r"delta=1\.5"),
    "no domain": ({"domain": None}, GOOD, DomainError, "domain=None.*Domain.box"),
    "wrong domain": ({"domain": GOOD}, GOOD, DomainError, "domain=<ndarray>"),
    "narrow domain": (
        {"domain": Domain.box([0], [1])},
        np.full((5, 0), SECRET),
        DataError,
        r"0 feature\(s\)",
    ),
    "domain of other width": (
        {"domain": Domain.box([0] * 3, 1)},
        GOOD,
        DomainError,
        "3 features, but X has 2",
    ),
    "rows for n_clusters": ({"n_clusters": GOOD}, GOOD, ParameterError, "n_clusters=<ndarray>"),
    "n_samples": ({"n_samples": 0}, GOOD, ParameterError, "n_samples=0"),
    "seed": ({"random_state": "SE"}, GOOD, ParameterError, "random_state='SE'"),
    "progress": ({"progress": 1}, GOOD, ParameterError, "progress=1"),
}


@each_method
@pytest.mark.parametrize(("parameters", "data", "kind", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_before_anything_is_released(
    method: Any, parameters: Any, data: Any, kind: Any, says: str,
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    charged: list[Any] = []
    monkeypatch.setattr(Ledger, "charge", lambda self, *rest, **named: charged.append(rest))
    caplog.set_level(logging.DEBUG)
    model = small(method, **({"random_state": None} | parameters))
    with pytest.raises(kind, match=says) as caught:
        model.fit(data)
    assert not asked
    assert not charged
    assert not [name for name in vars(model) if name.endswith("_")], "a failed fit leaves nothing behind"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    told += "".join(str(warning.message) for warning in recwarn)
    assert "SECRET" not in told
    assert "123456" not in told


@each_method
def test_a_fit_says_nothing_of_the_rows(
    method: Any,
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Numbers that overflow would make NumPy warn, where others would not."""
    caplog.set_level(logging.DEBUG)
    rows = np.array([[1.7e308, -1.7e308], [5e-324, 0.0], [SECRET, 1e160], [0.0, 0.0]] * 5)
    for domain in (BOX, Domain.ball(1e-150), Domain.ball(1e150), Domain.box(0, 1e-100, scale=True)):
        model = small(method, domain=domain, random_state=None).fit(rows)
        model.predict(rows)
        model.transform(rows)
        model.score(rows)
    assert not list(recwarn)
    assert caplog.text + "".join(capfd.readouterr()) == ""


def test_numpys_error_settings_change_nothing() -> None:
    rows = np.array([[1.7e308, -1.7e308], [5e-324, 0.0], [SECRET, 1e160], [0.0, 0.0]] * 5)
    for domain in (Domain.ball(1e-150), Domain.ball(1e150), Domain.box(0, 1e100, scale=True)):
        wanted = bytes_of(small(domain=domain).fit(rows))
        with np.errstate(all="raise"):
            model = small(domain=domain).fit(rows)
            model.transform(rows)
        assert bytes_of(model) == wanted


@pytest.mark.parametrize("use", ["predict", "transform", "score"])
def test_rows_to_predict_are_checked_as_well(use: str) -> None:
    model = small().fit(X)
    for data, says in (
        (np.full((4, 3), SECRET), "X has 3 features, but PEMeans is expecting 2 features as input"),
        (dirty(np.nan), "contains NaN"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
    ):
        with pytest.raises(DataError, match=says) as caught:
            getattr(model, use)(data)
        assert "123456" not in str(caught.value)


# --- Nothing private on a fitted model ----------------------------------------------------------------------


def reachable(root: Any) -> Iterator[Any]:
    """All objects that can be reached from a model, but for code."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)
    seen: set[int] = set()
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, code):
            continue
        seen.add(id(thing))
        yield thing
        todo += [thing.base] if isinstance(thing, np.ndarray) and thing.base is not None else []
        todo += gc.get_referents(thing)


@each_method
@pytest.mark.parametrize("width", [2, 20])
def test_a_fitted_model_holds_no_rows(method: Any, width: int) -> None:
    n = 997
    rows = RNG.random((n, width))
    rows[5] = SECRET
    model = small(method, domain=Domain.box(0, 200_000), random_state=None).fit(rows)
    model.predict(rows)
    for thing in reachable(model):
        size = max(np.shape(thing), default=0) if isinstance(thing, np.ndarray) else 0
        size = len(thing) if isinstance(thing, list | tuple | dict | set | bytes) else size
        assert size < n, f"{type(thing)} of size {size}"
        assert not isinstance(thing, float) or thing not in rows
        assert not isinstance(thing, str) or "123456" not in thing
        if isinstance(thing, np.ndarray) and thing.dtype.kind == "f":
            assert not np.isin(thing, rows).any()
    pickled = pickle.dumps(model)
    assert not [value for value in rows.ravel() if value.tobytes() in pickled]
    assert len(pickled) < n * width * 4


@each_method
def test_a_fitted_model_has_the_documented_attributes_only(method: Any) -> None:
    model = small(method).fit(X)
    public = {name for name in vars(model) if name.endswith("_")}
    assert public == {"cluster_centers_", "cluster_sizes_", "receipt_", "domain_", "n_features_in_"}
    for name in ("labels_", "inertia_", "n_iter_", "loss_", "history_"):
        assert not hasattr(model, name)


def test_documentation_names_every_parameter_and_attribute() -> None:
    for method in METHODS.values():
        text = method.__doc__ or ""
        model = small(method).fit(X)
        assert all(name in text for name in model.get_params())
        assert all(name in text for name in vars(model) if name.endswith("s_") or name.endswith("t_"))
        assert ">>>" in text


def test_settings_are_parameters() -> None:
    from pemeans.evolution.loop import Settings

    parameters = PEMeans().get_params()
    for field in dataclasses.fields(Settings):
        assert field.default is dataclasses.MISSING or parameters[field.name] == field.default

"""Data of odd shapes, fed to every method by the benchmark's own protocol."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.bench.datasets import prepared
from pemeans.bench.homes import FOLDER_VARIABLE
from pemeans.bench.methods import ALL_METHODS, NO_BUDGET, Method
from pemeans.bench.runs import Run, perform

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(0)
SHAPES: dict[str, tuple[Floats, int]] = {
    "one row": (RNG.normal(size=(1, 2)), 1),
    "as many rows as clusters": (RNG.normal(size=(5, 3)), 5),
    "hardly more rows than clusters": (RNG.normal(size=(9, 3)), 8),
    "one dimension": (RNG.normal(size=(300, 1)), 4),
    "more dimensions than rows": (RNG.normal(size=(30, 200)), 5),
    "fewer different rows than clusters": (np.repeat(RNG.normal(size=(3, 5)), 60, axis=0), 8),
    "constant columns": (np.c_[RNG.normal(size=(200, 2)), np.full((200, 3), 7.0)], 4),
    "all rows equal": (np.full((50, 4), 0.1), 3),
    "one cluster": (RNG.normal(size=(100, 3)), 1),
    "an outlier far away": (np.r_[RNG.normal(size=(300, 2)), [[1e9, 1e9]]], 3),
    "very large numbers": (1e300 * RNG.uniform(-1, 1, size=(40, 3)), 3),
    "very small numbers": (1e-300 * RNG.normal(size=(40, 3)), 3),
}


@pytest.mark.parametrize("method", ALL_METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("error")
def test_every_method_takes_it(
    shape: str, method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, k = SHAPES[shape]
    if X.shape[1] <= method.above:
        pytest.skip(f"{method.name} is PEMeans below {method.above + 1} columns, so suites leave it out")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    np.savez(tmp_path / "odd.npz", X=X, k=k)
    prepared.cache_clear()
    try:
        for epsilon in (0.001, 4.0, math.inf) if method.private else (NO_BUDGET,):
            outcome = perform(Run("odd", method.name, "{}", epsilon, 0))
            assert outcome.error is None
            assert outcome.loss is not None
            assert 0 <= outcome.loss <= (1 + math.sqrt(X.shape[1])) ** 2  # centers stay in the box
    finally:
        prepared.cache_clear()

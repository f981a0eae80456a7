"""What holds for the methods of the paper and for its baselines alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pemeans import Domain
from pemeans.estimators import METHODS, MORE_METHODS
from pemeans.peers import BalcanKMeans, DPLloyd, FastLloyd, LSHKMeans
from test_hyperparameters_are_public import Tape, neighbors, outcome, recording, replaying, rows_of

CASES: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "lsh": (LSHKMeans, 2, {}),
    "lsh, much budget": (LSHKMeans, 3, {"epsilon": 30.0}),
    "lsh, private root": (LSHKMeans, 2, {"private_root": True}),
    "fastlloyd": (FastLloyd, 2, {}),
    "fastlloyd, little budget": (FastLloyd, 5, {"epsilon": 0.02}),
    "dplloyd": (DPLloyd, 2, {}),
    "balcan": (BalcanKMeans, 2, {}),
    "balcan, many dimensions": (BalcanKMeans, 20, {"epsilon": 3.0}),
}


@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
@pytest.mark.parametrize("method", [*METHODS.values(), *MORE_METHODS.values()])
def test_printed_receipts_fit_into_80_columns(method: Any, epsilon: float) -> None:
    receipt = method(3, epsilon=epsilon, domain=Domain.ball(1.0), random_state=0).fit(rows_of(20)).receipt_
    assert max(map(len, str(receipt).splitlines())) <= 80


@pytest.mark.parametrize("case", CASES)
def test_the_same_answers_from_neighbors_make_the_same_file(case: str, tmp_path: Path) -> None:
    method, d, parameters = CASES[case]
    rows = rows_of(d)
    settings: dict[str, Any] = {"domain": Domain.box(-1, 1), "n_samples": len(rows), "random_state": 5}
    model = method(n_clusters=3, n_jobs=1, **(settings | parameters))
    script = Tape()
    with recording(script):
        recorded = outcome(model, rows, tmp_path)
    assert len(script.released) == len(script.exact) == len(model.receipt_.releases)
    for name, others in neighbors(rows).items():
        tape = Tape()
        with replaying(script, tape):
            again = outcome(model, others, tmp_path)
        assert [x.shape for x in tape.exact] == [x.shape for x in script.exact], name
        if name != "another order":
            assert any((a != b).any() for a, b in zip(tape.exact, script.exact, strict=True)), name
        assert again == recorded, name

"""Nothing but released answers reaches a model: the same answers from other rows make the same file.

A first fit is recorded. A second one, on other rows, gets noise that turns its exact totals into the very
same answers. Whatever then differed would have come from the rows by another way: a count of centers, a
number of iterations, a threshold, a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pemeans import Domain, HDPEMeans, PEMeans, Progress
from pemeans.kernels.grid import IntArray
from pemeans.privacy.bits import Bits, SystemBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.rows.base import Question
from pemeans.rows.memory import MemoryRows

Rows = npt.NDArray[np.float64]
N = 240
DOORS = ("release", "release_pure", "release_gaussian", "release_laplace", "choose")
"""All ways in which a curator answers."""


@dataclass
class Tape:
    """The exact totals and the released answers of one fit; of a choice its number is released."""

    exact: list[IntArray] = field(default_factory=list)
    released: list[IntArray] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """The number of the question that is being answered."""
        return len(self.exact) - 1


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Write down all that crosses the curator's doors."""
    ask: Callable[[MemoryRows, Question], IntArray] = MemoryRows.total

    def total(self: MemoryRows, statistic: Question) -> IntArray:
        tape.exact.append(ask(self, statistic))
        return tape.exact[-1]

    def written(door: Callable[..., Any]) -> Callable[..., Any]:
        def opened(*question: Any) -> Any:
            answer = door(*question)
            tape.released.append(np.array(answer.values if isinstance(answer, Answer) else answer))
            return answer

        return opened

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRows, "total", total)
        for door in DOORS:
            patch.setattr(Curator, door, written(getattr(Curator, door)))
        yield


@contextmanager
def replaying(script: Tape, tape: Tape) -> Iterator[None]:
    """Noise that makes every answer the one of the script, and draws no randomness at all."""

    class Compensating:
        def __init__(self, bits: Bits, tail_bits: int) -> None:
            self.seeded = bits.seeded

        def gaussian(self, sigma: float, size: int) -> IntArray:
            noise = script.released[tape.asked] - tape.exact[-1]
            assert noise.size == size
            return noise.ravel()

        laplace = gaussian

    def chosen(losses: IntArray, scale: float, noise: object) -> int:
        return int(script.released[tape.asked])

    with recording(tape), pytest.MonkeyPatch.context() as patch:
        patch.setattr("pemeans.estimators.NoiseSampler", Compensating)
        patch.setattr("pemeans.privacy.curator.noisy_minimum", chosen)
        yield


def rows_of(d: int) -> Rows:
    rng = np.random.default_rng(d)
    return rng.choice([-0.6, 0.0, 0.5], size=(N, 1)) + 0.05 * rng.standard_normal((N, d))


def neighbors(rows: Rows) -> dict[str, Rows]:
    """Rows that differ in one, and rows that have nothing in common."""
    d = rows.shape[1]
    moved = rows.copy()
    moved[17] = 1e300
    return {
        "one row less": np.delete(rows, 17, axis=0),
        "one row more": np.vstack([rows, np.full((1, d), -1e-300)]),
        "one row moved": moved,
        "another order": rows[::-1],
        "all rows at one point": np.full((N, d), 0.25),
        "all rows far outside": np.full((N, d), 1e308),
        "one row only": rows[:1],
        "as many rows as centers": rows[:3],
    }


def outcome(model: Any, rows: Rows, folder: Path) -> tuple[bytes, list[str], list[tuple[int, int, object]]]:
    """The model file, the warnings and the progress of a fit."""
    shown: list[tuple[int, int, object]] = []

    def watch(progress: Progress) -> None:
        centers = progress.cluster_centers
        shown.append(
            (progress.iteration, progress.n_iterations, None if centers is None else centers.tolist())
        )

    model.set_params(progress=watch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    model.save(folder / "model.json")
    messages = [f"{type(w.message).__name__}: {w.message}" for w in caught]
    return (folder / "model.json").read_bytes(), messages, shown


CASES: dict[str, tuple[type[PEMeans | HDPEMeans], int, dict[str, Any]]] = {
    "plain": (PEMeans, 2, {}),
    "little budget": (PEMeans, 2, {"epsilon": 0.02, "n_variations": 40}),
    "much budget": (PEMeans, 2, {"epsilon": 6.0}),
    "top-k": (PEMeans, 2, {"selection": "top-k"}),
    "high dimensions": (HDPEMeans, 20, {}),
    "high dimensions, little budget": (HDPEMeans, 20, {"epsilon": 0.02, "n_variations": 40}),
    "high dimensions, ball": (HDPEMeans, 20, {"domain": Domain.ball(2.0)}),
    "scaled box": (PEMeans, 2, {"domain": Domain.box(-1, [1, 3], scale=True)}),
    "hardly any variation": (HDPEMeans, 20, {"n_variations": 1, "n_iterations": 3}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_answers_make_the_same_model(case: str, tmp_path: Path) -> None:
    method, d, parameters = CASES[case]
    rows = rows_of(d)
    settings: dict[str, Any] = {"domain": Domain.box(-1, 1), "n_samples": N, "random_state": 5, "n_jobs": 1}
    model = method(n_clusters=3, **(settings | parameters))
    script = Tape()
    with recording(script):
        file, messages, shown = outcome(model, rows, tmp_path)
    assert len(shown) > 0
    for name, others in neighbors(rows).items():
        tape = Tape()
        with replaying(script, tape):
            again = outcome(model, others, tmp_path)
        assert len(tape.exact) == len(script.exact), name
        assert [x.shape for x in tape.exact] == [x.shape for x in script.exact], name
        if name != "another order":
            assert any((a != b).any() for a, b in zip(tape.exact, script.exact, strict=True)), name
        assert again[0] == file, name
        assert again[1] == messages, name
        assert again[2] == shown, name


def test_a_curator_has_no_other_doors() -> None:
    quiet = {"epsilon", "mu", "n_rows", "n_features", "framed", "smallest_multiplier", "receipt"}
    assert {name for name in dir(Curator) if not name.startswith("_")} <= {*DOORS, *quiet}
    # What is exact goes by names that Python knows only inside the class: nobody writes them by mistake.
    inside = {name for name in vars(Curator) if name.startswith("_") and not name.startswith("__")}
    assert {n for n in inside if not n.startswith("_Curator__")} == {"_with_gaussian", "_with_laplace"}
    curator = Curator(None, Domain.ball(1.0), Ledger(1.0, 0.01), NoiseSampler(SystemBits()))  # type: ignore[arg-type]
    assert {name for name in vars(curator) if not name.startswith("_Curator__")} == {
        "_ledger",
        "_frame",
        "n_rows",
        "n_features",
    }


@pytest.mark.parametrize(("method", "d"), [(PEMeans, 2), (HDPEMeans, 20)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_what_is_asked_and_what_it_costs_does_not_depend_on_the_rows(
    method: type[PEMeans], d: int, epsilon: float
) -> None:
    """With noise of its own every data set of the same size has the same receipt and first question."""
    rows = rows_of(d)
    seen = set()
    for others in [rows, *neighbors(rows).values()]:
        tape = Tape()
        model = method(n_clusters=3, epsilon=epsilon, n_samples=N, domain=Domain.box(-1, 1), n_jobs=1)
        with recording(tape):
            model.fit(others)
        asked = [(r.name, r.statistic, r.sensitivity, r.sigma, r.share) for r in model.receipt_.releases]
        assert len(tape.exact) == len(asked)
        seen.add((tuple(asked), tape.exact[0].shape, str(model.receipt_), model.cluster_centers_.shape))
    assert len(seen) == 1

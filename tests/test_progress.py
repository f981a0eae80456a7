"""What a fit says while it runs."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans, Progress
from pemeans.evolution.loop import Iteration

RNG = np.random.default_rng(3)
X = RNG.random((300, 2))


def fitted(progress: Any, data: Any = X, method: Any = PEMeans) -> Any:
    return method(
        3, domain=Domain.box(0, 1), n_iterations=6, random_state=1, n_jobs=1, progress=progress
    ).fit(data)


def test_a_function_is_called_after_every_iteration() -> None:
    seen: list[Progress] = []
    model = fitted(seen.append)
    assert [(step.iteration, step.n_iterations) for step in seen] == [(i, 6) for i in range(1, 7)]
    for step in seen:
        assert step.cluster_centers is not None
        assert step.cluster_centers.shape == (3, 2)
    assert np.array_equal(seen[-1].cluster_centers, model.cluster_centers_)  # type: ignore[arg-type]


def test_watching_changes_nothing() -> None:
    def meddle(step: Progress) -> None:
        assert step.cluster_centers is not None
        step.cluster_centers[:] = 0

    assert np.array_equal(fitted(meddle).cluster_centers_, fitted(False).cluster_centers_)


def test_a_projection_has_no_centers_to_show() -> None:
    seen: list[Progress] = []
    fitted(seen.append, RNG.random((300, 20)), HDPEMeans)
    assert [(step.iteration, step.cluster_centers) for step in seen] == [(i, None) for i in range(1, 5)]


def test_the_refinement_has_centers_to_show() -> None:
    seen: list[Progress] = []
    model = DPKMeans(3, domain=Domain.box(0, 1), random_state=1, progress=seen.append).fit(X)
    assert [step.iteration for step in seen] == list(range(1, seen[0].n_iterations + 1))
    assert seen[0].cluster_centers is None
    assert np.array_equal(seen[-1].cluster_centers, model.cluster_centers_)  # type: ignore[arg-type]


def test_only_released_values_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noisy answers replaced by the same numbers, two data sets tell the same."""
    from pemeans.privacy.curator import Answer, Curator

    def release(self: Any, name: str, statistic: Any, share: float) -> Answer:
        return Answer(np.arange(len(statistic.candidates), dtype=np.int64), 1.0)

    monkeypatch.setattr(Curator, "release", release)
    told: list[list[bytes]] = [[], []]
    for steps, data in zip(told, (X, 1 - X**3), strict=True):
        fitted(lambda step, steps=steps: steps.append(step.cluster_centers.tobytes()), data)
    assert told[0] == told[1]
    assert len(told[0]) == 6


def test_the_algorithms_watcher_holds_released_values_only() -> None:
    assert set(Iteration.__dataclass_fields__) == {"number", "of", "population", "votes", "survivors"}
    assert set(Progress.__dataclass_fields__) == {"iteration", "n_iterations", "cluster_centers"}


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_bar_is_drawn_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    fitted(True)
    assert "Private evolution" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_there_is_no_bar_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    fitted(True)
    assert "Private" not in "".join(capfd.readouterr())


def test_an_error_of_the_users_function_comes_through() -> None:
    def stop(step: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(stop)

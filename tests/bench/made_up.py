"""Made-up results."""

from __future__ import annotations

from pemeans.bench.analysis import Results
from pemeans.bench.methods import NO_BUDGET, REFERENCE
from pemeans.bench.runs import Outcome, Run, canonical, describe_environment
from pemeans.bench.store import Record
from pemeans.bench.suites import EPSILONS

NOW = "2026-01-02T03:04:05+00:00"


def record(
    dataset: str,
    method: str,
    epsilon: float,
    repeat: int,
    loss: float | None,
    accuracy: float | None = None,
    error: str | None = None,
    parameters: str = "{}",
    trace: bytes | None = None,
) -> Record:
    run = Run(dataset, method, parameters, epsilon, repeat)
    outcome = Outcome(
        run,
        NOW,
        describe_environment(),
        loss=loss,
        accuracy=accuracy,
        seconds=None if loss is None else 0.5,
        peak_memory=None if loss is None else 1 << 27,
        trace=trace,
        error=error,
    )
    return Record("table1", run, outcome)


def constant(dataset: str, method: str, losses: list[float], accuracy: float | None = None) -> list[Record]:
    """A method that has the same loss at every budget: one entry of `losses` a repeat."""
    budgets = [NO_BUDGET] if method == REFERENCE else EPSILONS
    return [
        record(dataset, method, epsilon, repeat, loss, accuracy)
        for repeat, loss in enumerate(losses)
        for epsilon in budgets
    ]


def grid(dataset: str, settings: dict[float, dict[str, object]], method: str = "PEMeans") -> list[Record]:
    """Losses of settings at epsilon 1, in three repeats."""
    return [
        record(dataset, method, 1.0, repeat, loss * (1 + repeat / 100), parameters=canonical(parameters))
        for loss, parameters in settings.items()
        for repeat in range(3)
    ]


def results(*parts: list[Record]) -> Results:
    return Results([one for part in parts for one in part])

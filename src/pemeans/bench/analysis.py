"""From rows of results to the paper's figures: areas under the curve, means and confidence intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from scipy.stats import t as student

from pemeans.bench.methods import NO_BUDGET, REFERENCE
from pemeans.bench.runs import Outcome
from pemeans.bench.store import Record
from pemeans.bench.suites import EPSILONS
from pemeans.kernels.grid import FloatArray

CONFIDENCE = 0.95
DEFAULTS = "{}"
"""The parameters of runs with a method's own defaults."""


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats; its 95 % confidence interval is ``mean`` plus or minus ``half``."""

    mean: float
    half: float
    repeats: int


def estimate(values: Sequence[float] | FloatArray) -> Estimate:
    """Mean and Student's confidence interval.

    Examples
    --------
    >>> found = estimate([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half, 4)
    (2.0, 2.4841)
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return Estimate(float(array[0]) if len(array) else nan, nan, len(array))
    spread = float(array.std(ddof=1)) / sqrt(len(array))
    return Estimate(
        float(array.mean()), spread * float(student.ppf((1 + CONFIDENCE) / 2, len(array) - 1)), len(array)
    )


def area(losses: Sequence[float], epsilons: Sequence[float] = EPSILONS) -> float:
    """Area under the loss against epsilon by the trapezoidal rule.

    Examples
    --------
    >>> area([2.0] * 5)
    7.5
    """
    heights, places = np.asarray(losses), np.asarray(epsilons)
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(places)).sum())


class Results:
    """Finished runs by data set, method, parameters, epsilon and repeat."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._cells: dict[tuple[str, str, str, float], dict[int, Outcome]] = defaultdict(dict)
        for record in self.records:
            if record.outcome.error is None:
                self._cells[record.run.cell][record.run.repeat] = record.outcome

    @property
    def failed(self) -> list[Outcome]:
        """Runs that ended with an error."""
        return [record.outcome for record in self.records if record.outcome.error is not None]

    @property
    def datasets(self) -> tuple[str, ...]:
        """All data sets, in the order of the file."""
        return tuple(dict.fromkeys(record.run.dataset for record in self.records))

    def outcomes(
        self, dataset: str, method: str, epsilon: float, parameters: str = DEFAULTS
    ) -> dict[int, Outcome]:
        """Finished runs by repeat; of the reference, whatever the epsilon."""
        budget = NO_BUDGET if method == REFERENCE else epsilon
        return self._cells.get((dataset, method, parameters, budget), {})

    def settings(self, dataset: str, method: str, epsilon: float) -> list[str]:
        """All parameters of which there are finished runs."""
        return [p for d, m, p, e in self._cells if (d, m, e) == (dataset, method, epsilon)]

    def loss(self, dataset: str, method: str, epsilon: float, parameters: str = DEFAULTS) -> Estimate:
        """Mean loss over the repeats."""
        return estimate(
            [_float(o.loss) for o in self.outcomes(dataset, method, epsilon, parameters).values()]
        )

    def accuracy(self, dataset: str, method: str, epsilon: float) -> Estimate:
        """Mean label accuracy over the repeats."""
        found = [o.accuracy for o in self.outcomes(dataset, method, epsilon).values()]
        return estimate([value for value in found if value is not None])

    def areas(self, dataset: str, method: str) -> FloatArray:
        """The area under the curve of every repeat that has all five budgets."""
        if method == REFERENCE:
            found = self.outcomes(dataset, method, inf)
            return np.array([area([_float(found[r].loss)] * len(EPSILONS)) for r in sorted(found)])
        curves = [self.outcomes(dataset, method, epsilon) for epsilon in EPSILONS]
        complete = sorted(set.intersection(*(set(curve) for curve in curves)))
        return np.array([area([_float(curve[r].loss) for curve in curves]) for r in complete])


def _float(value: float | None) -> float:
    return nan if value is None else value

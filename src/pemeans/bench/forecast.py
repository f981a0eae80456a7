"""How long runs will take: long ones start first, and the time left can be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import floor, sqrt

from pemeans.bench.runs import Run

Size = tuple[int, int, int]
Cell = tuple[str, str, str, float]

FIRST_RATE = 1e-9
"""Seconds for one unit of work, until a run has shown better."""
FEW_CANDIDATES = 100
"""A guess of what methods without populations compare a row with, per cluster."""
PROJECTED = 16
SET_UP = 1e6
"""Work of the smallest run."""


class Forecast:
    """Learns from finished runs.

    Parameters
    ----------
    size_of : callable
        n, d and k of a data set.

    Examples
    --------
    >>> forecast = Forecast(lambda name: (1000, 2, 3))
    >>> run = Run("toy", "PEMeans", "{}", 1.0, 0)
    >>> forecast.learn(run, 2.0)
    >>> forecast.seconds(run.cell)
    2.0
    """

    def __init__(self, size_of: Callable[[str], Size]) -> None:
        self._size_of = size_of
        self._taken: dict[Cell, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._rates: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def learn(self, run: Run, seconds: float) -> None:
        """Take note of how long a run took."""
        for total, more in ((self._taken[run.cell], 1.0), (self._rates[run.method], self._work(run.cell))):
            total[0] += seconds
            total[1] += more

    def seconds(self, cell: Cell) -> float:
        """What a run of this kind takes: the mean of its like, or else a guess from the sizes."""
        if cell in self._taken:
            seconds, runs = self._taken[cell]
            return seconds / runs
        work = self._work(cell)
        if cell[1] in self._rates:
            seconds, done = self._rates[cell[1]]
            return work * seconds / done
        return work * FIRST_RATE

    def left(self, waiting: Iterable[tuple[Cell, int]], jobs: int) -> float:
        """Seconds until so many runs of each kind are done."""
        return sum(count * self.seconds(cell) for cell, count in waiting) / jobs

    def _work(self, cell: Cell) -> float:
        """Roughly, multiplications: for Private Evolution rows x candidates x dimensions x iterations."""
        dataset, method, _, epsilon = cell
        n, d, k = self._size_of(dataset)
        if method not in ("PEMeans", "HDPEMeans"):
            return SET_UP + n * d * k * FEW_CANDIDATES
        seen = min(d, PROJECTED) if method == "HDPEMeans" else d
        growth = min(max(epsilon, 1.0), 10.0)
        return SET_UP + floor(4 * sqrt(seen) * growth) * n * min(max(n / 5, 5 * k), 16384) * seen


def spoken(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> spoken(42), spoken(200), spoken(9000)
    ('42 s', '3 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"

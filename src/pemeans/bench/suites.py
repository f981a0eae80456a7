"""The paper's studies as declarations: data sets, methods, parameters, budgets, repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pemeans.bench.methods import ALL_METHODS, NO_BUDGET, Method, Role
from pemeans.bench.registry import TABLE1
from pemeans.bench.runs import Run, canonical
from pemeans.errors import ParameterError

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The budgets of Table 1."""
REAL = ("birch2", "iris", "adult", "mnist", "letter", "gas")
"""The data sets of the study of loss against epsilon."""
LABELED = ("mnist", "letter", "iris", "birch2", "g2_4", "g2_16", "g2_64", "g2_128")
"""The data sets of the study of label accuracy."""
FAMILIES = tuple(name for name in TABLE1 if name.startswith(("scale_", "sklearn_")))
"""The data sets of the study of loss against k."""
EVERY_METHOD = tuple(method.name for method in ALL_METHODS)

ITERATIONS = (2, 4, 8, 16, 32, 64)
VARIATIONS = (4, 16, 64, 256, 1024, 4096)
SCALES = (0.001, 0.003, 0.01, 0.03, 0.1)
LEVY_INDICES = (1.0, 1.25, 1.5, 1.75, 2.0)
DEFAULT_SCALE, DEFAULT_INDEX = 0.01, 1.75
MOST_CANDIDATES = 1 << 14

Size = tuple[int, int, int]
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A grid of runs: every method on every data set with every parameter and budget."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...] = EVERY_METHOD
    epsilons: tuple[float, ...] = EPSILONS
    parameters: tuple[Parameters, ...] = ({},)
    sensible: Callable[[Size, Parameters], bool] = lambda size, parameters: True

    def settings(self, size: Size) -> list[str]:
        """The parameters that fit a data set of this size, as text."""
        return [canonical(parameters) for parameters in self.parameters if self.sensible(size, parameters)]


@dataclass(frozen=True)
class Suite:
    """A study of the paper."""

    name: str
    about: str
    part: Part
    repeats: int
    watched: bool = False

    def runs(self, repeats: int, size_of: Callable[[str], Size]) -> Iterator[Run]:
        """All runs of the suite, without those of methods that do not exist or do not fit the data."""
        part = self.part
        for dataset, name in product(part.datasets, part.methods):
            method, size = _METHODS[name], size_of(dataset)
            if not method.available or size[1] <= method.above:
                continue
            for parameters, epsilon in _settings(part, method):
                if part.sensible(size, parameters):
                    for repeat in range(repeats):
                        yield Run(dataset, name, canonical(parameters), epsilon, repeat)

    def limited(self, datasets: Sequence[str], methods: Sequence[str], epsilons: Sequence[float]) -> Suite:
        """The suite for these data sets, methods and budgets only, where any are given."""
        part = self.part
        return replace(
            self,
            part=replace(
                part,
                datasets=tuple(datasets) or part.datasets,
                methods=tuple(methods) or part.methods,
                epsilons=tuple(epsilons) or part.epsilons,
            ),
        )


_METHODS = {method.name: method for method in ALL_METHODS}


def _settings(part: Part, method: Method) -> Iterator[tuple[Parameters, float]]:
    """Parameters and budgets; the reference knows neither."""
    if method.role is Role.REFERENCE:
        yield {}, NO_BUDGET
    else:
        yield from product(part.parameters, part.epsilons)


def _population_fits(size: Size, parameters: Parameters) -> bool:
    """Not more candidates than rows, nor than the public cap."""
    n, _, k = size
    return k * (int(parameters.get("n_variations", 0)) + 1) <= min(n, MOST_CANDIDATES)


def _variation(scale: float, index: float) -> Parameters:
    """The defaults go by the name of no parameters at all, so that suites share their runs."""
    if (scale, index) == (DEFAULT_SCALE, DEFAULT_INDEX):
        return {}
    return {"variation_scale": scale, "levy_index": index}


VOTE_SPLITTING: tuple[Parameters, Parameters] = (
    {"n_iterations": 4, "variation_scale": 0.05, "selection": "top-k"},
    {"n_iterations": 4, "variation_scale": 0.05},
)
"""Top-k and k-means selection, as in the paper's example."""
ITERATION_GRID = ({}, *({"n_iterations": t, "n_variations": v} for t, v in product(ITERATIONS, VARIATIONS)))
VARIATION_GRID = tuple(_variation(scale, index) for scale, index in product(SCALES, LEVY_INDICES))
SMOKE_DATASETS = ("sklearn_4_4", "scale_4_32_seed1")
"""Both are generated, so that the suite runs anywhere."""

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("table1", "Table 1: all methods on the 34 data sets at five budgets", Part(TABLE1), 50),
        Suite("tradeoff", "loss against epsilon on the six real data sets (part of table1)", Part(REAL), 50),
        Suite("labels", "label accuracy against epsilon (part of table1)", Part(LABELED), 50),
        Suite(
            "scaling",
            "loss against k at epsilon 1 on the scale and sklearn families (part of table1)",
            Part(FAMILIES, epsilons=(1.0,)),
            50,
        ),
        Suite(
            "tune-iterations",
            "PE-means with other numbers of iterations T and variations L, at epsilon 1",
            Part(TABLE1, ("PEMeans",), (1.0,), ITERATION_GRID, _population_fits),
            5,
        ),
        Suite(
            "tune-variation",
            "PE-means with other scales gamma and Levy indices beta of the variation, at epsilon 1",
            Part(TABLE1, ("PEMeans",), (1.0,), VARIATION_GRID),
            5,
        ),
        Suite(
            "vote-splitting",
            "top-k against k-means selection on a toy, without noise",
            Part(("toy",), ("PEMeans",), (NO_BUDGET,), VOTE_SPLITTING),
            50,
            watched=True,
        ),
        Suite("smoke", "all methods on two generated data sets: a minute", Part(SMOKE_DATASETS), 2),
    )
}


def suite_named(name: str) -> Suite:
    """The suite that goes by this name.

    Raises
    ------
    ParameterError
        There is none.
    """
    if name not in SUITES:
        raise ParameterError(f"suite {name!r} is not known; choose from {', '.join(SUITES)}")
    return SUITES[name]

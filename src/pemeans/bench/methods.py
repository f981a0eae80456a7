"""The methods that are compared: how each is made, called, and which column of the paper's table it is."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from pemeans.baselines.box import NARROWEST
from pemeans.bench.datasets import Points
from pemeans.domain import Domain
from pemeans.errors import ParameterError

HOMES = ("pemeans.estimators", "pemeans.peers", "pemeans.baselines.nonprivate")
"""Modules in which estimators are looked for."""


class Role(StrEnum):
    """What a method is in the comparison."""

    REFERENCE = "reference"
    EVOLUTION = "evolution"
    RECOMMENDED = "recommended"
    BASELINE = "baseline"


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Parameters
    ----------
    name : str
        What it is called in results and on the command line.
    label : str
        What it is called in tables and figures.
    role : Role
        What it is compared as.
    estimator : str
        The class; a method whose class does not exist is left out.
    parameters : mapping
        What is passed to the class in every run.
    paper : str, optional
        Its column in the paper's Table 1.
    above : int
        Used on data of more dimensions than this only.
    box : bool
        Whether it is told the largest coordinate of all rows, as half the width of a box.
    """

    name: str
    label: str
    role: Role
    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None
    above: int = 0
    box: bool = False

    @property
    def private(self) -> bool:
        return self.role is not Role.REFERENCE

    @property
    def available(self) -> bool:
        """Whether the class exists in this version of pemeans."""
        return self._find() is not None

    def _find(self) -> Any:
        for module in HOMES:
            try:
                return getattr(importlib.import_module(module), self.estimator)
            except (ModuleNotFoundError, AttributeError):
                continue
        return None

    def make(self, points: Points, epsilon: float, seed: int, parameters: Mapping[str, Any]) -> Any:
        """An estimator for normalized data, by the paper's protocol: the same bounds for all; one thread."""
        found = self._find()
        if found is None:
            raise ParameterError(f"method {self.name!r} is not part of this version of pemeans; leave it out")
        chosen = {**self.parameters, **parameters}
        if not self.private:
            return found(n_clusters=points.k, random_state=seed, **chosen)
        if self.box:
            chosen["box"] = float(np.clip(np.abs(points.X).max(), NARROWEST, 1.0))
        return found(
            n_clusters=points.k,
            epsilon=epsilon,
            domain=Domain.ball(1.0),
            random_state=seed,
            n_jobs=1,
            **chosen,
        )


ALL_METHODS: tuple[Method, ...] = (
    Method("NonPrivateKMeans", "Non-private", Role.REFERENCE, "NonPrivateKMeans", paper="nonprivate"),
    Method("PEMeans", "PE-means", Role.EVOLUTION, "PEMeans", paper="pe_means"),
    Method("HDPEMeans", "HDPE-means", Role.EVOLUTION, "HDPEMeans", paper="hdpe_means", above=16),
    Method("DPKMeans", "DPKMeans", Role.RECOMMENDED, "DPKMeans"),
    Method("LSHKMeans", "Google-LSH", Role.BASELINE, "LSHKMeans", paper="google_lsh"),
    Method("FastLloyd", "FastLloyd", Role.BASELINE, "FastLloyd", box=True),
    Method(
        "FastLloyd6",
        "FastLloyd, T=6",
        Role.BASELINE,
        "FastLloyd",
        {"n_iterations": 6},
        box=True,
    ),
    # The paper's runs: always six steps, and in the box [-1, 1] whatever the data.
    Method(
        "FastLloydPaper",
        "FastLloyd, T=6, box [-1, 1]",
        Role.BASELINE,
        "FastLloyd",
        {"n_iterations": 6},
        paper="fastlloyd",
    ),
    Method("DPLloyd", "DP-Lloyd", Role.BASELINE, "DPLloyd", paper="dp_lib", box=True),
    Method("BalcanKMeans", "Balcan et al.", Role.BASELINE, "BalcanKMeans", paper="icml17", box=True),
)
METHODS: dict[str, Method] = {method.name: method for method in ALL_METHODS}
REFERENCE = ALL_METHODS[0].name
NO_BUDGET = math.inf
"""The epsilon under which runs without privacy are filed."""


def method_named(name: str) -> Method:
    """The method that goes by this name.

    Raises
    ------
    ParameterError
        There is none, or not in this version.
    """
    method = METHODS.get(name)
    if method is None or not method.available:
        there = ", ".join(m.name for m in ALL_METHODS if m.available)
        raise ParameterError(f"method {name!r} is not known; choose from {there}")
    return method

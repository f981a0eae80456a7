"""The one place where an estimator's parameters are checked, before any row is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from pemeans.domain import Domain, shown
from pemeans.errors import DomainError, ParameterError
from pemeans.evolution.loop import LEAST_VARIATIONS
from pemeans.evolution.select import SELECTORS

FROM_DATA = "from-data"

NO_DOMAIN = (
    "domain=None: say where the rows can lie, from what is known without looking at them, for example "
    "domain=Domain.box(lower=[0, 40], upper=[120, 200]) or domain=Domain.ball(radius=1). Bounds that are "
    "read from the rows reveal the most extreme row, which the guarantee would not cover; to do so all the "
    f"same, for study, pass domain={FROM_DATA!r}"
)

NO_NUMBERS = (bool, np.timedelta64)
"""Whole numbers to Python and NumPy, but not to a reader."""


def check_parameters(values: dict[str, Any]) -> dict[str, Any]:
    """Check all that can be said of an estimator's parameters alone.

    Returns
    -------
    dict
        The same parameters, with Python's own numbers in place of NumPy's, whose small integers overflow.
    """
    plain: dict[str, Any] = {
        name: None if value is None and name in OPTIONAL else RULES[name](name, value)
        for name, value in values.items()
    }
    if "max_candidates" in plain:
        _check_candidates(plain)
    return plain


def _check_candidates(plain: dict[str, Any]) -> None:
    """Every center and its variations fit into one vote."""
    variations = LEAST_VARIATIONS if plain["n_variations"] is None else plain["n_variations"]
    candidates = plain["n_clusters"] * (variations + 1)
    if candidates > plain["max_candidates"]:
        raise ParameterError(
            f"max_candidates={plain['max_candidates']} is less than n_clusters * (n_variations + 1) = "
            f"{candidates}; raise it, or ask for fewer clusters or variations"
        )


def check_size(n_clusters: int, n_rows: int) -> None:
    """No more clusters than rows; the number of rows is public."""
    if n_clusters > n_rows:
        raise ParameterError(
            f"n_clusters={n_clusters} is more than n_samples={n_rows}; ask for fewer clusters"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, NO_NUMBERS)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, NO_NUMBERS)


def _whole(name: str, value: Any, least: int, most: int, fix: str) -> int:
    """A whole number in ``[least, most]``."""
    if not (_is_whole(value) and least <= int(value) <= most):
        raise ParameterError(f"{name}={shown(value)} is not a whole number from {least} to {most}; {fix}")
    return int(value)


def _real(name: str, value: Any, least: float, most: float, fix: str) -> float:
    """A real number in ``[least, most]``."""
    if not (_is_real(value) and least <= value <= most):
        raise ParameterError(f"{name}={shown(value)} is not a number from {least:g} to {most:g}; {fix}")
    return float(value)


def _epsilon(name: str, value: Any) -> float:
    """A budget, or infinity."""
    fix = "common values are 0.1 to 10, and infinity switches the noise off"
    return math.inf if _is_real(value) and value == math.inf else _real(name, value, 1e-3, 1e3, fix)


def _selection(name: str, value: Any) -> str:
    """One of the rules that there are."""
    if not isinstance(value, str) or value not in SELECTORS:
        raise ParameterError(
            f"{name}={shown(value)} is not one of {', '.join(map(repr, SELECTORS))}; pass one"
        )
    return str(value)


def _flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={shown(value)} is neither True nor False; pass one of them")
    return bool(value)


def _n_jobs(name: str, value: Any) -> int:
    """A number of threads, or joblib's -1 for all cores."""
    if not (_is_whole(value) and int(value) != 0):
        raise ParameterError(
            f"{name}={shown(value)} is not a whole number other than 0; None means all cores"
        )
    return int(value)


def _progress(name: str, value: Any) -> Any:
    """True, False, or a function."""
    if not (isinstance(value, bool) or callable(value)):
        raise ParameterError(
            f"{name}={shown(value)} is neither True, False nor a function; pass a function of one Progress"
        )
    return value


def _random_state(name: str, value: Any) -> Any:
    """A whole number, or one of NumPy's generators."""
    generator = isinstance(value, np.random.RandomState | np.random.Generator)
    if not (generator or (_is_whole(value) and int(value) >= 0)):
        raise ParameterError(
            f"{name}={shown(value)} is neither None, a whole number from 0 up, nor a NumPy random generator; "
            "leave it None for a private result"
        )
    return value


def _domain(name: str, value: Any) -> Domain | str:
    """A domain, or the explicit wish to read it from the data."""
    if value is None:
        raise DomainError(NO_DOMAIN)
    if not (isinstance(value, Domain) or (isinstance(value, str) and value == FROM_DATA)):
        raise DomainError(
            f"{name}={shown(value)} is neither a Domain nor {FROM_DATA!r}; use Domain.box or Domain.ball"
        )
    return value


OPTIONAL = ("delta", "n_samples", "n_iterations", "n_variations", "n_jobs", "random_state", "box")
RULES: dict[str, Callable[[str, Any], Any]] = {
    "n_clusters": partial(_whole, least=1, most=2**20, fix="pass how many centers to find"),
    # With these limits on epsilon, delta and n_iterations the sampler is fine enough for every release.
    "epsilon": _epsilon,
    "delta": partial(_real, least=1e-300, most=0.5, fix="None means n_samples**-1.1"),
    "domain": _domain,
    "n_samples": partial(_whole, least=1, most=2**40, fix="None means len(X)"),
    "random_state": _random_state,
    "n_iterations": partial(_whole, least=1, most=10_000, fix="None means the paper's rule"),
    "n_variations": partial(_whole, least=1, most=2**24, fix="None means the paper's rule"),
    "variation_scale": partial(_real, least=1e-9, most=100.0, fix="the paper's gamma is 0.01"),
    "levy_index": partial(_real, least=0.3, most=2.0, fix="the paper's beta is 1.75"),
    "selection": _selection,
    "max_candidates": partial(_whole, least=2, most=2**24, fix="the default is 16384"),
    "private_root": _flag,
    "n_init": partial(_whole, least=1, most=1000, fix="the default is 10"),
    "box": partial(_real, least=1e-9, most=1.0, fix="None means 1, the ball's"),
    "n_jobs": _n_jobs,
    "progress": _progress,
}
"""How every parameter is checked, by its name."""

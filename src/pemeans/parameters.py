"""The one place where an estimator's parameters are checked, before any row is looked at."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from pemeans.domain import Domain
from pemeans.errors import DomainError, ParameterError
from pemeans.evolution.select import SELECTORS

FROM_DATA = "from-data"

NO_DOMAIN = (
    "domain=None: say where the rows can lie, from what is known without looking at them, for example "
    "domain=Domain.box(lower=[0, 40], upper=[120, 200]) or domain=Domain.ball(radius=1). Bounds that are read "
    "from the rows reveal the most extreme row, which the guarantee would not cover; to do so all the same, "
    f"for study, pass domain={FROM_DATA!r}"
)


def check_whole(name: str, value: Any, least: int) -> None:
    """A whole number that is at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ParameterError(f"{name}={value!r} is not a whole number of at least {least}; pass an int")


def check_real(name: str, value: Any, low: float, high: float, wanted: str) -> None:
    """A real number in ``(low, high]``."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not low < float(value) <= high:
        raise ParameterError(f"{name}={value!r} is not {wanted}")


def check_parameters(values: dict[str, Any]) -> None:
    """Everything that can be said of the parameters alone."""
    check_whole("n_clusters", values["n_clusters"], 1)
    check_real("epsilon", values["epsilon"], 0, math.inf, "a positive number; common values are 0.1 to 10")
    if math.isfinite(values["epsilon"]):
        check_real("epsilon", values["epsilon"], 1e-6, 1e4, "between 1e-06 and 10000, or infinite")
    if values["delta"] is not None:
        check_real("delta", values["delta"], 0, 0.5, "above 0 and at most 0.5; None means n_samples**-1.1")
        check_real("delta", values["delta"], 1e-301, 0.5, "at least 1e-300")
    for name in ("n_samples", "n_iterations", "n_variations"):
        if values[name] is not None:
            check_whole(name, values[name], 1)
    check_whole("max_candidates", values["max_candidates"], 2)
    check_real(
        "variation_scale", values["variation_scale"], 0, math.inf, "a positive number; the paper's is 0.01"
    )
    if not math.isfinite(values["variation_scale"]):
        raise ParameterError(
            f"variation_scale={values['variation_scale']!r} is not finite; the paper's is 0.01"
        )
    check_real("levy_index", values["levy_index"], 0.3, 2, "above 0.3 and at most 2; the paper's is 1.75")
    if values["selection"] not in SELECTORS:
        raise ParameterError(
            f"selection={values['selection']!r} is not one of {', '.join(map(repr, SELECTORS))}"
        )
    if values["n_jobs"] is not None and (
        not isinstance(values["n_jobs"], numbers.Integral) or not values["n_jobs"]
    ):
        raise ParameterError(
            f"n_jobs={values['n_jobs']!r} is not a whole number other than 0; None means all cores"
        )
    progress = values["progress"]
    if not (isinstance(progress, bool) or callable(progress)):
        raise ParameterError(f"progress={progress!r} is neither True, False nor a function")
    check_random_state(values["random_state"])
    check_domain(values["domain"])


def check_random_state(value: Any) -> None:
    """None, a whole number, or one of NumPy's generators."""
    generator = isinstance(value, np.random.RandomState | np.random.Generator)
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= 0
    if not (value is None or generator or whole):
        raise ParameterError(
            f"random_state={value!r} is neither None, a whole number from 0 up, nor a NumPy random generator"
        )


def check_domain(value: Any) -> None:
    """A domain, or the explicit wish to read it from the data."""
    if value is None:
        raise DomainError(NO_DOMAIN)
    if not (isinstance(value, Domain) or (isinstance(value, str) and value == FROM_DATA)):
        raise DomainError(
            f"domain={value!r} is neither a Domain nor {FROM_DATA!r}; use Domain.box or Domain.ball"
        )


def check_size(n_clusters: int, n_rows: int) -> None:
    """No more clusters than rows; the number of rows is public."""
    if n_clusters > n_rows:
        raise ParameterError(
            f"n_clusters={n_clusters} is more than n_samples={n_rows}; ask for fewer clusters or pass more rows"
        )

"""Numbers that the accounting is given: refused by name and value where they make no sense."""

from __future__ import annotations

import math
from numbers import Real

from pemeans.errors import ParameterError

MIN_SIGMA = 0.3
"""The least noise that is ever drawn."""
LARGEST = 2.0**64
"""Beyond every sigma and sensitivity in use, and far from overflow."""
SMALLEST_MU, LARGEST_MU = 1e-100, 1e100


def checked(name: str, value: float, low: float, high: float, fix: str) -> float:
    """Return the value as a Python float, because single precision would spread through all that follows."""
    if not (isinstance(value, Real) and low <= value <= high):
        raise ParameterError(f"{name}={value!r} is not a number from {low:g} to {high:g}: {fix}")
    return float(value)


def checked_mu(mu: float) -> float:
    """Of Gaussian differential privacy."""
    return checked("mu", mu, SMALLEST_MU, LARGEST_MU, "pass a positive number")


def checked_sigma(sigma: float) -> float:
    """Of noise that is drawn."""
    return checked("sigma", sigma, MIN_SIGMA, LARGEST, f"pass the noise of a release, at least {MIN_SIGMA}")


def checked_count(count: int) -> int:
    """Of releases."""
    whole = checked("count", count, 1.0, 2.0**53, "pass the number of releases")
    if not whole.is_integer():
        raise ParameterError(f"count={count!r} is not a whole number: pass the number of releases")
    return int(whole)


def checked_delta(delta: float) -> float:
    """A probability, and no certainty."""
    fix = "pass a probability above 0 and below 1, such as n_samples**-1.1"
    return checked("delta", delta, 1e-305, math.nextafter(1.0, 0.0), fix)

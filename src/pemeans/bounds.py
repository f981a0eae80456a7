"""Bounds as people write them: ``age=0:120`` on the command line, ``age = [0, 120]`` in a TOML file."""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pemeans.domain import Domain
from pemeans.errors import DomainError

Limits = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value of each column, by name."""

    limits: Limits = field(default_factory=dict)
    scale: bool = False

    def domain(self, columns: Sequence[str]) -> Domain:
        """The box of these columns.

        Examples
        --------
        >>> bounds = Bounds({"age": (0, 120), "bmi": (10, 60)})
        >>> print(bounds.domain(["bmi"]))
        box of 1 feature: [10, 60]
        """
        for name in columns:
            if name not in self.limits:
                raise DomainError(
                    f"column {name!r} has no bounds; add --bounds {shlex.quote(f'{name}=LOW:HIGH')}, "
                    "from what is known without looking at the rows"
                )
        lower, upper = zip(*(self.limits[name] for name in columns), strict=True)
        return Domain.box(lower, upper, scale=self.scale)


def parse_bounds(texts: Sequence[str]) -> Limits:
    """Read bounds off the command line.

    Examples
    --------
    >>> parse_bounds(["age=0:120", "bmi=10:60"])
    {'age': (0.0, 120.0), 'bmi': (10.0, 60.0)}
    """
    limits: Limits = {}
    for text in texts:
        name, _, span = text.rpartition("=")
        low, _, high = span.partition(":")
        try:
            pair = (float(low), float(high))
        except ValueError:
            raise DomainError(
                f"--bounds {text!r} is not NAME=LOW:HIGH; write for example --bounds age=0:120"
            ) from None
        if not name:
            raise DomainError(f"--bounds {text!r} names no column; write for example --bounds age=0:120")
        if name in limits:
            raise DomainError(f"--bounds gives column {name!r} twice; keep one")
        limits[name] = _checked(name, pair)
    return limits


def read_bounds(path: Path) -> Bounds:
    """Read a TOML file with a table ``[bounds]`` and, if wished, ``scale = true`` above it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DomainError(
            f"{path} can't be read: {error.strerror or 'unknown reason'}; check the path"
        ) from None
    except UnicodeDecodeError:
        raise DomainError(f"{path} is not TOML, but some binary file; check the path") from None
    except tomllib.TOMLDecodeError as error:
        raise DomainError(f"{path} is not TOML: {error}") from None
    except (ValueError, RecursionError):  # thousands of digits or of brackets
        raise DomainError(f"{path} is not TOML that can be read; write lines like age = [0, 120]") from None
    unknown = sorted(document.keys() - {"bounds", "scale"})
    if unknown:
        raise DomainError(f"{path}: {unknown[0]!r} means nothing here; write columns below a line [bounds]")
    table, scale = document.get("bounds"), document.get("scale", False)
    if not isinstance(table, dict) or not table:
        raise DomainError(
            f"{path} has no bounds; write a line [bounds] and below it lines like age = [0, 120]"
        )
    if not isinstance(scale, bool):
        raise DomainError(f"{path}: scale = {scale!r} is neither true nor false")
    return Bounds({name: _pair(path, name, value) for name, value in table.items()}, scale)


def _pair(path: Path, name: str, value: Any) -> tuple[float, float]:
    """Two numbers out of TOML."""
    two = isinstance(value, list) and len(value) == 2
    if not two or any(isinstance(v, bool) or not isinstance(v, int | float) for v in value):
        raise DomainError(f"{path}: the bounds of {name!r} are not two numbers; write {name} = [LOW, HIGH]")
    return _checked(name, (_as_float(value[0]), _as_float(value[1])))


def _as_float(number: float) -> float:
    """The same number; infinity where it is a whole number beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _checked(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    """Finite bounds, the lower one first."""
    low, high = pair
    if not (math.isfinite(low) and math.isfinite(high)):
        raise DomainError(f"the bounds of {name!r}, {low:g} and {high:g}, are not finite; write two numbers")
    if low > high:
        raise DomainError(
            f"the bounds of {name!r} are upside down: {low:g} is above {high:g}; write the lower one first"
        )
    if low == high:
        raise DomainError(f"the bounds of {name!r} leave no room: both are {low:g}; write two numbers")
    return pair

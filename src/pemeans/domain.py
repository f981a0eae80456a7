"""The public facts about the data: its box or its ball, its columns, its number of rows.

A domain maps the user's units to the unit ball, where the algorithms work, and back. Everything in it is
public: write down only what is known without looking at the rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.errors import DomainError
from pemeans.kernels.exact_sums import ExactSums
from pemeans.kernels.grid import FloatArray, GridArray
from pemeans.kernels.placing import Columns, place

LARGEST = 1e150
"""Bounds are at most this large, so that squares of them are still numbers."""
SMALLEST = 1e-150
"""Widths and radii are at least this large, for the same reason."""

CHUNK = 1 << 14
"""Rows that are looked at at a time."""

Numbers = float | Sequence[float] | npt.NDArray[Any]
Bounds = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, repr=False)
class Domain:
    """Where rows can lie. Make one with `Domain.box` or `Domain.ball`.

    Rows outside are moved to the edge before they are used: in a box every coordinate is clipped to its
    bounds, in a ball the row is pulled toward the center. This is done to each row by itself.

    Examples
    --------
    >>> domain = Domain.box(lower=[0, 10], upper=[120, 60])
    >>> print(domain)
    box of 2 features: [0, 120], [10, 60]
    >>> print(Domain.ball(radius=3))
    ball of radius 3 around 0
    """

    center: tuple[float, ...]
    """The middle; one number stands for all features until the domain is bound to data."""
    radius: float
    """Radius of the ball that holds the domain, in the units of the metric."""
    bounds: Bounds | None = None
    """The lower and the upper corner of the box; None for a ball."""
    scale: bool = False
    """Whether distances are measured in half-widths of each feature."""
    from_data: bool = False
    """Whether the bounds were read from the private rows, which the guarantee does not cover."""
    n_rows: int | None = None
    """The public number of rows; None until the domain is bound to data."""

    @classmethod
    def box(cls, lower: Numbers, upper: Numbers, scale: bool = False) -> Domain:
        """Bounds for every feature, known without looking at the data.

        Parameters
        ----------
        lower, upper : float or sequence of float
            The least and the largest value of each feature; one number holds for all features.
        scale : bool, default False
            True measures every feature in its own half-widths, so that all weigh the same, whatever their
            units. False keeps the user's units.

        Examples
        --------
        >>> print(Domain.box(0, [1, 10], scale=True))
        box of 2 features: [0, 1], [0, 10], each measured in its half-width
        """
        low, high = _numbers("lower", lower), _numbers("upper", upper)
        if len(low) != len(high) and 1 not in (len(low), len(high)):
            raise DomainError(
                f"lower has {len(low)} values and upper has {len(high)}; give as many of one as of the other"
            )
        if not isinstance(scale, bool | np.bool_):
            raise DomainError(f"scale={shown(scale)} is neither True nor False")
        width = max(len(low), len(high))
        low, high = low * (width // len(low)), high * (width // len(high))
        for j, (a, b) in enumerate(zip(low, high, strict=True)):
            if not b - a >= SMALLEST:
                raise DomainError(
                    f"lower={a!r} is not below upper={b!r} for feature {j}; give bounds with lower < upper"
                )
        half = [(b - a) / 2 for a, b in zip(low, high, strict=True)]
        return cls(
            center=tuple(a + h for a, h in zip(low, half, strict=True)),
            radius=math.sqrt(width) if scale else math.hypot(*half),
            bounds=(low, high),
            scale=bool(scale),
        )

    @classmethod
    def ball(cls, radius: float, center: Numbers = 0.0) -> Domain:
        """All points at most `radius` away from `center`.

        Parameters
        ----------
        radius : float
            The largest distance of a row from the center.
        center : float or sequence of float, default 0
            The middle of the ball; one number holds for all features.

        Examples
        --------
        >>> print(Domain.ball(radius=2.5, center=[1, -1]))
        ball of radius 2.5 around 1, -1
        """
        sizes = _numbers("radius", radius)
        if len(sizes) != 1 or not sizes[0] >= SMALLEST:
            raise DomainError(
                f"radius={shown(radius)} is not one positive number; give the largest distance to the center"
            )
        return cls(center=_numbers("center", center), radius=sizes[0])

    @property
    def n_features(self) -> int:
        """How many features the domain speaks of (1 may still stand for any number)."""
        return len(self.center)

    def bind(self, n_rows: int, n_features: int) -> Domain:
        """Settle for data of this public size; one number for all features becomes one a feature."""
        if self.n_features not in (1, n_features):
            raise DomainError(
                f"domain describes {self.n_features} features, but X has {n_features}; "
                "give bounds for every column, in the order of the columns"
            )
        times = n_features // self.n_features
        if self.bounds is None:
            bound = Domain.ball(self.radius, self.center * times)
        else:
            lower, upper = self.bounds
            bound = Domain.box(lower * times, upper * times, self.scale)
        return dataclasses.replace(bound, from_data=self.from_data, n_rows=n_rows)

    @property
    def _half_widths(self) -> FloatArray | None:
        """The unit of the metric, feature by feature, where that is not the user's own."""
        if self.bounds is None or not self.scale:
            return None
        lower, upper = np.asarray(self.bounds)
        return np.asarray((upper - lower) / 2)

    @property
    def _unit(self) -> FloatArray:
        """The length in the user's units, feature by feature, that becomes one unit of the ball."""
        half = self._half_widths
        return np.full(self.n_features, self.radius) if half is None else half * self.radius

    def to_grid(self, rows: npt.NDArray[np.floating]) -> GridArray:
        """Move rows into the domain and onto the integer grid of the unit ball, each row by itself."""
        return self.columns_to_grid(list(rows.T))

    def columns_to_grid(self, columns: Columns) -> GridArray:
        """The same for rows that are given column by column."""
        edges = self.bounds or (-LARGEST, LARGEST)
        facts = (*edges, self.center, self._unit)
        lower, upper, center, unit = (np.array(np.broadcast_to(fact, len(columns)), float) for fact in facts)
        return place(columns, lower, upper, center, unit, LARGEST)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Points of the unit ball in the user's units, inside the box if there is one."""
        points: FloatArray = np.asarray(self.center) + unit * self._unit
        return points if self.bounds is None else np.clip(points, *self.bounds)

    def measured(self, points: npt.NDArray[np.floating]) -> FloatArray:
        """Points in the units of the metric: the user's units, or half-widths with ``scale=True``.

        Numbers beyond 1e150 are taken as that, so that distances stay finite.
        """
        half = self._half_widths
        with np.errstate(all="ignore"):
            wide = np.ascontiguousarray(points, dtype=np.float64)
            return np.clip(wide if half is None else wide / half, -LARGEST, LARGEST)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """One line in the user's units, with the features' names if they are known."""
        origin = " (read from the private rows!)" if self.from_data else ""
        if self.bounds is None:
            center = self.center[:1] if len(set(self.center)) == 1 else self.center
            around = ", ".join(f"{c:.6g}" for c in center[:6]) + (", ..." if len(center) > 6 else "")
            return f"ball of radius {self.radius:.6g} around {around}{origin}"
        bounds = [
            f"{f'{names[j]} ' if names else ''}[{a:.6g}, {b:.6g}]"
            for j, (a, b) in enumerate(zip(*self.bounds, strict=True))
        ]
        listed = ", ".join(bounds[:6]) + (", ..." if len(bounds) > 6 else "")
        scaled = ", each measured in its half-width" if self.scale else ""
        features = "1 feature" if self.n_features == 1 else f"{self.n_features} features"
        return f"box of {features}: {listed}{scaled}{origin}"

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"Domain({self.describe()})"

    def to_dict(self) -> dict[str, Any]:
        """The domain as plain JSON values."""
        if self.bounds is None:
            shape: dict[str, Any] = {"shape": "ball", "radius": self.radius, "center": list(self.center)}
        else:
            lower, upper = map(list, self.bounds)
            shape = {"shape": "box", "lower": lower, "upper": upper, "scale": self.scale}
        return shape | {"from_data": self.from_data, "n_rows": self.n_rows}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Domain:
        """The domain that `to_dict` wrote.

        Examples
        --------
        >>> domain = Domain.box([0, 10], [120, 60])
        >>> Domain.from_dict(domain.to_dict()) == domain
        True
        """
        if document["shape"] == "ball":
            domain = cls.ball(document["radius"], document["center"])
        else:
            domain = cls.box(document["lower"], document["upper"], document["scale"])
        n_rows = document["n_rows"]
        return dataclasses.replace(
            domain, from_data=bool(document["from_data"]), n_rows=None if n_rows is None else int(n_rows)
        )


class DomainReader:
    """The smallest ball around the mean of the rows, in two sweeps over chunks of any size and order.

    This is how the paper's protocol normalizes, for every method alike: as good as it is leaky. The mean and
    the farthest row are private, so it is only ever done at the user's explicit wish.

    Examples
    --------
    >>> reader = DomainReader(n_features=1)
    >>> reader.add([np.array([1.0, 2.0])])
    >>> reader.add([np.array([6.0])])
    >>> print(reader.ball(reader.farthest([np.array([1.0, 2.0, 6.0])])))
    ball of radius 3 around 3 (read from the private rows!)
    """

    def __init__(self, n_features: int) -> None:
        self._sums = ExactSums(n_features)

    def add(self, columns: Columns) -> None:
        """First sweep: take these rows into the mean."""
        self._sums.add([np.clip(column, -LARGEST, LARGEST, dtype=np.float64) for column in columns])

    @cached_property
    def _center(self) -> FloatArray:
        return np.array(self._sums.means())

    def farthest(self, columns: Columns) -> float:
        """Second sweep: the largest distance of these rows from the mean."""
        with np.errstate(all="ignore"):
            wide = np.clip(np.column_stack(columns), -LARGEST, LARGEST, dtype=np.float64)
            return float(np.sqrt(((wide - self._center) ** 2).sum(axis=1).max()))

    def ball(self, farthest: float) -> Domain:
        """The ball, once all rows have been seen twice."""
        radius = min(farthest, LARGEST) if farthest >= SMALLEST else 1.0
        return dataclasses.replace(Domain.ball(radius, self._center), from_data=True)


def domain_read_from(rows: npt.NDArray[np.floating]) -> Domain:
    """The smallest ball around the mean of rows in memory: see `DomainReader`."""
    reader = DomainReader(rows.shape[1])
    chunks = [list(rows[start : start + CHUNK].T) for start in range(0, len(rows), CHUNK)]
    for chunk in chunks:
        reader.add(chunk)
    return reader.ball(max(map(reader.farthest, chunks)))


def shown(value: Any) -> str:
    """A parameter's value for a message: in full where it is short and plain, else by its type.

    What was passed by mistake may be the private rows themselves.

    Examples
    --------
    >>> shown(-1), shown([[57.5, 180.0]])
    ('-1', '<list>')
    """
    if value is None or isinstance(value, str | bool | Number):
        try:
            text = repr(value)
        except ValueError:  # Python writes no integers of thousands of digits
            text = ""
        if 0 < len(text) <= 40:
            return text
    return f"<{type(value).__name__}>"


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """Finite numbers of sensible size, or an error that names the parameter."""
    numbers = _as_floats(value)
    if numbers is None:
        raise DomainError(
            f"{name}={shown(value)} is not a number or a flat sequence of numbers; pass a float, or one for "
            "every feature"
        )
    if not numbers:
        raise DomainError(f"{name} is empty; give one number, or one for every feature")
    for number in numbers:
        if not abs(number) <= LARGEST:
            raise DomainError(f"{name}={number!r} is not a finite number of size at most {LARGEST:g}")
    return numbers


def _as_floats(value: Any) -> tuple[float, ...] | None:
    """One number or a flat sequence of them; None for text and whatever else is none."""
    try:
        array = np.asarray(value)
    except Exception:  # of whatever kind an object's own conversion raises
        return None
    if array.dtype.kind not in "fiu" or array.ndim > 1:
        return None
    with np.errstate(all="ignore"):
        return tuple(array.astype(np.float64).ravel().tolist())

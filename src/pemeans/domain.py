"""The public facts about the data: its box or its ball, its columns, its number of rows.

A domain maps the user's units to the unit ball, where the algorithms work, and back. Everything in it is
public: write down only what is known without looking at the rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pemeans.errors import DomainError
from pemeans.kernels.grid import FloatArray, GridArray, pull_into_ball, quantize

LARGEST = 1e150
"""Bounds are at most this large, so that squares of them are still numbers."""

Numbers = float | Sequence[float] | npt.NDArray[Any]


@dataclass(frozen=True)
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
    half_widths: tuple[float, ...] | None = None
    """Half the width of the box in every feature; None for a ball."""
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
        """
        low, high = _numbers("lower", lower), _numbers("upper", upper)
        if len(low) != len(high) and 1 not in (len(low), len(high)):
            raise DomainError(
                f"lower has {len(low)} values and upper has {len(high)}; give as many of one as of the other"
            )
        width = max(len(low), len(high))
        low, high = low * (width // len(low)), high * (width // len(high))
        for j, (a, b) in enumerate(zip(low, high, strict=True)):
            if not a < b:
                raise DomainError(
                    f"lower={a:g} is not below upper={b:g} for feature {j}; give bounds with lower < upper"
                )
        half = tuple((b - a) / 2 for a, b in zip(low, high, strict=True))
        middle = tuple(a + h for a, h in zip(low, half, strict=True))
        return cls(center=middle, radius=_box_radius(half, scale), half_widths=half, scale=scale)

    @classmethod
    def ball(cls, radius: float, center: Numbers = 0.0) -> Domain:
        """All points at most `radius` away from `center`.

        Parameters
        ----------
        radius : float
            The largest Euclidean distance of a row from the center.
        center : float or sequence of float, default 0
            The middle of the ball; one number holds for all features.
        """
        (size,) = _numbers("radius", radius)
        if not size > 0:
            raise DomainError(f"radius={size:g} is not positive; give the largest distance from the center")
        return cls(center=_numbers("center", center), radius=size)

    @property
    def n_features(self) -> int:
        """How many features the domain speaks of (1 may still stand for any number)."""
        return len(self.center)

    def bind(self, n_rows: int, n_features: int) -> Domain:
        """Settle for data of this public size; one number for all features becomes one a feature."""
        if self.n_features not in (1, n_features):
            raise DomainError(
                f"domain describes {self.n_features} features, but the data has {n_features}; "
                "give bounds for every column, in the order of the columns"
            )
        times = n_features // self.n_features
        half = self.half_widths and self.half_widths * times
        return dataclasses.replace(
            self,
            center=self.center * times,
            half_widths=half,
            radius=_box_radius(half, self.scale) if half else self.radius,
            n_rows=n_rows,
        )

    @property
    def _unit(self) -> FloatArray:
        """The length in the user's units, feature by feature, that becomes one unit of the ball."""
        if self.scale and self.half_widths is not None:
            return np.asarray(self.half_widths) * self.radius
        return np.full(self.n_features, self.radius)

    def to_grid(self, rows: npt.NDArray[np.floating]) -> GridArray:
        """Move rows into the domain and onto the integer grid of the unit ball, each row by itself.

        Elementwise float64 arithmetic is the same for every row and every layout; what adds over columns
        (the norm) is done in integers.
        """
        middle = np.asarray(self.center)
        wide = np.clip(rows.astype(np.float64), -LARGEST, LARGEST)
        if self.half_widths is not None:
            half = np.asarray(self.half_widths)
            return pull_into_ball(
                quantize((np.clip(wide, middle - half, middle + half) - middle) / self._unit)
            )
        # A tiny radius may overflow here; a warning about it would tell of a row.
        with np.errstate(over="ignore"):
            unit = np.clip((wide - middle) / self._unit, -LARGEST, LARGEST)
        # Dividing by the largest coordinate keeps the direction, and leaves a row that is still outside.
        return pull_into_ball(quantize(unit / np.maximum(np.abs(unit).max(axis=1, keepdims=True), 1.0)))

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Points of the unit ball in the user's units, inside the box if there is one."""
        points: FloatArray = np.asarray(self.center) + unit * self._unit
        if self.half_widths is not None:
            middle, half = np.asarray(self.center), np.asarray(self.half_widths)
            points = np.clip(points, middle - half, middle + half)
        return points

    def measured(self, points: npt.NDArray[np.floating]) -> FloatArray:
        """Points in the units of the metric: the user's units, or half-widths with ``scale=True``."""
        wide = points.astype(np.float64)
        return wide / np.asarray(self.half_widths) if self.scale and self.half_widths is not None else wide

    def describe(self, names: Sequence[str] | None = None) -> str:
        """One line in the user's units, with the features' names if they are known."""
        origin = " (read from the private rows!)" if self.from_data else ""
        if self.half_widths is None:
            around = ", ".join(f"{c:.6g}" for c in dict.fromkeys(self.center))
            if len(self.center) > 6 and len(set(self.center)) > 1:
                around = f"a center of {len(self.center)} features"
            return f"ball of radius {self.radius:.6g} around {around}{origin}"
        bounds = [
            f"{f'{names[j]} ' if names else ''}[{c - h:.6g}, {c + h:.6g}]"
            for j, (c, h) in enumerate(zip(self.center, self.half_widths, strict=True))
        ]
        listed = ", ".join(bounds[:6]) + (", ..." if len(bounds) > 6 else "")
        scaled = ", each measured in its half-width" if self.scale else ""
        return f"box of {self.n_features} features: {listed}{scaled}{origin}"

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """The domain as plain JSON values."""
        return {
            "shape": "ball" if self.half_widths is None else "box",
            "center": list(self.center),
            "radius": self.radius,
            "half_widths": None if self.half_widths is None else list(self.half_widths),
            "scale": self.scale,
            "from_data": self.from_data,
            "n_rows": self.n_rows,
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Domain:
        """The domain that `to_dict` wrote."""
        half = document["half_widths"]
        return cls(
            center=tuple(map(float, document["center"])),
            radius=float(document["radius"]),
            half_widths=None if half is None else tuple(map(float, half)),
            scale=bool(document["scale"]),
            from_data=bool(document["from_data"]),
            n_rows=document["n_rows"],
        )


def domain_read_from(rows: npt.NDArray[np.floating]) -> Domain:
    """The smallest ball around the mean of the rows: as good as it is leaky.

    This is how the paper's protocol normalizes, for every method alike. The mean and the farthest row are
    private, so it is only ever done at the user's explicit wish.
    """
    wide = np.clip(rows.astype(np.float64), -LARGEST, LARGEST)
    middle = wide.mean(axis=0)
    farthest = float(np.sqrt(((wide - middle) ** 2).sum(axis=1).max()))
    ball = Domain.ball(radius=farthest if farthest > 0 else 1.0, center=middle)
    return dataclasses.replace(ball, from_data=True)


def _numbers(name: str, value: Numbers) -> tuple[float, ...]:
    """Finite numbers of sensible size, or an error that names the parameter."""
    try:
        numbers = tuple(float(v) for v in np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel())
    except (TypeError, ValueError):
        raise DomainError(f"{name}={value!r} is not a number or a sequence of numbers") from None
    if not numbers:
        raise DomainError(f"{name} is empty; give one number, or one for every feature")
    for number in numbers:
        if not math.isfinite(number) or abs(number) > LARGEST:
            raise DomainError(f"{name}={number:g} is not a finite number of size at most {LARGEST:g}")
    return numbers


def _box_radius(half: tuple[float, ...], scale: bool) -> float:
    """The distance from the middle of the box to its corners, in the metric's units."""
    return math.sqrt(len(half)) if scale else math.hypot(*half)

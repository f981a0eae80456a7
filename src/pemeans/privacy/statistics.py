"""Questions about the rows: integer, row-local, and each with a proven sensitivity.

A statistic is called on a block of rows and returns integers that add up over blocks. What one row adds
depends on that row and the public question alone, so zeroing out a row changes the total by exactly what
that row added: its L2 length is the sensitivity, its L1 length the one that Laplace noise asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from pemeans.kernels.grid import GRID_BITS, GRID_UNIT, Frame, GridArray, IntArray, Projection
from pemeans.kernels.residuals import residual_sums, squared_gaps
from pemeans.rows.base import Question
from pemeans.rows.block import Block


class Statistic(Protocol):
    """A question with a sensitivity: what the curator releases."""

    @property
    def sensitivity(self) -> int:
        """The largest L2 length of what one row can add to the total."""
        ...

    def __call__(self, block: Block) -> IntArray:
        """What the rows of a block add up to."""
        ...


class PureStatistic(Protocol):
    """A question with a sensitivity for Laplace noise: what the curator releases for a share of epsilon."""

    @property
    def l1_sensitivity(self) -> int:
        """The largest L1 length of what one row can add to the total."""
        ...

    def __call__(self, block: Block) -> IntArray:
        """What the rows of a block add up to."""
        ...


class Losses(Protocol):
    """A question that compares choices: what the curator chooses by, and never hands out."""

    @property
    def spread(self) -> int:
        """The largest difference between what one row adds to the losses of two choices."""
        ...

    def __call__(self, block: Block) -> IntArray:
        """The losses of all choices, as far as the rows of a block cause them."""
        ...


@dataclass(frozen=True, eq=False)
class NearestVotes:
    """How many rows have each candidate as their nearest: Algorithm 2 without its noise.

    Sensitivity 1, in both norms: a row adds one to exactly one bin, found by exact integer distances from
    that row alone, the lowest index among equally near candidates.

    Parameters
    ----------
    candidates : int32 array of shape (n_candidates, n_dimensions)
        Public candidates on the grid of the view.
    view : Projection, optional
        The public projection through which the rows are seen.
    """

    candidates: GridArray
    view: Projection | None = None
    sensitivity: ClassVar[int] = 1
    l1_sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        labels = block.nearest(self.candidates, self.view)
        return np.bincount(labels, minlength=len(self.candidates)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class NearestSums:
    """The sum of the rows nearest to each candidate: the lift of Algorithm 3, in grid units.

    Sensitivity ``GRID_UNIT``, the radius R: a row adds its own coordinates to exactly one sum, and no row on
    the grid is longer than one unit, because clipping truncates toward zero. In the L1 norm it is at most
    ``floor(sqrt(d) GRID_UNIT)``, by Cauchy and Schwarz, for d features.

    Parameters
    ----------
    candidates : int32 array of shape (n_candidates, n_dimensions)
        Public candidates on the grid of the view.
    view : Projection, optional
        The public projection in which the nearest candidate is looked for; the sums are of the whole rows.
    """

    candidates: GridArray
    view: Projection | None = None
    sensitivity: ClassVar[int] = GRID_UNIT

    @property
    def l1_sensitivity(self) -> int:
        """The largest L1 length of a row in the unit ball."""
        n_features = self.candidates.shape[1] if self.view is None else self.view.matrix.shape[1]
        return isqrt(n_features * GRID_UNIT**2)

    def __call__(self, block: Block) -> IntArray:
        labels = block.nearest(self.candidates, self.view)
        sums = np.empty((len(self.candidates), block.grid.shape[1]), dtype=np.int64)
        for j, column in enumerate(block.grid.T):
            # float64 holds these integer partial sums exactly: 2**14 rows of 22 bits stay below 2**53.
            sums[:, j] = np.bincount(labels, weights=column, minlength=len(self.candidates))
        return sums


MOMENT_BITS = 12
"""Coordinates are truncated to 12 bits before they are multiplied: fine enough in a frame, and coarse enough
that the noise can be drawn for the smallest budgets."""
DIAGONAL, OFF_DIAGONAL = 5, 7
"""Weights of the squares and of the products: 7/5 is just below the square root of 2."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """The sum of ``x x^T`` over the rows: its upper triangle, squares times 5 and products times 7.

    Sensitivity ``5 * 2**24``: with t the row truncated to 12 bits (never longer than ``2**12``), a row adds
    a vector of squared length ``25 sum t_i^4 + 49 sum_{i<j} t_i^2 t_j^2``, which is at most
    ``25 (sum t_i^2)^2 = 25 |t|^4``, because 49 < 2 * 25.

    Parameters
    ----------
    n_features : int
        Width of the rows.
    """

    n_features: int
    sensitivity: ClassVar[int] = DIAGONAL << (2 * MOMENT_BITS)

    def __call__(self, block: Block) -> IntArray:
        # Products of integers summed below 2**53: float64 matrix products are exact, in any order.
        coarse = block.grid / 2.0 ** (GRID_BITS - MOMENT_BITS)
        np.trunc(coarse, out=coarse)  # in place: five times as fast
        moments = (coarse.T @ coarse).astype(np.int64)
        np.fill_diagonal(moments, moments.diagonal() * DIAGONAL)
        upper = np.triu_indices(self.n_features)
        return np.where(upper[0] == upper[1], 1, OFF_DIAGONAL) * moments[upper]


@dataclass(frozen=True, eq=False)
class DistanceHistogram:
    """How many rows lie how far from their nearest center.

    Sensitivity 1: a row adds one to exactly one bin, by its own exact squared distance.

    Parameters
    ----------
    centers : int32 array of shape (k, n_features)
        Public centers on the grid.
    edges : int64 array
        Rising upper edges of the bins in grid units, inclusive; what is beyond counts in one more bin.
    """

    centers: GridArray
    edges: IntArray
    sensitivity: ClassVar[int] = 1

    def __call__(self, block: Block) -> IntArray:
        squared = squared_gaps(block.grid, block.nearest(self.centers), self.centers)
        bins = np.searchsorted(self.edges**2, squared, side="left")
        return np.bincount(bins, minlength=len(self.edges) + 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """For every center the sum of its rows' residuals, in units of its radius, and their number, weighted.

    Sensitivity ``ceil(sqrt(GRID_UNIT^2 + weight^2))``: a row adds to one center only, its residual and
    `weight` to the count. The residual is divided by the center's radius, or by its own length where that is
    longer, and truncated toward zero on the grid, so it is never longer than one unit.

    Parameters
    ----------
    centers : int32 array of shape (k, n_features)
        Public centers on the grid.
    radii : int64 array of shape (k,)
        From which length on a center's residuals are shortened, in grid units; at least 1.
    weight : int
        What a row counts, in grid units.
    """

    centers: GridArray
    radii: IntArray
    weight: int

    @property
    def sensitivity(self) -> int:
        """The longest vector that a row can add."""
        squared = GRID_UNIT**2 + self.weight**2
        return isqrt(squared - 1) + 1

    def __call__(self, block: Block) -> IntArray:
        """An array of shape (k, n_features + 1); the weighted counts are in the last column."""
        labels = block.nearest(self.centers)
        k, d = self.centers.shape
        sums = np.empty((k, d + 1), dtype=np.int64)
        sums[:, :d] = residual_sums(block.grid, labels, self.centers, self.radii)
        sums[:, d] = self.weight * np.bincount(labels, minlength=k)
        return sums


Q_co = TypeVar("Q_co", bound=Question, covariant=True)


@dataclass(frozen=True, eq=False)
class Framed(Generic[Q_co]):
    """A statistic of the rows as seen in a frame, where they are again in the unit ball.

    The frame is applied to each row by itself, so the statistic's own sensitivity holds.
    """

    statistic: Q_co
    frame: Frame

    @property
    def sensitivity(self: Framed[Statistic]) -> int:
        """That of the statistic."""
        return self.statistic.sensitivity

    def __call__(self, block: Block) -> IntArray:
        return self.statistic(block.framed(self.frame))

"""Residuals and distances come out of C exactly as out of NumPy, whatever the other rows are."""

from __future__ import annotations

import numpy as np
import pytest

from pemeans.kernels.grid import GRID_UNIT, GridArray, IntArray
from pemeans.kernels.native import native_rows
from pemeans.kernels.residuals import (
    Labels,
    residual_sums_in_c,
    residual_sums_in_numpy,
    squared_gaps_in_c,
    squared_gaps_in_numpy,
)

pytestmark = pytest.mark.skipif(
    native_rows is None, reason="without a C compiler there is only the NumPy twin"
)

SHAPES = [(0, 3, 2), (1, 1, 1), (7, 2, 3), (500, 3, 5), (300, 16, 4), (300, 17, 40), (50, 130, 3)]


def some_rows(n: int, d: int, k: int) -> tuple[GridArray, Labels, GridArray, IntArray]:
    """Rows, a center for each, and radii; some rows lie on their centers, some across the ball."""
    rng = np.random.default_rng(n + d)
    edge = int(GRID_UNIT / np.sqrt(d))
    centers = rng.integers(-edge, edge + 1, size=(k, d)).astype(np.int32)
    labels = rng.integers(0, k, size=n).astype(np.int32)
    rows = rng.integers(-edge, edge + 1, size=(n, d)).astype(np.int32)
    rows[::3] = centers[labels[::3]]
    rows[::3, 0] -= np.sign(rows[::3, 0])
    rows[::5] = centers[labels[::5]]
    rows[::7] = -centers[labels[::7]]
    radii = rng.choice([1, 1000, edge, 2 * GRID_UNIT], size=k).astype(np.int64)
    return rows, labels, centers, radii


@pytest.mark.parametrize("shape", SHAPES)
def test_c_is_numpy_to_the_last_bit(shape: tuple[int, int, int]) -> None:
    rows, labels, centers, radii = some_rows(*shape)
    wanted = residual_sums_in_numpy(rows, labels, centers, radii)
    assert (residual_sums_in_c(rows, labels, centers, radii) == wanted).all()
    gaps = squared_gaps_in_c(rows, labels, centers)
    assert (gaps == squared_gaps_in_numpy(rows, labels, centers)).all()


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_rows_add_up_one_by_one_and_none_is_longer_than_a_unit(shape: tuple[int, int, int]) -> None:
    rows, labels, centers, radii = some_rows(*shape)
    alone = [residual_sums_in_c(rows[i : i + 1], labels[i : i + 1], centers, radii) for i in range(len(rows))]
    assert (np.sum(alone, axis=0) == residual_sums_in_c(rows, labels, centers, radii)).all()
    assert max(int((one**2).sum()) for one in alone) <= GRID_UNIT**2


def test_memory_layout_does_not_matter() -> None:
    rows, labels, centers, radii = some_rows(300, 16, 4)
    wanted = residual_sums_in_c(rows, labels, centers, radii)
    for layout in (np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
        assert (residual_sums_in_c(layout, labels, np.asfortranarray(centers), radii) == wanted).all()
        assert (squared_gaps_in_c(layout, labels, centers) == squared_gaps_in_c(rows, labels, centers)).all()

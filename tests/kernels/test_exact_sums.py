"""Exact sums do not depend on order or chunks, and round once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pemeans.kernels.exact_sums import ExactSums


def test_means_are_those_of_fsum_in_any_chunks() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 3)) * 10.0 ** rng.integers(-150, 150, size=(500, 3))
    rows[0] = [5e-324, -0.0, 2.0**-1022]
    wanted = [math.fsum(column) / 500 for column in rows.T]
    for chunk in (1, 7, 500):
        sums = ExactSums(3)
        for start in range(0, 500, chunk):
            sums.add(list(rows[::-1][start : start + chunk].T))
        assert np.allclose(sums.means(), wanted, rtol=2**-52, atol=0)
        assert sums.means() == exactly(rows)


def exactly(rows: npt.NDArray[np.float64]) -> list[float]:
    sums = ExactSums(rows.shape[1])
    sums.add(list(rows.T))
    return sums.means()

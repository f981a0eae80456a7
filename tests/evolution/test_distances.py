"""How far rows are from their centers, read off a noisy histogram."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted

from pemeans.evolution.distances import EDGES, MOST_RESTORED, cheap_noise, find_distances, project_to_simplex
from pemeans.kernels.grid import GRID_UNIT, FloatArray, IntArray
from pemeans.privacy.statistics import DistanceHistogram, Statistic


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e6))
def test_the_projection_is_the_nearest_point_of_the_simplex(values: list[float], total: float) -> None:
    """Kuhn and Tucker: one amount is taken off everywhere, and what would be negative is zero."""
    given_ = np.array(values)
    found = project_to_simplex(given_, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    taken = (given_ - found)[found > 0]
    np.testing.assert_allclose(taken, taken[0], atol=1e-6)
    assert (given_[found == 0] <= taken[0] + 1e-6).all()


def curator_of_distances(values: FloatArray) -> Scripted:
    """A curator of rows at these distances from their centers."""

    def answer(statistic: Statistic) -> IntArray:
        assert isinstance(statistic, DistanceHistogram)
        bins = np.searchsorted(statistic.edges, values)
        return np.bincount(bins, minlength=len(statistic.edges) + 1)

    return Scripted(len(values), 3, answer, 0.0)


ORIGIN = np.zeros((1, 3), dtype=np.int32)


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
def test_so_many_rows_are_within_the_distance_that_covers_them(part: float) -> None:
    values = np.random.default_rng(0).uniform(0, GRID_UNIT, 8000)
    found = find_distances(curator_of_distances(values), ORIGIN, 0.1).covering(part)
    assert part <= (values <= found).mean() < part + 0.08 * part + 0.01  # a bin is 8 % wide


@pytest.mark.parametrize(("value", "covering"), [(0, EDGES[1]), (1, EDGES[1]), (2 * GRID_UNIT, EDGES[-1])])
def test_the_covering_distance_is_an_edge_above_zero(value: int, covering: int) -> None:
    found = find_distances(curator_of_distances(np.full(100, value)), ORIGIN, 0.1)
    assert found.covering(0.5) == covering


def test_an_answer_of_noise_alone_still_yields_a_distance() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        noise = np.rint(rng.normal(0, 1000, len(EDGES) + 1))
        found = find_distances(Scripted(100, 3, lambda _, noise=noise: noise), ORIGIN, 0.1)  # type: ignore[misc]
        assert EDGES[1] <= found.covering(0.5) <= EDGES[-1]
        assert 1 <= found.restoring(found.covering(0.5), 3) <= MOST_RESTORED


@pytest.mark.parametrize("d", [2, 5, 40])
def test_restoring_undoes_what_shortening_does_to_a_common_offset(d: int) -> None:
    """Rows all around a center that is a little off: their shortened residuals show less than the offset."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((200_000, d))
    gaps = rows - rows.mean(axis=0) + 0.1 * np.eye(d)[0]
    lengths = np.linalg.norm(gaps, axis=1)
    radius = float(np.median(lengths))
    shortened = (gaps * np.minimum(1.0, radius / lengths)[:, np.newaxis]).mean(axis=0)[0]
    unit = GRID_UNIT / 20
    found = find_distances(curator_of_distances(lengths * unit), ORIGIN, 0.1)
    restored = shortened * found.restoring(int(radius * unit), d)
    assert shortened < 0.098
    assert abs(restored - 0.1) < (0.1 - shortened) / 4


def test_nothing_is_restored_where_nothing_is_shortened() -> None:
    found = find_distances(curator_of_distances(np.full(100, EDGES[40])), ORIGIN, 0.1)
    assert found.restoring(int(EDGES[40]), 3) == 1.0


@pytest.mark.parametrize(("sigma", "factor"), [(1e9, 1.0), (1e-9, 8.0), (0.0, 8.0)])
def test_the_radius_is_widened_up_to_eight_times_where_noise_is_cheap(sigma: float, factor: float) -> None:
    assert cheap_noise(1000, 3, 5, sigma) == factor


def test_the_widening_is_that_of_the_formula() -> None:
    """sqrt(.02 n^2 / (k^2 d sigma^2))."""
    assert cheap_noise(1000, 3, 5, 8.0) == pytest.approx(math.sqrt(0.02 * 1000**2 / (5**2 * 3 * 8**2)))

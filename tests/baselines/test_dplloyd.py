"""DP-Lloyd: noise in every cluster, one budget shared out as published, folding by released numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import pdist

from pemeans.baselines.box import FARTHEST, fold, half_widths, on_grid, pack
from pemeans.baselines.dplloyd import Settings, at_least_one, count_weight, dp_lloyd, iterations
from pemeans.kernels.grid import GRID_UNIT, to_float
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.statistics import PureStatistic

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]
Blobs = Callable[..., tuple[Floats, Floats]]


def answers_of(curator: Curator, k: int, settings: Settings, seed: int = 0) -> list[Answer]:
    """All that is released in a run."""
    made = []
    plain = curator.release_pure

    def release(name: str, statistic: PureStatistic, share: float) -> Answer:
        made.append(plain(name, statistic, share))
        return made[-1]

    curator.release_pure = release  # type: ignore[method-assign]
    dp_lloyd(curator, k, settings, np.random.default_rng(seed))
    return made


def test_empty_clusters_get_noise_like_all_others(curate: MakeCurator) -> None:
    """All rows at one place: at most one cluster of six has any."""
    rows = np.full((1000, 2), 0.6)
    for seed in range(20):
        for counts, sums in zip(
            *[iter(answers_of(curate(rows, 0.1, 0.0, seed), 6, Settings()))] * 2, strict=True
        ):
            assert counts.values.shape == (6,)
            assert sums.values.shape == (6, 2)
            assert (sums.values != 0).all()  # of scales in the millions
            assert (counts.values != 0).sum() >= 4


def test_centers_of_empty_clusters_move(curate: MakeCurator) -> None:
    rows = np.full((1000, 2), 0.6)
    start = pack(6, half_widths(1.0, 2), np.random.default_rng(0))
    found = dp_lloyd(curate(rows, 0.5, 0.0), 6, Settings(), np.random.default_rng(0))
    assert (np.abs(to_float(found.centers) - start).max(axis=1) > 1e-4).all()


@pytest.mark.parametrize("d", [1, 4, 16, 128])
def test_the_budget_is_shared_out_as_published_and_not_overspent(d: int, curate: MakeCurator) -> None:
    """Per step each coordinate has e / (d + c) and the count c times that; diffprivlib mixes these up."""
    rows = np.random.default_rng(0).uniform(-1, 1, (200, d)) / math.sqrt(d)
    curator = curate(rows, 2.0, 0.0)
    dp_lloyd(curator, 3, Settings(box=0.5), np.random.default_rng(0))
    receipt = curator.receipt("")
    steps = iterations(200, d, 3, 2.0)
    assert len(receipt.releases) == 2 * steps
    c = (4 * d * 0.225**2) ** (1 / 3)
    each = 2.0 / steps / (d + c)
    for counts, sums in zip(receipt.releases[::2], receipt.releases[1::2], strict=True):
        assert counts.sigma == pytest.approx(1 / (c * each))
        assert sums.sigma == pytest.approx(0.5 * GRID_UNIT / each, rel=1e-6)
    assert 2.0 * (1 - 1e-6) < receipt.epsilon_spent <= 2.0


def test_a_box_with_a_width_for_each_feature_has_the_sum_of_them_as_sensitivity(curate: MakeCurator) -> None:
    curator = curate(np.zeros((50, 3)), 1.0, 0.0)
    found = dp_lloyd(curator, 2, Settings(box=(0.5, 0.25, 0.01)), np.random.default_rng(0))
    sums = curator.receipt("").releases[1]
    assert sums.sensitivity == pytest.approx(0.76 * GRID_UNIT, abs=3)
    assert (np.abs(to_float(found.centers)) <= np.array([0.5, 0.25, 0.01]) + 1e-6).all()


@pytest.mark.parametrize(
    ("n", "d", "k", "steps"),
    [(25_000, 2, 100, [2] * 5), (36_733, 12, 6, [2, 2, 2, 4, 7]), (48_842, 6, 3, [5, 7, 7, 7, 7])],
)
def test_steps_follow_the_rule(n: int, d: int, k: int, steps: list[int]) -> None:
    assert [iterations(n, d, k, epsilon) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)] == steps
    least = math.sqrt(500 * k**3 / n**2 * (d + count_weight(d)) ** 3)
    assert iterations(n, d, k, 3.5 * least) == 3


def test_without_noise_a_step_is_a_lloyd_step(curate: MakeCurator, blobs: Blobs) -> None:
    rows, centers = blobs(k=1)
    found = dp_lloyd(curate(rows, math.inf, 0.0), 1, Settings(), np.random.default_rng(0))
    assert to_float(found.centers)[0] == pytest.approx(rows.mean(axis=0), abs=1e-6)
    assert to_float(found.centers)[0] == pytest.approx(centers[0], abs=0.01)
    assert found.sizes.tolist() == [len(rows)]


def test_sizes_are_noisy_counts_of_at_least_one(curate: MakeCurator) -> None:
    found = dp_lloyd(curate(np.zeros((10, 1)), 0.01, 0.0), 9, Settings(), np.random.default_rng(0))
    assert (found.sizes >= 1).all()
    assert at_least_one(np.array([-2, -1, 0, 1, 2])).tolist() == [3, 2, 1, 1, 2]


# --- the box ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "half"), [(1, (1.0,)), (40, (0.3, 0.3)), (9, (0.2, 1.0, 0.5)), (100, (0.5,) * 16)]
)
def test_packed_points_keep_their_distance_from_one_another_and_from_the_walls(
    size: int, half: tuple[float, ...]
) -> None:
    walls = np.array(half)
    points = pack(size, walls, np.random.default_rng(0))
    assert points.shape == (size, len(half))
    room = (walls - np.abs(points)).min()
    radius = min(half)
    while room < radius - 1e-12 or (size > 1 and pdist(points).min() < 2 * radius - 1e-12):
        radius /= 2
    assert radius > min(half) / 64
    assert radius in [min(half) / 2**i for i in range(7)]


def test_folding_reflects_at_the_walls() -> None:
    half = np.array([1.0, 0.5])
    inside = np.random.default_rng(0).uniform(-half, half, (100, 2))
    assert fold(inside, half) == pytest.approx(inside)
    assert fold(2 * half - inside, half) == pytest.approx(inside)
    assert fold(-2 * half - inside, half) == pytest.approx(inside)
    assert fold(inside + 400 * half, half) == pytest.approx(inside)
    anywhere = np.random.default_rng(1).normal(0, 1e6, (1000, 2))
    assert (np.abs(fold(anywhere, half)) <= half).all()


def test_noise_alone_is_spread_over_the_box() -> None:
    """As with the bounded Laplace mechanism; clamping would put all at the walls."""
    folded = fold(np.random.default_rng(0).laplace(0, 50, 100_000), np.ones(100_000))
    assert folded.std() == pytest.approx(1 / math.sqrt(3), rel=0.02)


def test_centers_outside_the_ball_are_kept_up_to_where_arithmetic_is_exact() -> None:
    points = np.array([[1.0, 1.0, 1.0], [300.0, 0.0, 400.0]])
    grid = to_float(on_grid(points))
    assert grid[0] == pytest.approx(points[0])
    assert grid[1] == pytest.approx(points[1] * FARTHEST / 500)


def test_narrow_boxes_are_widened() -> None:
    assert half_widths((0.0, 1.0), 2).tolist() == [5e-6, 1.0]

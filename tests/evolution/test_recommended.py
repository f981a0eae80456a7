"""DPKMeans as a whole: what is asked in which order, and what comes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import Scripted, curator_of, space_along_axes, votes_for

from pemeans.evolution.explore import Coreset
from pemeans.evolution.plan import plan
from pemeans.evolution.recommended import dp_kmeans, settle_with_strays
from pemeans.kernels.grid import GRID_UNIT, FloatArray, GridArray, squared_norms, to_float, to_grid


def clusters(n: int, d: int, k: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(7)
    middles = rng.uniform(-0.5, 0.5, (k, d)) / np.sqrt(d)
    return middles, middles[np.arange(n) % k] + 0.02 / np.sqrt(d) * rng.standard_normal((n, d))


@pytest.mark.parametrize(("n", "d", "strays"), [(20_000, 3, True), (500, 3, False), (20_000, 30, False)])
def test_what_is_asked_in_which_order(n: int, d: int, strays: bool) -> None:
    _, rows = clusters(n, d, 4)
    curator = curator_of(rows)
    todo = plan(n, d, 4, curator.mu)
    dp_kmeans(curator, 4, np.random.default_rng(0), lambda *_: None)
    names = [r.name for r in curator.receipt("").releases]
    assert names == [
        "mean",
        "spread",
        "second moment",
        *["votes"] * todo.rounds,
        *(["distances", "strays"] if strays else []),
        *["distances", "residual sums"] * todo.steps,
    ]
    assert sum(r.share for r in curator.receipt("").releases) == pytest.approx(1)


def test_every_step_is_reported_and_centers_once_there_are_any() -> None:
    middles, rows = clusters(5000, 20, 4)
    told: list[tuple[int, int, GridArray | None]] = []
    found = dp_kmeans(curator_of(rows), 4, np.random.default_rng(0), lambda *step: told.append(step))
    todo = plan(5000, 20, 4, curator_of(rows).mu)
    assert [number for number, _, _ in told] == list(range(1, todo.rounds + todo.steps + 1))
    assert {of for _, of, _ in told} == {todo.rounds + todo.steps}
    assert [centers is None for _, _, centers in told] == [True] * todo.rounds + [False] * todo.steps
    assert told[-1][2] is not None
    assert (told[-1][2] == found.centers).all()
    gaps = np.linalg.norm(to_float(found.centers)[:, np.newaxis] - middles, axis=2).min(axis=0)
    assert gaps.max() < 0.01
    assert np.abs(found.sizes - 1250).max() < 125


@pytest.mark.parametrize("epsilon", [0.05, 5.0, math.inf])
@pytest.mark.parametrize(("n", "d", "k"), [(30, 1, 1), (30, 3, 30), (100, 40, 7)])
def test_always_k_centers_in_the_ball(n: int, d: int, k: int, epsilon: float) -> None:
    _, rows = clusters(n, d, 3)
    found = dp_kmeans(curator_of(rows, epsilon), k, np.random.default_rng(0), lambda *_: None)
    assert found.centers.shape == (k, d)
    assert squared_norms(found.centers).max() <= GRID_UNIT**2
    assert found.sizes.shape == (k,)
    assert (found.sizes >= 0).all()


def test_without_a_share_strays_are_not_looked_for() -> None:
    rows = np.random.default_rng(0).uniform(-0.3, 0.3, (90, 2))
    core = Coreset((votes_for(to_grid(rows), np.ones(90)),))
    curator = Scripted(90, 2, lambda _: np.zeros(0))
    found = settle_with_strays(
        curator, core, 4, space_along_axes(np.full(2, 0.03)), 0.0, np.random.default_rng(0)
    )
    assert found.shape == (4, 2)
    assert curator.asked == []

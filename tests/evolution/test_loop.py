"""Algorithm 1, line by line, as seen through its released values."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import make_blobs

from pemeans.domain import Domain
from pemeans.evolution import loop
from pemeans.evolution.loop import Iteration, Settings, pe_means
from pemeans.evolution.populate import populate
from pemeans.evolution.select import Selection, keep_largest
from pemeans.evolution.vary import vary
from pemeans.kernels.grid import GRID_UNIT, GridArray, squared_norms, to_float
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Curator
from pemeans.privacy.ledger import Ledger, Receipt
from pemeans.privacy.noise import NoiseSampler
from pemeans.rows.memory import MemoryRows

K = 3


def blobs(n: int = 400, d: int = 2) -> npt.NDArray[np.float64]:
    points, _ = make_blobs(n, d, centers=K, cluster_std=0.3, center_box=(-4, 4), random_state=0)
    return np.asarray(points / 8)


def run(
    settings: Settings, epsilon: float = 1.0, seed: int = 0, n: int = 400, d: int = 2
) -> tuple[list[Iteration], Selection, Receipt]:
    """One evolution, with all that a watcher gets to see."""
    domain = Domain.ball(1.0).bind(n_rows=n, n_features=d)
    ledger = Ledger(epsilon, 1e-5)
    rows = MemoryRows(blobs(n, d), domain, 1)
    curator = Curator(rows, domain, ledger, NoiseSampler(SeededBits(seed), ledger.tail_bits))
    seen: list[Iteration] = []
    found = pe_means(curator, settings, np.random.default_rng(seed), seen.append)
    return seen, found, curator.receipt("")


# --- T and L ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "epsilon", "iterations"),
    [
        (1, 1.0, 4),
        (2, 1.0, 5),  # 5.66
        (16, 1.0, 16),
        (16, 0.25, 16),  # below 1 epsilon does not matter
        (16, 1e-3, 16),
        (16, 4.0, 64),
        (16, 1.5, 24),
        (2, 2.0, 11),  # floor(4 sqrt(2) 2), not 2 floor(4 sqrt(2))
        (64, 100.0, 3200),
        (16, math.inf, 16),
    ],
)
def test_iterations_follow_the_papers_rule(d: int, epsilon: float, iterations: int) -> None:
    assert Settings(K).iterations(d, epsilon) == iterations
    assert Settings(K, n_iterations=7).iterations(d, epsilon) == 7


@pytest.mark.parametrize(
    ("n", "k", "variations"),
    [
        (1000, 2, 100),
        (1000, 10, 20),
        (999, 10, 19),
        (100, 10, 4),  # 2 would be too few
        (1, 1, 4),
        (10**9, 4, (1 << 14) // 4 - 1),  # the cap binds
        (80_000, 1, 16_000),  # not at the paper's sizes: n/5 = 16,000 candidates
        (10**9, 1 << 14, 4),
    ],
)
def test_variations_follow_the_papers_rule(n: int, k: int, variations: int) -> None:
    settings = Settings(k)
    assert settings.variations(n) == variations
    if variations > 4:
        assert k * (variations + 1) <= settings.max_candidates
    assert Settings(k, n_variations=9).variations(n) == 9


def test_the_largest_population_is_a_setting() -> None:
    assert Settings(10, max_candidates=100).variations(10**6) == 9
    assert Settings(10, max_candidates=20).variations(10**6) == 4


# --- the rounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_budget_goes_to_t_equal_votes(epsilon: float) -> None:
    seen, _, receipt = run(Settings(K), epsilon)
    iterations = Settings(K).iterations(2, epsilon)
    assert len(receipt.releases) == len(seen) == iterations
    assert len(set(receipt.releases)) == 1
    assert receipt.releases[0].share == 1 / iterations
    assert receipt.releases[0].statistic == "NearestVotes"
    assert receipt.releases[0].sensitivity == 1
    assert receipt.epsilon_spent <= epsilon
    assert [(i.number, i.of) for i in seen] == [(t + 1, iterations) for t in range(iterations)]


def test_the_first_population_is_packed_spheres() -> None:
    seen, _, _ = run(Settings(K, n_variations=10))
    assert (seen[0].population == populate(K * 11, 2, np.random.default_rng(0))).all()


def test_survivors_live_on_in_the_next_population() -> None:
    seen, found, _ = run(Settings(K))
    for before, after in pairwise(seen):
        assert (after.population[:K] == before.survivors.centers).all()
    assert (seen[-1].survivors.centers == found.centers).all()
    assert (seen[-1].survivors.sizes == found.sizes).all()


def test_every_population_stays_in_the_ball_and_every_vote_has_its_candidate() -> None:
    seen, _, _ = run(Settings(K, variation_scale=0.5))
    for iteration in seen:
        assert squared_norms(iteration.population).max() <= GRID_UNIT**2
        assert iteration.votes.shape == (len(iteration.population),)
        assert iteration.survivors.centers.shape == (K, 2)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 5.0])
@pytest.mark.parametrize("variations", [1, 3, 4, 5, 9, 16, 100])
def test_a_weak_signal_halves_the_variations_but_not_below_four(variations: int, epsilon: float) -> None:
    """Lines 7 and 8 of Algorithm 1, recomputed from what was released."""
    seen, _, receipt = run(Settings(K, n_variations=variations, n_iterations=12), epsilon)
    expected = variations
    for iteration in seen:
        assert len(iteration.population) == K * (expected + 1)
        histogram = keep_largest(iteration.votes, 400).astype(float)
        sigma = receipt.releases[0].sigma
        if (histogram**2).sum() / (K * (expected + 1) * sigma**2) < 1.0:
            expected = max(expected // 2, 4) if expected > 4 else expected
    if variations == 100:
        assert (expected < 100) == (epsilon < 5.0)


def test_without_noise_the_signal_never_halves() -> None:
    seen, _, _ = run(Settings(K), math.inf)
    assert len({len(iteration.population) for iteration in seen}) == 1


@pytest.mark.parametrize("iterations", [1, 2, 6])
def test_the_last_iteration_makes_no_variations(iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: Any) -> GridArray:
        calls.append(arguments)
        return vary(*arguments)

    monkeypatch.setattr(loop, "vary", counted)
    run(Settings(K, n_iterations=iterations, variation_scale=0.02, levy_index=1.5))
    assert len(calls) == iterations - 1
    assert all(arguments[2:4] == (0.02, 1.5) for arguments in calls)


def test_k_centers_whatever_the_noise() -> None:
    for seed in range(5):
        _, found, _ = run(Settings(K), 1e-3, seed)
        assert len(np.unique(found.centers, axis=0)) == K
        assert (found.sizes >= 0).all()


@pytest.mark.parametrize("selection", ["k-means", "top-k"])
def test_centers_end_up_where_the_rows_are(selection: str) -> None:
    _, found, _ = run(Settings(K, selection=selection), 5.0)
    data = blobs()
    gaps = ((data[:, np.newaxis] - to_float(found.centers)) ** 2).sum(axis=2).min(axis=1)
    if selection == "k-means":
        assert gaps.mean() < 0.02
    assert gaps.mean() < ((data - data.mean(axis=0)) ** 2).sum(axis=1).mean()


def test_selection_by_votes_is_used_when_asked_for() -> None:
    seen, _, _ = run(Settings(K, selection="top-k"), math.inf)
    for iteration in seen:
        top = np.argsort(-iteration.votes, kind="stable")[:K]
        assert (iteration.survivors.centers == iteration.population[top]).all()


def test_the_same_seeds_give_the_same_evolution_and_watching_does_not_change_it() -> None:
    one, found, _ = run(Settings(K))
    other, again, _ = run(Settings(K))
    assert all((a.votes == b.votes).all() for a, b in zip(one, other, strict=True))
    assert (found.centers == again.centers).all()

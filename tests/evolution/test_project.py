"""Algorithm 3: HDPE-means, line by line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pemeans.domain import Domain
from pemeans.evolution import project
from pemeans.evolution.loop import Iteration, Settings, pe_means
from pemeans.evolution.project import PROJECTED, hdpe_means, lift, random_projection
from pemeans.evolution.select import Selection
from pemeans.kernels.grid import GRID_UNIT, FloatArray, Projection, squared_norms, to_float
from pemeans.kernels.nearest import nearest
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestSums, NearestVotes, Statistic
from pemeans.rows.memory import MemoryRows

K = 4


def rows_of(n: int, d: int) -> FloatArray:
    rng = np.random.default_rng(d)
    middles = rng.standard_normal((K, d)) / np.sqrt(d) / 2
    return np.asarray(middles[np.arange(n) % K] + 0.02 * rng.standard_normal((n, d)))


def curator_of(data: FloatArray, epsilon: float = 1.0, seed: int = 0) -> tuple[Curator, Domain]:
    domain = Domain.ball(1.0).bind(n_rows=len(data), n_features=data.shape[1])
    ledger = Ledger(epsilon, 1e-5)
    noise = NoiseSampler(SeededBits(seed), ledger.tail_bits)
    return Curator(MemoryRows(data, domain, 1), domain, ledger, noise), domain


# --- the budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "iterations"), [(0.5, 16), (1.0, 16), (2.0, 32), (1.7, 27)])
@pytest.mark.parametrize("d", [17, 40])
def test_the_lift_takes_the_place_of_two_iterations_with_equal_shares(
    d: int, epsilon: float, iterations: int
) -> None:
    curator, _ = curator_of(rows_of(300, d), epsilon)
    hdpe_means(curator, Settings(K, n_variations=5), np.random.default_rng(0))
    receipt = curator.receipt("")
    names = ["votes"] * (iterations - 2) + ["lifted sums", "lifted counts"]
    assert [release.name for release in receipt.releases] == names
    assert {release.share for release in receipt.releases} == {1 / iterations}
    assert [release.sensitivity for release in receipt.releases[-2:]] == [GRID_UNIT, 1]
    # One noise multiplier for all, that of T releases.
    alone = Ledger(epsilon, 1e-5).charge("votes", "NearestVotes", 1, 1 / iterations)
    for release in receipt.releases:
        assert release.sigma / release.sensitivity == pytest.approx(alone, rel=0.01)
    assert receipt.epsilon_spent <= epsilon


@pytest.mark.parametrize(("asked", "votes"), [(1, 1), (2, 1), (3, 1), (4, 2), (10, 8)])
def test_iterations_that_are_asked_for_include_the_lift(asked: int, votes: int) -> None:
    curator, _ = curator_of(rows_of(100, 20))
    hdpe_means(curator, Settings(K, n_iterations=asked, n_variations=4), np.random.default_rng(0))
    assert [r.name for r in curator.receipt("").releases].count("votes") == votes
    assert abs(curator.receipt("").releases[0].share * (votes + 2) - 1) < 1e-12


@pytest.mark.parametrize("d", [1, 5, 16])
def test_few_dimensions_need_no_projection(d: int) -> None:
    settings = Settings(K, n_variations=5)
    one, _ = curator_of(rows_of(200, d))
    other, _ = curator_of(rows_of(200, d))
    high = hdpe_means(one, settings, np.random.default_rng(0))
    plain = pe_means(other, settings, np.random.default_rng(0))
    assert (high.centers == plain.centers).all()
    assert one.receipt("") == other.receipt("")
    assert len(one.receipt("").releases) == settings.iterations(d, 1.0)


# --- the projection --------------------------------------------------------------------------------


def test_the_projection_is_gaussian_and_keeps_lengths_on_average() -> None:
    """Entries are N(0, 1/p): the text's 1/sqrt(d) would not keep lengths. False alarms below 1e-7."""
    matrix = random_projection(300, np.random.default_rng(0)).matrix
    assert matrix.shape == (PROJECTED, 300) == (16, 300)
    assert stats.kstest(matrix.ravel() * 4, "norm").pvalue > 1e-7
    assert np.abs(np.corrcoef(matrix) - np.eye(16)).max() < stats.norm.isf(1e-9) / np.sqrt(300)
    point = np.random.default_rng(1).standard_normal(300)
    seen = [random_projection(300, np.random.default_rng(seed)).matrix @ point for seed in range(500)]
    squared = (np.array(seen) ** 2).sum() / (500 * point @ point)
    freedom = 500 * PROJECTED
    low, high = (stats.chi2.ppf(p, freedom) / freedom for p in (5e-8, 1 - 5e-8))
    assert low < squared < high


def test_the_evolution_runs_in_16_dimensions_on_projected_rows() -> None:
    data = rows_of(300, 50)
    curator, domain = curator_of(data, math.inf)
    seen: list[Iteration] = []
    hdpe_means(curator, Settings(K, n_variations=5), np.random.default_rng(7), seen.append)
    view = random_projection(50, np.random.default_rng(7))
    projected = view(domain.to_grid(data))
    for iteration in seen:
        assert iteration.population.shape[1] == PROJECTED
        labels = nearest(projected, iteration.population)
        assert (np.bincount(labels, minlength=len(iteration.population)) == iteration.votes).all()


def test_every_fit_draws_its_own_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Projection] = []

    def remembered(dimensions: int, rng: np.random.Generator) -> Projection:
        drawn.append(random_projection(dimensions, rng))
        return drawn[-1]

    monkeypatch.setattr(project, "random_projection", remembered)
    rng = np.random.default_rng(0)
    for _ in range(2):
        hdpe_means(curator_of(rows_of(50, 20))[0], Settings(K, n_variations=4), rng)
    assert len(drawn) == 2
    assert (drawn[0].matrix != drawn[1].matrix).all()


# --- the lift --------------------------------------------------------------------------------------


class Programmed:
    """A curator whose answers are written down."""

    def __init__(self, *answers: list[object]) -> None:
        self.answers = [np.array(answer, dtype=np.int64) for answer in answers]
        self.asked: list[tuple[Statistic, float]] = []

    def release(self, name: str, statistic: Statistic, share: float) -> Answer:
        self.asked.append((statistic, share))
        return Answer(self.answers[len(self.asked) - 1], 1.0)


def lifted(sums: list[object], counts: list[object]) -> tuple[Selection, Programmed]:
    curator = Programmed(sums, counts)
    found = Selection(np.zeros((len(counts), 2), dtype=np.int32), np.zeros(len(counts), dtype=np.int64))
    view = Projection(np.eye(2, 3))
    return lift(curator, found, view, 0.1), curator  # type: ignore[arg-type]


def test_centers_are_noisy_sums_over_noisy_counts() -> None:
    found, curator = lifted([[1000, -2000, 50], [7, 7, 7]], [10, 2])
    assert found.centers.tolist() == [[100, -200, 5], [4, 4, 4]]  # rint(3.5) is 4
    assert found.sizes.tolist() == [10, 2]
    (sums, first), (counts, second) = curator.asked
    assert isinstance(sums, NearestSums)
    assert isinstance(counts, NearestVotes)
    assert first == second == 0.1
    assert sums.candidates is counts.candidates
    assert sums.view is counts.view is not None


@pytest.mark.parametrize("count", [1, 0, -5, -(10**6)])
def test_a_noisy_count_below_one_counts_as_one(count: int) -> None:
    found, _ = lifted([[1000, -2000, 50]], [count])
    assert found.centers.tolist() == [[1000, -2000, 50]]
    assert found.sizes.tolist() == [1]


def test_lifted_centers_are_pulled_into_the_ball() -> None:
    found, _ = lifted([[3 * GRID_UNIT, 0, -4 * GRID_UNIT], [10**15, 0, 0]], [1, 3])
    assert squared_norms(found.centers).max() <= GRID_UNIT**2
    wanted = np.array([[0.6, 0, -0.8], [1, 0, 0]])
    np.testing.assert_allclose(to_float(found.centers), wanted, atol=4 / GRID_UNIT)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_clusters_without_rows_yield_centers_too(epsilon: float) -> None:
    curator, _ = curator_of(np.full((60, 20), 0.1), epsilon)
    found = hdpe_means(curator, Settings(K, n_variations=4), np.random.default_rng(0))
    assert found.centers.shape == (K, 20)
    assert found.sizes.shape == (K,)
    assert (found.sizes >= 1).all()


def test_without_noise_the_lift_is_the_mean_of_every_cluster() -> None:
    data = rows_of(400, 30)
    curator, domain = curator_of(data, math.inf)
    seen: list[Iteration] = []
    found = hdpe_means(curator, Settings(K), np.random.default_rng(3), seen.append)
    grid = domain.to_grid(data)
    view = random_projection(30, np.random.default_rng(3))
    labels = nearest(view(grid), seen[-1].survivors.centers)
    for j in np.unique(labels):
        mean = grid[labels == j].mean(axis=0)
        assert np.abs(found.centers[j] - mean).max() <= 0.5 + 1e-6
    assert found.sizes.tolist() == np.maximum(np.bincount(labels, minlength=K), 1).tolist()

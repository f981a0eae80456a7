"""The door to the rows: charged first, closed when the budget is gone, with the stated noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from pemeans.domain import Domain
from pemeans.errors import BudgetError
from pemeans.kernels.grid import GRID_UNIT, Frame, IntArray
from pemeans.privacy.bits import SeededBits, SystemBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestSums, NearestVotes, Statistic
from pemeans.rows.base import Question
from pemeans.rows.block import Block
from pemeans.rows.memory import MemoryRows

FALSE_ALARM = 1e-7
"""Chance that one statistical test fails for honest noise; the seeds are fixed besides."""


@dataclass(frozen=True, eq=False)
class Constant:
    """A question whose exact answer is known."""

    answer: IntArray
    sensitivity: int = 1

    def __call__(self, block: Block) -> IntArray:
        return self.answer


@dataclass
class SpiedRows:
    """Rows that count how often they are asked."""

    asked: int = 0
    broken: bool = False

    def total(self, statistic: Question) -> IntArray:
        self.asked += 1
        if self.broken:
            raise RuntimeError("the rows are out of reach")
        return statistic(Block(np.zeros((1, 1), dtype=np.int32)))


def curator_of(
    rows: SpiedRows, epsilon: float = 1.0, seed: int | None = 0, delta: float = 1e-5
) -> tuple[Curator, Ledger]:
    ledger = Ledger(epsilon, delta)
    bits = SystemBits() if seed is None else SeededBits(seed)
    domain = Domain.ball(1.0).bind(n_rows=10, n_features=3)
    return Curator(rows, domain, ledger, NoiseSampler(bits, ledger.tail_bits)), ledger


def zeros(*shape: int, sensitivity: int = 1) -> Constant:
    return Constant(np.zeros(shape, dtype=np.int64), sensitivity)


# --- the budget ------------------------------------------------------------------------------------


def test_an_error_after_the_charge_has_still_spent() -> None:
    rows = SpiedRows(broken=True)
    curator, ledger = curator_of(rows)
    with pytest.raises(RuntimeError):
        curator.release("votes", zeros(3), 0.6)
    assert rows.asked == 1
    assert ledger.left == pytest.approx(0.4)
    assert [release.name for release in curator.receipt("").releases] == ["votes"]
    with pytest.raises(BudgetError):
        curator.release("votes again", zeros(3), 0.6)


def test_an_error_in_the_statistic_or_in_the_noise_has_still_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, ledger = curator_of(SpiedRows())

    def fails(*_: object) -> IntArray:
        raise ZeroDivisionError

    monkeypatch.setattr(Constant, "__call__", fails)
    with pytest.raises(ZeroDivisionError):
        curator.release("votes", zeros(3), 0.25)
    monkeypatch.undo()
    monkeypatch.setattr(NoiseSampler, "gaussian", fails)
    with pytest.raises(ZeroDivisionError):
        curator.release("votes", zeros(3), 0.25)
    assert ledger.left == pytest.approx(0.5)


def test_the_rows_are_charged_for_before_they_are_asked() -> None:
    seen = []

    class Watching(SpiedRows):
        def total(self, statistic: Question) -> IntArray:
            seen.append(ledger.left)
            return super().total(statistic)

    curator, ledger = curator_of(Watching())
    curator.release("votes", zeros(3), 0.25)
    assert seen == [pytest.approx(0.75)]


@pytest.mark.parametrize("share", [0.500001, 2.0, 0.0, -1.0, math.nan])
def test_a_release_that_the_budget_cannot_pay_asks_nothing(share: float) -> None:
    rows = SpiedRows()
    curator, ledger = curator_of(rows)
    curator.release("votes", zeros(3), 0.5)
    with pytest.raises(BudgetError):
        curator.release("too much", zeros(3), share)
    assert rows.asked == 1
    assert ledger.left == pytest.approx(0.5)


def test_infinite_epsilon_gives_exact_answers_and_says_so() -> None:
    curator, _ = curator_of(SpiedRows(), epsilon=math.inf)
    answer = curator.release("votes", Constant(np.array([5, -7])), 0.5)
    assert answer.values.tolist() == [5, -7]
    assert answer.sigma == 0
    assert "Noise: NONE" in str(curator.receipt(""))
    with pytest.raises(BudgetError):  # shares are counted all the same
        curator.release("votes", zeros(3), 0.6)


@dataclass(frozen=True, eq=False)
class AnyLaw(Constant):
    """A question that every door takes."""

    l1_sensitivity: int = 1
    spread: int = 1


DOORS: dict[str, tuple[float, float]] = {
    "release": (1e-5, 0.6),
    "release_pure": (0.0, 0.6),
    "choose": (0.0, 0.6),
    "release_gaussian": (1e-5, 5.0),
    "release_laplace": (1e-5, 1.5),
}
"""Every way to an answer, with a delta, and what can be asked of it once but not twice."""


@pytest.mark.parametrize("door", DOORS)
def test_every_door_charges_first_and_shuts(door: str) -> None:
    delta, price = DOORS[door]
    rows = SpiedRows(broken=True)
    curator, ledger = curator_of(rows, delta=delta)
    question = AnyLaw(np.zeros(3, dtype=np.int64))
    with pytest.raises(RuntimeError):
        getattr(curator, door)("a name", question, price)
    assert (rows.asked, len(ledger.releases)) == (1, 1)
    with pytest.raises(BudgetError):
        getattr(curator, door)("again", question, price)
    assert (rows.asked, len(ledger.releases)) == (1, 1)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_adds_fresh_noise(door: str) -> None:
    delta, price = DOORS[door]
    question = AnyLaw(np.zeros(2000, dtype=np.int64))
    curators = [curator_of(SpiedRows(), seed=seed, delta=delta)[0] for seed in (0, 1)]
    one, other = (getattr(curator, door)("a name", question, price) for curator in curators)
    if door == "choose":
        assert one != other
    else:
        assert (one.values != other.values).mean() > 0.5
        assert (one.values != 0).mean() > 0.5


@pytest.mark.parametrize("door", DOORS)
def test_every_door_sees_the_rows_in_the_curators_frame(door: str) -> None:
    domain = Domain.ball(1.0).bind(n_rows=1, n_features=1)
    frame = Frame(np.array([GRID_UNIT // 2], dtype=np.int32), GRID_UNIT // 4)
    seen = []

    class Looking(AnyLaw):
        def __call__(self, block: Block) -> IntArray:
            seen.append(int(block.grid.item()))
            return self.answer

    delta, price = DOORS[door]
    ledger = Ledger(1.0, delta)
    rows = MemoryRows(np.array([[0.5]]), domain, 1)
    curator = Curator(rows, domain, ledger, NoiseSampler(SeededBits(0), ledger.tail_bits))
    getattr(curator.framed(frame), door)("a name", Looking(np.zeros(2, dtype=np.int64)), price)
    assert seen == [0]
    assert [release.statistic for release in curator.receipt("").releases] == ["Looking"]  # from one budget


# --- the noise -------------------------------------------------------------------------------------


def test_answers_are_integers_around_the_exact_total() -> None:
    curator, _ = curator_of(SpiedRows())
    exact = np.arange(12, dtype=np.int64).reshape(3, 4) * 10**9
    answer = curator.release("sums", Constant(exact), 1.0)
    assert answer.values.dtype == np.int64
    assert answer.values.shape == (3, 4)
    assert np.abs(answer.values - exact).max() < 10 * answer.sigma


@pytest.mark.parametrize("sensitivity", [1, 5, GRID_UNIT, 5 << 28])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_noise_has_the_sigma_that_the_receipt_states(share: float, sensitivity: int) -> None:
    curator, _ = curator_of(SpiedRows())
    cells = 200_000
    answer = curator.release("zeros", zeros(cells, sensitivity=sensitivity), share)
    (release,) = curator.receipt("").releases
    assert answer.sigma == release.sigma
    noise = answer.values / release.sigma
    low, high = (stats.chi2.ppf(p, cells) / cells for p in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    assert low < (noise**2).mean() < high
    assert abs(noise.mean()) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(cells)
    # Gaussian as a whole, not only in its variance; the grid of sigma 3.8 and more is smoothed out.
    smoothed = noise + np.random.default_rng(0).uniform(-0.5, 0.5, size=cells) / release.sigma
    inflated = math.sqrt(1 + 1 / (12 * release.sigma**2))
    assert stats.kstest(smoothed / inflated, "norm").pvalue > FALSE_ALARM


def test_noise_is_independent_in_every_cell_and_every_release() -> None:
    """Correlations of all cells with one another, and with those of the next release."""
    releases, cells = 3000, 12
    curator, _ = curator_of(SpiedRows(), epsilon=20.0)
    answers = [curator.release("zeros", zeros(3, 4), 1 / releases) for _ in range(releases)]
    noise = np.array([answer.values.ravel() / answer.sigma for answer in answers])
    bound = stats.norm.isf(FALSE_ALARM / (4 * cells**2)) / math.sqrt(releases)
    within = noise.T @ noise / releases
    assert np.abs(within - np.diag(np.diag(within))).max() < bound
    after = noise[:-1].T @ noise[1:] / (releases - 1)
    assert np.abs(after).max() < 1.01 * bound
    assert len({tuple(answer.values.ravel()) for answer in answers}) == releases


def test_two_curators_share_no_noise() -> None:
    one, other = (curator_of(SpiedRows(), seed=None)[0].release("z", zeros(4000), 1.0) for _ in range(2))
    correlation = float(one.values @ other.values) / one.sigma**2 / 4000
    assert abs(correlation) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(4000)


def test_a_vote_and_a_sum_over_the_same_rows_get_their_own_noise() -> None:
    """A noisy sum and a noisy count of one cluster must not err together."""
    domain = Domain.ball(1.0).bind(n_rows=1, n_features=1)
    pairs = []
    for seed in range(1500):
        ledger = Ledger(10.0, 1e-5)
        rows = MemoryRows(np.zeros((1, 1)), domain, 1)
        curator = Curator(rows, domain, ledger, NoiseSampler(SeededBits(seed), ledger.tail_bits))
        origin = np.zeros((1, 1), dtype=np.int32)
        sums = curator.release("sums", NearestSums(origin), 0.5)
        votes = curator.release("votes", NearestVotes(origin), 0.5)
        pairs.append([sums.values.item() / sums.sigma, (votes.values.item() - 1) / votes.sigma])
    one, other = np.array(pairs).T
    assert abs((one * other).mean()) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(1500)


# --- what the curator knows and shows ----------------------------------------------------------------


def test_the_curator_shows_public_facts_only() -> None:
    domain = Domain.ball(1.0).bind(n_rows=3, n_features=2)
    rows = MemoryRows(np.array([[0.123456, 0.3], [0.5, 0.5], [0.1, 0.2]]), domain, 1)
    curator = Curator(rows, domain, Ledger(1.0, 1e-5), NoiseSampler(SystemBits()))
    assert (curator.n_rows, curator.n_features, curator.epsilon) == (3, 2, 1.0)
    public = {name for name in dir(curator) if not name.startswith("_")}
    facts = {"framed", "receipt", "n_rows", "n_features", "epsilon", "mu", "smallest_multiplier"}
    assert public == facts | set(DOORS)
    for text in (repr(curator), str(curator), repr(rows), repr(curator.receipt("a ball"))):
        assert "123456" not in text
        assert "array" not in text


def test_answers_hold_noisy_values_and_sigma_only() -> None:
    curator, _ = curator_of(SpiedRows())
    answer = curator.release("votes", zeros(3), 1.0)
    assert isinstance(answer, Answer)
    assert set(vars(answer)) == {"values", "sigma"}


@pytest.mark.parametrize("seed", [None, 3])
def test_the_receipt_says_whether_noise_was_seeded(seed: int | None) -> None:
    curator, _ = curator_of(SpiedRows(), seed=seed)
    assert curator.receipt("").seeded == (seed is not None)
    assert curator.receipt("").to_dict()["seeded"] == (seed is not None)


def test_the_statistics_name_and_sensitivity_stand_in_the_receipt() -> None:
    curator, _ = curator_of(SpiedRows())
    statistic: Statistic = zeros(2, sensitivity=17)
    curator.release("a name", statistic, 0.125)
    (release,) = curator.receipt("the domain", notes=("n",)).releases
    assert (release.name, release.statistic) == ("a name", "Constant")
    assert (release.sensitivity, release.share) == (17, 0.125)

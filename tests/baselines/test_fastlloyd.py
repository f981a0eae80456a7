"""FastLloyd: the authors' rule, noise that is independent and large enough, and steps by definition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from pemeans.baselines import fastlloyd
from pemeans.baselines.box import pack
from pemeans.baselines.fastlloyd import Settings, at_most, fast_lloyd, iterations, shrinkage
from pemeans.kernels.grid import GRID_UNIT, to_float
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.lloyd import TrustedSums
from pemeans.privacy.statistics import Statistic

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]
Blobs = Callable[..., tuple[Floats, Floats]]
FALSE_ALARM = 1e-7
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("n", "d", "k", "steps"),
    [
        (150, 4, 3, [2, 2, 2, 2, 2]),
        (70_000, 84, 10, [2, 2, 2, 2, 2]),
        (20_000, 16, 26, [2, 2, 2, 2, 2]),
        (2048, 128, 2, [2, 2, 2, 2, 2]),
        (10_002, 4, 64, [2, 2, 2, 2, 2]),
        (25_000, 2, 100, [2, 2, 3, 7, 7]),
        (36_733, 12, 6, [2, 4, 7, 7, 7]),
        (2048, 4, 2, [2, 4, 7, 7, 7]),
        (48_842, 6, 3, [7, 7, 7, 7, 7]),
    ],
)
def test_steps_follow_the_authors_rule(n: int, d: int, k: int, steps: list[int]) -> None:
    assert [iterations(n, d, k, epsilon) for epsilon in EPSILONS] == steps


@pytest.mark.parametrize(("given", "expected"), [(None, 7), (6, 6), (1, 1)])
def test_the_number_of_steps_can_be_given(
    given: int | None, expected: int, curate: MakeCurator, blobs: Blobs
) -> None:
    curator = curate(blobs()[0], 100.0)
    fast_lloyd(curator, 2, Settings(given), np.random.default_rng(0))
    assert len(curator.receipt("").releases) == 2 * expected


def test_shares_are_those_of_the_paper(curate: MakeCurator, blobs: Blobs) -> None:
    d = 9
    curator = curate(blobs(d=d)[0], 1.0)
    fast_lloyd(curator, 4, Settings(6), np.random.default_rng(0))
    releases = curator.receipt("").releases
    assert [release.name for release in releases] == ["residual sums", "counts"] * 6
    for sums, counts in zip(releases[::2], releases[1::2], strict=True):
        assert counts.share == pytest.approx(1 / (6 * (1 + math.sqrt(4 * d))))
        assert sums.share / counts.share == pytest.approx(math.sqrt(4 * d))
    assert sum(release.share for release in releases) == pytest.approx(1)


class Watched:
    """A curator whose questions and answers are kept."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator
        self.made: list[tuple[Statistic, Answer]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._curator, name)

    def release(self, name: str, statistic: Statistic, share: float) -> Answer:
        answer = self._curator.release(name, statistic, share)
        self.made.append((statistic, answer))
        return answer


def watched(curator: Curator, k: int, settings: Settings, seed: int = 0) -> list[tuple[Statistic, Answer]]:
    spy = Watched(curator)
    fast_lloyd(spy, k, settings, np.random.default_rng(seed))  # type: ignore[arg-type]
    return spy.made


def test_noise_of_sums_and_counts_is_independent(curate: MakeCurator) -> None:
    """In the authors' code one seed made them the same normals."""
    rows = np.zeros((50, 1))
    pairs = []
    for seed in range(1000):
        for (sums, noisy_sums), (counts, noisy_counts) in pairwise_steps(
            watched(curate(rows, 1.0, seed=seed), 3, Settings(1), 0)
        ):
            exact = curate(rows, math.inf)
            one = (noisy_sums.values - exact.release("s", sums, 0.5).values) / noisy_sums.sigma
            other = (noisy_counts.values - exact.release("c", counts, 0.5).values) / noisy_counts.sigma
            pairs.append([one[:, 0], other])
    one, other = np.concatenate(pairs, axis=1)
    assert abs((one * other).mean()) < stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(one.size)


def pairwise_steps(
    made: list[tuple[Statistic, Answer]],
) -> list[tuple[tuple[Statistic, Answer], tuple[Statistic, Answer]]]:
    return list(zip(made[::2], made[1::2], strict=True))


@pytest.mark.parametrize("box", [1.0, 0.4])
def test_the_noise_is_for_the_longest_residual_that_there_can_be(
    box: float, curate: MakeCurator, blobs: Blobs
) -> None:
    d, k = 16, 4
    made = watched(curate(blobs(d=d)[0], 1.0), k, Settings(3, box))
    for step, (statistic, answer) in enumerate(made[::2]):
        assert isinstance(statistic, TrustedSums)
        trust = box * math.sqrt(d) * (1 if step == 0 else 2 * shrinkage(k, d))
        assert statistic.radius == pytest.approx(trust * GRID_UNIT, abs=1)
        longest = np.linalg.norm(to_float(statistic.centers), axis=1).max()
        assert statistic.sensitivity == pytest.approx(min(trust, 1 + longest) * GRID_UNIT, abs=2)
        assert answer.sigma >= statistic.sensitivity


def test_a_step_moves_centers_to_the_means_but_not_beyond_the_trust(
    curate: MakeCurator, blobs: Blobs
) -> None:
    rows, _ = blobs(k=3)
    first, second = (
        to_float(statistic.centers)  # type: ignore[attr-defined]
        for statistic, _ in watched(curate(rows, math.inf), 3, Settings(2))[::2]
    )
    labels = ((rows[:, np.newaxis] - first) ** 2).sum(axis=2).argmin(axis=1)
    for i in range(3):
        if (labels == i).any():
            assert second[i] == pytest.approx(rows[labels == i].mean(axis=0), abs=1e-5)
        else:
            assert second[i] == pytest.approx(first[i])
    moves = np.array([[3.0, 4.0], [0.3, 0.4]])
    assert at_most(1.0, moves) == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))


def test_centers_stay_in_the_box(curate: MakeCurator) -> None:
    rows = np.random.default_rng(0).uniform(-0.1, 0.1, (100, 3))
    box = (0.1, 0.2, 0.5)
    found = fast_lloyd(curate(rows, 0.01), 5, Settings(box=box), np.random.default_rng(0))
    assert (np.abs(to_float(found.centers)) <= np.array(box) + 1e-6).all()
    assert (found.sizes >= 1).all()


def test_the_start_is_a_packing_of_the_box(
    curate: MakeCurator, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = []

    def spied(*arguments: object) -> Floats:
        packed.append(pack(*arguments))  # type: ignore[arg-type]
        return packed[-1]

    monkeypatch.setattr(fastlloyd, "pack", spied)
    made = watched(curate(blobs()[0], 1.0), 6, Settings(box=0.7))
    assert np.abs(packed[0]).max() <= 0.7
    assert to_float(made[0][0].centers) == pytest.approx(packed[0], abs=1e-6)  # type: ignore[attr-defined]

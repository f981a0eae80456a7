"""What all baselines have in common: centers near those there are, a budget kept, nothing exact let out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.baselines import balcan, dplloyd, fastlloyd, lsh
from pemeans.evolution.select import Selection
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import GRID_UNIT, to_float
from pemeans.privacy.curator import Answer, Curator

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]
Blobs = Callable[..., tuple[Floats, Floats]]
Method = Callable[[Curator, int, np.random.Generator], Selection]

METHODS: dict[str, tuple[Method, float]] = {
    "lsh": (lambda curator, k, rng: lsh.lsh_kmeans(curator, k, lsh.Settings(), rng), 1e-5),
    "private root": (lambda c, k, rng: lsh.lsh_kmeans(c, k, lsh.Settings(private_root=True), rng), 1e-5),
    "fastlloyd": (lambda c, k, rng: fastlloyd.fast_lloyd(c, k, fastlloyd.Settings(), rng), 1e-5),
    "fastlloyd 6": (lambda c, k, rng: fastlloyd.fast_lloyd(c, k, fastlloyd.Settings(6, 0.8), rng), 1e-5),
    "dplloyd": (lambda c, k, rng: dplloyd.dp_lloyd(c, k, dplloyd.Settings(), rng), 0.0),
    "balcan": (lambda c, k, rng: balcan.balcan_kmeans(c, k, balcan.Settings(), rng), 0.0),
}
"""Every method, and the delta of its budget."""
EVERY = pytest.mark.parametrize("name", METHODS)


def run(curator: Curator, name: str, k: int, seed: int = 0) -> Selection:
    method, _ = METHODS[name]
    return method(curator, k, np.random.default_rng(seed))


def loss(rows: Floats, centers: Floats) -> float:
    return float(squared_distances(rows, centers).min(axis=1).mean())


@EVERY
@pytest.mark.parametrize("d", [2, 8])
def test_centers_are_found_where_noise_is_small(name: str, d: int, curate: MakeCurator, blobs: Blobs) -> None:
    """The best of five starts: none of these methods is sure to find all clusters."""
    rows, _ = blobs(d=d, k=3)
    delta = METHODS[name][1]
    losses = [
        loss(rows, to_float(run(curate(rows, 500.0, delta, seed), name, 3, seed).centers))
        for seed in range(5)
    ]
    one_center = loss(rows, rows.mean(axis=0, keepdims=True))
    assert min(losses) < 0.05 * one_center
    assert np.mean(losses) < 0.8 * one_center


@EVERY
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, math.inf])
def test_the_budget_is_kept_and_used(name: str, epsilon: float, curate: MakeCurator, blobs: Blobs) -> None:
    rows, _ = blobs(n=500)
    curator = curate(rows, epsilon, METHODS[name][1])
    run(curator, name, 4)
    receipt = curator.receipt("ball")
    assert receipt.epsilon_spent <= epsilon
    assert receipt.epsilon_spent >= 0.3 * epsilon  # a tree or a partition may stop early


@EVERY
@pytest.mark.parametrize(
    ("n", "d", "k"), [(1, 1, 1), (2, 3, 2), (7, 1, 5), (60, 7, 1), (40, 600, 3), (300, 2, 130)]
)
@pytest.mark.parametrize("epsilon", [0.1, math.inf])
def test_any_size_gives_k_centers(
    name: str, n: int, d: int, k: int, epsilon: float, curate: MakeCurator
) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (n, d)) / np.sqrt(d)
    found = run(curate(rows, epsilon, METHODS[name][1]), name, k)
    assert found.centers.shape == (k, d)
    assert found.centers.dtype == np.int32
    assert found.sizes.shape == (k,)
    assert np.abs(found.centers).max() <= GRID_UNIT


@EVERY
def test_nothing_but_centers_and_noisy_sizes_comes_out(name: str, curate: MakeCurator, blobs: Blobs) -> None:
    """No labels, no loss: the defect of diffprivlib's and of Google's results."""
    found = run(curate(blobs()[0], 1.0, METHODS[name][1]), name, 4)
    assert type(found) is Selection
    assert {field.name for field in dataclasses.fields(found)} == set(vars(found)) == {"centers", "sizes"}


@EVERY
def test_a_run_depends_on_its_seeds_alone(name: str, curate: MakeCurator, blobs: Blobs) -> None:
    rows, delta = blobs(n=40_000)[0], METHODS[name][1]
    one = run(curate(rows, 1.0, delta), name, 4).centers
    shuffled = rows[np.random.default_rng(1).permutation(len(rows))]
    again = run(curate(shuffled, 1.0, delta, n_jobs=2), name, 4).centers
    other_noise = run(curate(rows, 1.0, delta, seed=1), name, 4).centers
    other_start = run(curate(rows, 1.0, delta), name, 4, seed=1).centers
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other_noise)
    assert not np.array_equal(one, other_start)


@EVERY
def test_the_first_noise_is_new_in_every_run(name: str, curate: MakeCurator, blobs: Blobs) -> None:
    """In the paper's runs of FastLloyd all fifty shared the noise of the first step."""
    rows, delta = blobs(n=200)[0], METHODS[name][1]
    first_answers = set()
    for seed in (0, 1, 2, 3, 0):
        curator = curate(rows, 1.0, delta, seed)
        answers: list[tuple[int, ...]] = []
        for kind in ("release", "release_pure", "release_laplace"):
            setattr(curator, kind, listing(getattr(curator, kind), answers))
        run(curator, name, 4)
        first_answers.add(answers[0])
    assert len(first_answers) == 4


@pytest.mark.parametrize("name", ["fastlloyd", "fastlloyd 6", "dplloyd"])
def test_what_is_released_does_not_depend_on_the_rows(name: str, curate: MakeCurator, blobs: Blobs) -> None:
    """As many releases with as much noise, whether clusters are empty or not."""
    made = []
    for rows in (blobs()[0], np.zeros((3000, 2)), np.full((3000, 2), 0.7)):
        curator = curate(rows, 1.0, METHODS[name][1])
        run(curator, name, 9)
        made.append([(release.name, release.share, release.law) for release in curator.receipt("").releases])
    assert made[0] == made[1] == made[2]


def listing(release: Callable[..., Answer], answers: list[tuple[int, ...]]) -> Callable[..., Answer]:
    """The same, and the answer goes into a list."""

    def released(name: str, question: object, how: float) -> Answer:
        answer = release(name, question, how)
        answers.append(tuple(answer.values.ravel().tolist()))
        return answer

    return released


def remembering(release: Callable[..., object], asked: list[object]) -> Callable[..., object]:
    """The same, and the question goes into a list."""

    def released(name: str, question: object, how: float) -> object:
        asked.append(question)
        return release(name, question, how)

    return released


@EVERY
def test_zeroing_out_a_row_changes_every_exact_answer_by_its_sensitivity_at_most(
    name: str, curate: MakeCurator, blobs: Blobs
) -> None:
    """The questions that a run asks, asked of neighbors."""
    rows = blobs(n=300)[0]
    delta = METHODS[name][1]
    curator = curate(rows, 1.0, delta)
    asked: list[object] = []
    kinds = ("release", "release_pure", "release_laplace", "release_gaussian", "choose")
    for kind in kinds:
        setattr(curator, kind, remembering(getattr(curator, kind), asked))
    run(curator, name, 4)
    assert asked
    exact = [curate(part, math.inf, 1e-5) for part in (rows, rows[1:])]
    for question in asked:
        with_row, without = (one._Curator__exact(question) for one in exact)  # type: ignore[attr-defined]
        change = (with_row - without).ravel().astype(float)
        if hasattr(question, "spread"):
            assert change.max() - change.min() <= question.spread
        elif delta and hasattr(question, "sensitivity"):
            assert np.linalg.norm(change) <= question.sensitivity * (1 + 1e-12)
        else:
            assert np.abs(change).sum() <= question.l1_sensitivity  # type: ignore[attr-defined]

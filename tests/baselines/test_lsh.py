"""LSH clustering against the definition of its tree, and its one account for Gaussian and Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pemeans.baselines import lsh
from pemeans.baselines.lsh import DEPTH, Settings, cluster, grow, least_count, lsh_kmeans, noise_multiplier
from pemeans.kernels.grid import GRID_UNIT, Projection, to_float
from pemeans.privacy.composition import Event, PureEvent, composed_epsilon
from pemeans.privacy.curator import Curator

Floats = npt.NDArray[np.float64]
MakeCurator = Callable[..., Curator]
Blobs = Callable[..., tuple[Floats, Floats]]


def leaves_by_definition(words: list[str], least: int) -> dict[str, int]:
    """Kept nodes without a kept child, from exact counts: a node is kept from `least` rows on."""
    counts = {"": len(words)}
    level = [""]
    leaves = {}
    while level:
        below = []
        for node in level:
            kept = []
            if counts[node] >= 3 * least and len(node) < DEPTH:
                for child in (node + "0", node + "1"):
                    counts[child] = sum(word.startswith(child) for word in words)
                    if counts[child] >= least:
                        kept.append(child)
            below += kept
            if not kept:
                leaves[node] = counts[node]
        level = below
    return leaves


@pytest.mark.parametrize("least", [1, 7, 60])
def test_the_tree_is_the_one_of_the_definition(
    least: int, curate: MakeCurator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 3))
    rows[:300] /= 4
    curator = curate(rows, math.inf)
    directions = np.random.default_rng(1).standard_normal((DEPTH, 3))
    monkeypatch.setattr(lsh, "least_count", lambda *_: least)
    found = grow(curator, Projection(directions), 4, 0.0, Settings())
    words = ["".join("1" if x < 0 else "0" for x in row) for row in rows @ directions.T]
    expected = leaves_by_definition(words, least)
    as_words = {
        f"{prefix:0{nodes.depth}b}" if nodes.depth else "": count
        for nodes in found
        for prefix, count in zip(nodes.prefixes.tolist(), nodes.counts.tolist(), strict=True)
    }
    assert as_words == expected
    assert len(expected) > 1


def test_leaves_become_points_with_the_mean_of_their_rows(curate: MakeCurator) -> None:
    """Without noise and with as many clusters as leaves every center is the mean of a leaf."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 4))
    found = lsh_kmeans(curate(rows, math.inf), 2, Settings(), np.random.default_rng(0))
    assert found.sizes.sum() == 6  # with branches from 3 rows on none is lost
    weighted = (to_float(found.centers) * found.sizes[:, np.newaxis]).sum(axis=0)
    assert weighted == pytest.approx(rows.sum(axis=0), abs=1e-5)


@pytest.mark.parametrize("private_root", [False, True])
@pytest.mark.parametrize("epsilon", [0.25, 4.0])
def test_noise_is_the_least_that_the_budget_allows_for_a_full_tree(
    private_root: bool, epsilon: float, curate: MakeCurator, blobs: Blobs
) -> None:
    curator = curate(blobs()[0], epsilon, delta=1e-4)
    noise = noise_multiplier(curator, Settings(private_root=private_root))
    for counts, fits in ((20 + private_root, True), (22 + private_root, False)):
        events: list[Event | PureEvent] = [
            Event(noise * GRID_UNIT, GRID_UNIT),
            PureEvent(1 / (20 * noise), counts),
        ]
        assert (composed_epsilon(events, 1e-4) <= epsilon) == fits
    tight: list[Event | PureEvent] = [
        Event(noise * GRID_UNIT, GRID_UNIT),
        PureEvent(1 / (20 * noise), 20 + private_root),
    ]
    assert composed_epsilon(tight, 1e-4) > epsilon * (1 - 1e-4)


def test_a_tree_of_full_depth_fits_into_the_budget(
    curate: MakeCurator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row many times: the tree goes down to the last bit, with all its releases."""
    rows = np.full((40_000, 2), 0.5)
    monkeypatch.setattr(lsh, "least_count", lambda *_: 2_000)
    for private_root in (False, True):
        curator = curate(rows, 2.0)
        lsh_kmeans(curator, 3, Settings(private_root=private_root), np.random.default_rng(0))
        receipt = curator.receipt("ball")
        names = [release.name for release in receipt.releases]
        assert names == ["root"] * private_root + ["tree counts"] * DEPTH + ["leaf sums"]
        assert 1.999 < receipt.epsilon_spent <= 2.0


def test_counts_have_twenty_times_the_multiplier_of_the_sums(curate: MakeCurator, blobs: Blobs) -> None:
    curator = curate(blobs()[0], 1.0)
    lsh_kmeans(curator, 4, Settings(), np.random.default_rng(0))
    releases = curator.receipt("ball").releases
    sums = releases[-1]
    assert [release.law for release in releases] == ["Laplace"] * (len(releases) - 1) + ["Gaussian"]
    for counts in releases[:-1]:
        assert counts.sigma == pytest.approx(20 * sums.sigma / GRID_UNIT)


def test_the_private_root_is_used(curate: MakeCurator, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plain = least_count

    def spied(total: int, *others: float) -> int:
        seen.append(total)
        return plain(total, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(lsh, "least_count", spied)
    rows = np.zeros((500, 2))
    for seed in range(3):
        lsh_kmeans(curate(rows, 0.1, seed=seed), 2, Settings(private_root=True), np.random.default_rng(0))
    assert len(set(seen)) == 3
    seen.clear()
    lsh_kmeans(curate(rows, 0.1), 2, Settings(), np.random.default_rng(0))
    assert seen == [500]


def test_with_too_few_leaves_the_rest_are_copies() -> None:
    points = np.array([[5], [100]], dtype=np.int32)
    found = cluster(points, np.array([3, 4]), 5, 10, np.random.default_rng(0))
    assert found.centers.shape == (5, 1)
    assert set(found.centers.ravel().tolist()) == {5, 100}
    assert found.sizes.sum() == 7
    assert (found.sizes == 0).sum() == 3


def test_a_node_needs_ten_times_the_noise_of_a_mean_or_half_a_cluster() -> None:
    assert least_count(20_000, 16, 26, 3.7) == 148
    assert least_count(2_000, 16, 26, 3.7) == 38
    assert least_count(20, 16, 26, 3.7) == 1

"""Every row votes for its nearest candidate, exactly, whatever the other rows are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pemeans.kernels.grid import GRID_UNIT, GridArray, pull_into_ball
from pemeans.kernels.native import native
from pemeans.kernels.nearest import BLOCK_SCORES, Kernel, Labels, nearest, nearest_in_c, nearest_in_numpy

KERNELS = [
    pytest.param(nearest_in_numpy, id="numpy"),
    pytest.param(
        nearest_in_c,
        id="c",
        marks=pytest.mark.skipif(native is None, reason="without a C compiler there is only the NumPy twin"),
    ),
]
SETS = range(0 if native is None else native.instruction_set() + 1)
"""The instruction sets of this machine: all of them give the same labels."""
DIMENSIONS = (1, 2, 3, 8, 16, 17, 64, 512)

Case = Callable[[int, np.random.Generator], tuple[GridArray, GridArray]]


def by_brute_force(rows: GridArray, candidates: GridArray) -> Labels:
    """Python integers, one row after another, the lowest index among equals."""
    winners = []
    points = [[int(c) for c in candidate] for candidate in candidates]
    for row in rows:
        x = [int(v) for v in row]
        distances = [sum((a - b) ** 2 for a, b in zip(x, point, strict=True)) for point in points]
        winners.append(distances.index(min(distances)))
    return np.array(winners, dtype=np.int32)


def in_c(instructions: int, groups: int) -> Kernel:
    """The fast search with an instruction set and so many groups of candidates; 0 is as many as pay."""

    def kernel(rows: GridArray, candidates: GridArray) -> Labels:
        labels = np.empty(len(rows), dtype=np.int32)
        index = native.index(candidates, candidates.shape[1], groups, instructions)
        native.find(index, np.ascontiguousarray(rows), labels, instructions)
        return labels

    return kernel


def integers(rng: np.random.Generator, n: int, d: int, size: int) -> GridArray:
    return rng.integers(-size, size + 1, size=(n, d)).astype(np.int32)


def unit(d: int) -> int:
    """Coordinates up to this make vectors of at most one unit."""
    return int(GRID_UNIT / np.sqrt(d))


def random_points(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    return integers(rng, 40, d, unit(d)), integers(rng, 33, d, unit(d))


def bisectors(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    candidates = 2 * integers(rng, 9, d, unit(d) // 2)
    one, other = np.triu_indices(9, k=1)
    return ((candidates[one] + candidates[other]) // 2).astype(np.int32), candidates


def duplicated_candidates(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    candidates = integers(rng, 5, d, unit(d))[rng.integers(0, 5, size=30)]
    return integers(rng, 20, d, unit(d)), candidates


def duplicated_rows(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    rows, candidates = bisectors(d, rng)
    return rows[rng.integers(0, 4, size=40)], candidates


def lattice(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    step = max(unit(d) // 4, 1)
    return integers(rng, 40, d, 2) * step, integers(rng, 40, d, 2) * step


def rows_on_candidates(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    candidates = integers(rng, 30, d, unit(d))
    return candidates[::-1].copy(), candidates


def within_one_grid_unit(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    corner = integers(rng, 1, d, unit(d) - 1)
    return integers(rng, 20, d, unit(d)), corner + integers(rng, 30, d, 1)


def far_twins(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    """Candidates opposite to the rows and one unit apart: their float32 scores are equal."""
    candidate = integers(rng, 1, d, unit(d) // 8) + unit(d) // 2
    rows = -candidate + integers(rng, 20, d, unit(d) // 8)
    return rows.astype(np.int32), (candidate + np.vstack([np.eye(d), -np.eye(d)])[:40]).astype(np.int32)


def last_bit(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    """Candidates far from one another whose squared distances of some 2**44 to a row differ by one."""
    base = integers(rng, 1, d, unit(d))[0]
    candidates = np.array([np.append(rng.permutation(base[1:]), i % 3) for i in range(30)], dtype=np.int32)
    rows = np.outer(rng.integers(-unit(d), unit(d), size=20), np.append(np.ones(d - 1), 0))
    return rows.astype(np.int32), candidates


def longest_views(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    """Projected rows may be as long as 255 units, and candidates one unit."""
    rows = np.zeros((20, d), dtype=np.int32)
    rows[:, 0] = 255 * GRID_UNIT - rng.integers(0, 3, size=20)
    candidates = np.zeros((20, d), dtype=np.int32)
    candidates[:, 0] = GRID_UNIT - rng.integers(0, 3, size=20)
    candidates[:, -1] += integers(rng, 20, 1, 1)[:, 0]
    return rows, candidates


def one_row(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    return integers(rng, 1, d, unit(d)), integers(rng, 17, d, unit(d))


def one_candidate(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    return integers(rng, 17, d, unit(d)), integers(rng, 1, d, unit(d))


def only_the_origin(d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    return integers(rng, 5, d, unit(d)), np.zeros((3, d), dtype=np.int32)


CASES: tuple[Case, ...] = (
    random_points,
    bisectors,
    duplicated_candidates,
    duplicated_rows,
    lattice,
    rows_on_candidates,
    within_one_grid_unit,
    far_twins,
    last_bit,
    longest_views,
    one_row,
    one_candidate,
    only_the_origin,
)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_kernels_agree_with_python_integers(case: Case, d: int) -> None:
    rows, candidates = case(d, np.random.default_rng(d))
    wanted = by_brute_force(rows, candidates)
    assert (nearest_in_numpy(rows, candidates) == wanted).all()
    assert (nearest(rows, candidates) == wanted).all()


def test_these_cases_are_hard() -> None:
    """Single precision, as fast libraries have it, gets several of them wrong: what follows has teeth."""
    wrong = set()
    for case in CASES:
        rows, candidates = case(16, np.random.default_rng(16))
        single = candidates.astype(np.float32)
        score = 2 * rows.astype(np.float32) @ single.T - (single**2).sum(axis=1)
        if (score.argmax(axis=1) != by_brute_force(rows, candidates)).any():
            wrong.add(case.__name__)
    assert {"bisectors", "within_one_grid_unit", "far_twins", "last_bit"} <= wrong


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 16, 65])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_label_of_a_row_does_not_depend_on_the_others(kernel: Kernel, case: Case, d: int) -> None:
    rng = np.random.default_rng(d)
    rows, candidates = case(d, rng)
    labels = kernel(rows, candidates)
    for chosen in (
        np.delete(np.arange(len(rows)), len(rows) // 2),  # one row dropped
        rng.permutation(len(rows)),
        np.arange(len(rows))[::-2],
        rng.integers(0, len(rows), size=3 * len(rows)),  # rows added
    ):
        assert (kernel(rows[chosen], candidates) == labels[chosen]).all()
    alone = [kernel(row[np.newaxis], candidates)[0] for row in rows]
    assert (labels == alone).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_memory_layout_does_not_matter(kernel: Kernel) -> None:
    rows, candidates = lattice(16, np.random.default_rng(0))
    labels = kernel(rows, candidates)
    wide = np.zeros((80, 48), dtype=np.int32)
    wide[::2, ::3] = rows
    for layout in (np.asfortranarray(rows), wide[::2, ::3], rows[::-1, ::-1].copy()[::-1, ::-1]):
        assert (kernel(layout, np.asfortranarray(candidates)) == labels).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_candidates", [1, 7, 8, 9, 31, 32, 33, 64, 65, 1000])
@pytest.mark.parametrize("n_rows", [1, 2, 11, 12, 13, 25])
def test_no_seam_between_blocks_of_rows_and_panels_of_candidates(
    kernel: Kernel, n_rows: int, n_candidates: int
) -> None:
    rng = np.random.default_rng(n_rows * n_candidates)
    candidates = integers(rng, n_candidates, 3, 40)
    rows = integers(rng, n_rows, 3, 40)
    gaps = ((rows[:, np.newaxis] - candidates) ** 2).sum(axis=2)
    assert (kernel(rows, candidates) == gaps.argmin(axis=1)).all()


def test_numpy_kernel_works_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, candidates = lattice(5, np.random.default_rng(0))
    labels = nearest_in_numpy(rows, candidates)
    assert rows.shape[0] * candidates.shape[0] < BLOCK_SCORES
    for scores in (1, 79, 200):
        monkeypatch.setattr("pemeans.kernels.nearest.BLOCK_SCORES", scores)
        assert (nearest_in_numpy(rows, candidates) == labels).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_rows_no_labels(kernel: Kernel) -> None:
    labels = kernel(np.empty((0, 3), dtype=np.int32), np.zeros((2, 3), dtype=np.int32))
    assert labels.shape == (0,)
    assert labels.dtype == np.int32


def near_ties(m: int, n: int, d: int, rng: np.random.Generator) -> tuple[GridArray, GridArray]:
    """Clumps of candidates at all scales, some twice, some at the edge; rows nearly halfway between two."""
    centers = integers(rng, max(m // 20, 1), d, unit(d))
    steps = rng.standard_normal((m, d)) * 10 ** rng.uniform(0, 6, size=(m, 1))
    candidates = centers[rng.integers(len(centers), size=m)] + np.trunc(np.clip(steps, -GRID_UNIT, GRID_UNIT))
    candidates[::7] *= GRID_UNIT / np.maximum(np.linalg.norm(candidates[::7], axis=1, keepdims=True), 1)
    candidates[1::11] = candidates[0]
    candidates = pull_into_ball(np.clip(candidates, -GRID_UNIT, GRID_UNIT).astype(np.int32))
    one, other = candidates[rng.integers(m, size=(2, n))].astype(np.int64)
    rows = (one + other) // 2 + integers(rng, n, d, 1)
    rows[::5] = one[::5]
    return rows.astype(np.int32), candidates


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_every_instruction_set_and_grouping_finds_the_same(instructions: int, d: int) -> None:
    for case in CASES:
        rows, candidates = case(d, np.random.default_rng(d))
        wanted = nearest_in_numpy(rows, candidates)
        for groups in (0, 1, 5):
            found = in_c(instructions, min(groups, len(candidates)))(rows, candidates)
            assert (found == wanted).all(), (case.__name__, groups)


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize(
    ("m", "n", "d"),
    [(700, 90, 1), (2000, 150, 2), (1500, 130, 5), (600, 100, 33), (400, 80, 100), (300, 70, 200)],
)
def test_near_ties_dropped_and_permuted(m: int, n: int, d: int, instructions: int) -> None:
    rng = np.random.default_rng(d)
    rows, candidates = near_ties(m, n, d, rng)
    wanted = nearest_in_numpy(rows, candidates)
    for groups in (0, 1, 17, 128):
        kernel = in_c(instructions, groups)
        assert (kernel(rows, candidates) == wanted).all(), groups
        for chosen in (
            rng.permutation(n),
            np.delete(np.arange(n), n // 3),
            np.array([n // 2]),
            np.arange(33),
        ):
            assert (kernel(rows[chosen], candidates) == wanted[chosen]).all(), groups

"""Rows in memory give the same totals whatever their layout, their blocks and the number of threads."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits

from pemeans import HDPEMeans
from pemeans.domain import Domain
from pemeans.evolution.project import random_projection
from pemeans.kernels.grid import GridArray, IntArray, Projection, pull_into_ball, to_grid
from pemeans.kernels.nearest import Kernel, nearest_in_c, nearest_in_numpy
from pemeans.privacy.statistics import NearestSums, NearestVotes, SecondMoments, Statistic
from pemeans.rows import block as block_module
from pemeans.rows.block import Block
from pemeans.rows.memory import HeldBlocks, MemoryRows

N, D = 203, 20
DOMAINS = {
    "ball": Domain.ball(radius=3.0).bind(n_rows=N, n_features=D),
    "box": Domain.box(-1.5, 2.0).bind(n_rows=N, n_features=D),
    "scaled box": Domain.box([-1.5] * D, np.linspace(1, 3, D), scale=True).bind(n_rows=N, n_features=D),
}


@pytest.fixture(params=[nearest_in_numpy, nearest_in_c], ids=["numpy", "c"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Both kernels stand behind the same totals."""
    from pemeans.kernels.native import native

    if native is None and request.param is nearest_in_c:
        pytest.skip("without a C compiler there is only the NumPy twin")
    chosen: Kernel = request.param
    monkeypatch.setattr(block_module, "nearest", chosen)
    return chosen


def raw_rows(dtype: type = np.float64) -> npt.NDArray[np.floating]:
    """Rows on a coarse lattice, so that many lie on bisectors, with repeats and some far outside."""
    rng = np.random.default_rng(11)
    rows = rng.integers(-4, 5, size=(N, D)) / 8
    rows[50:60] = rows[3]
    rows[::13] *= 1e20
    return rows.astype(dtype)


def questions(domain: Domain) -> list[Statistic]:
    """Candidates at rows of the data and halfway between them, on the rows and through a view."""
    rng = np.random.default_rng(12)
    grid = domain.to_grid(raw_rows())
    candidates: GridArray = np.concatenate([grid[:6], grid[3:4], (grid[:6] + grid[6:12]) // 2]).astype(
        np.int32
    )
    view = random_projection(D, rng)
    seen = pull_into_ball(view(candidates))
    assert (seen == to_grid(seen / 2.0**22)).all()
    return [
        NearestVotes(candidates),
        NearestSums(candidates),
        NearestVotes(seen, view),
        NearestSums(seen, view),
        SecondMoments(D),
    ]


def totals(rows: npt.NDArray[np.floating], domain: Domain, n_jobs: int = 1) -> list[IntArray]:
    held = MemoryRows(rows, domain, n_jobs)
    return [held.total(question) for question in questions(domain)]


def test_rows_that_remember_nothing_answer_alike(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, domain = raw_rows(), DOMAINS["ball"]
    wanted = totals(rows, domain)
    monkeypatch.setattr("pemeans.rows.memory.BLOCK_ROWS", 50)
    monkeypatch.setattr("pemeans.rows.memory.KEPT_BYTES", 8000)
    held = MemoryRows(rows, domain, 2)
    assert (len(held._held._blocks), len(held._held._others)) == (2, 3)
    for _ in range(2):
        assert same([held.total(question) for question in questions(domain)], wanted)


def same(one: list[IntArray], other: list[IntArray]) -> bool:
    return all((a == b).all() and a.shape == b.shape for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", DOMAINS)
def test_threads_and_blocks_do_not_matter(name: str, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, domain = raw_rows(), DOMAINS[name]
    wanted = totals(rows, domain)
    for size in (1, 7, 64, N - 1):
        monkeypatch.setattr("pemeans.rows.memory.BLOCK_ROWS", size)
        for n_jobs in (1, 2, 3):
            assert same(totals(rows, domain, n_jobs), wanted)
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert same(totals(rows, domain), wanted)


@pytest.mark.parametrize("name", DOMAINS)
def test_order_of_rows_does_not_matter(name: str, kernel: Kernel) -> None:
    rows, domain = raw_rows(), DOMAINS[name]
    shuffled = rows[np.random.default_rng(0).permutation(N)]
    assert same(totals(shuffled, domain), totals(rows, domain))


def layouts(rows: npt.NDArray[np.floating]) -> Iterator[npt.NDArray[np.floating]]:
    """The same values, laid out in memory in every way that NumPy knows."""
    yield np.asfortranarray(rows)
    wide = np.full((3 * N, 2 * D), 7, dtype=rows.dtype)
    wide[::3, 1::2] = rows
    yield wide[::3, 1::2]
    yield rows[::-1, ::-1].copy()[::-1, ::-1]
    yield np.broadcast_to(rows, (2, N, D))[1]
    unaligned = np.zeros(rows.nbytes + 1, dtype=np.uint8)[1:].view(rows.dtype).reshape(N, D)
    unaligned[:] = rows
    yield unaligned
    frozen = rows.copy()
    frozen.flags.writeable = False
    yield frozen
    yield rows.astype(rows.dtype.newbyteorder())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DOMAINS)
def test_layout_does_not_matter(name: str, dtype: type, kernel: Kernel) -> None:
    rows, domain = raw_rows(dtype), DOMAINS[name]
    wanted = totals(rows, domain)
    for layout in layouts(rows):
        assert (layout == rows).all()
        assert same(totals(layout, domain), wanted)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_dropping_or_adding_a_row_leaves_the_others_votes(
    n_jobs: int, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pemeans.rows.memory.BLOCK_ROWS", 50)
    rows, domain = raw_rows(), DOMAINS["box"]
    wanted = totals(rows, domain, n_jobs)
    for i in (0, 3, 49, 50, 101, N - 1):
        alone = totals(rows[i : i + 1], domain)
        dropped = totals(np.delete(rows, i, axis=0), domain, n_jobs)
        added = totals(np.insert(rows, 77, rows[i], axis=0), domain, n_jobs)
        for whole, without, with_two, own in zip(wanted, dropped, added, alone, strict=True):
            assert (whole - without == own).all()
            assert (with_two - whole == own).all()
        assert np.abs(alone[0]).sum() == np.abs(alone[2]).sum() == 1
        assert (alone[1].sum(axis=0) == domain.to_grid(rows[i : i + 1])[0]).all()


@pytest.mark.parametrize("mapped", [False, True])
def test_rows_are_projected_once(mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    projected: list[int] = []
    plain = Projection.__call__

    def counting(self: Projection, grid: GridArray) -> GridArray:
        projected.append(len(grid))
        return plain(self, grid)

    monkeypatch.setattr(Projection, "__call__", counting)
    rows = raw_rows()
    if mapped:
        np.save(tmp_path / "rows.npy", rows)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    HDPEMeans(3, domain=Domain.box(-1.5, 2.0), n_iterations=6).fit(rows)
    assert sum(projected) == len(rows)


def test_later_changes_of_the_users_array_do_not_reach_the_rows() -> None:
    rows, domain = raw_rows(), DOMAINS["ball"]
    held = MemoryRows(rows, domain, 1)
    question = questions(domain)[1]
    before = held.total(question)
    rows[:] = 0
    assert (held.total(NearestSums(question.candidates)) == before).all()  # type: ignore[attr-defined]


def test_repr_shows_no_values() -> None:
    held = MemoryRows(np.full((2, D), 0.12345), DOMAINS["ball"], 1)
    assert "12345" not in repr(held)
    assert "[" not in repr(held)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_beyond_the_kept_ones_are_gone_as_soon_as_they_answered(threads: int) -> None:
    """What they remember would be another table of the rows, or two."""
    asked: list[weakref.ref[Block]] = []

    def alive(block: Block) -> IntArray:
        asked.append(weakref.ref(block))
        return np.array([sum(ref() is not None for ref in list(asked))])

    grids = [np.zeros((3, 2), dtype=np.int32)] * 50
    held = HeldBlocks(grids, threads, kept_bytes=2 * grids[0].nbytes)
    total = held.total(alive)
    # Two are kept, and every thread has one, or has just let go of one.
    assert np.max(total) <= 50 * (2 + 2 * threads)

"""Rows in files: what is made of them is made once, is right, and nothing stays that is not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pemeans import Domain
from pemeans.kernels.grid import Frame, GridArray, Projection
from pemeans.rows import grid_files
from pemeans.rows.grid_files import Named
from pemeans.rows.memory import BLOCK_ROWS

N, D = BLOCK_ROWS + 7, 3
DOMAIN = Domain.box(-3, 3).bind(N, D)


class Counted:
    """A look that remembers how many rows it saw."""

    def __init__(self, look: Any) -> None:
        self.look, self.seen = look, 0

    def __call__(self, rows: npt.NDArray[Any]) -> GridArray:
        self.seen += len(rows)
        found: GridArray = self.look(rows)
        return found


@pytest.fixture
def rows() -> npt.NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(N, D))


@pytest.fixture
def path(tmp_path: Path, rows: npt.NDArray[np.float64]) -> Path:
    with grid_files.new(tmp_path, "rows-") as file:
        file.write(rows.tobytes())
    return Path(file.name)


def test_blocks_show_the_rows_as_they_are_seen(path: Path, rows: npt.NDArray[np.float64]) -> None:
    ground = Counted(DOMAIN.to_grid)
    frame, view = Frame(np.array([5, -7, 2**18], dtype=np.int32), 2**19), Projection(np.eye(3)[:2])
    looks: tuple[Any, Any, Any] = Named("g", ground), Named("f", Counted(frame)), Named("v", Counted(view))
    for _ in range(3):
        blocks = list(grid_files.blocks(path, D, *looks))
        framed = frame(DOMAIN.to_grid(rows))
        assert np.array_equal(np.concatenate([block.grid for block in blocks]), framed)
        through = [block.through(looks[2].look) for block in blocks]
        assert np.array_equal(np.concatenate(through), view(framed))
    assert [named.look.seen for named in looks] == [N, N, N]
    (plain, *_) = grid_files.blocks(path, D, looks[0], None, None)
    assert np.array_equal(plain.grid, DOMAIN.to_grid(rows[:BLOCK_ROWS]))


def test_only_the_last_look_is_kept(path: Path) -> None:
    ground, frame = Named("g", DOMAIN.to_grid), Frame(np.zeros(D, dtype=np.int32), 2**19)
    for name in "abc":
        list(grid_files.blocks(path, D, ground, Named(name, frame), None))
    assert {file.name for file in path.parent.iterdir()} == {f"{path.name}.g", f"{path.name}.g.c"}
    assert grid_files.is_here(path, ground)
    assert not grid_files.is_here(path, Named("another", DOMAIN.to_grid))


def test_nothing_is_left_of_what_fails(tmp_path: Path, path: Path) -> None:
    def fail(rows: npt.NDArray[Any]) -> GridArray:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(grid_files.blocks(path, D, Named("g", fail), None, None))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(KeyboardInterrupt), grid_files.new(tmp_path, "rows-"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_for_their_owner_alone(path: Path) -> None:
    list(grid_files.blocks(path, D, Named("g", DOMAIN.to_grid), None, None))
    assert [file.stat().st_mode & 0o777 for file in path.parent.iterdir()] == [0o600]

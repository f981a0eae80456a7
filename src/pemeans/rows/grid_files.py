"""Rows in files of the machine that answers for them, where all processes of a cluster's worker find them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pemeans.kernels.grid import Frame, GridArray, Projection
from pemeans.rows.block import Block
from pemeans.rows.memory import in_blocks

LookT = TypeVar("LookT", bound=Callable[[Any], GridArray])


class Named(NamedTuple, Generic[LookT]):
    """A look at rows, each by itself, and a name that no other look has."""

    name: str
    look: LookT


@contextmanager
def new(folder: Path, prefix: str) -> Iterator[IO[bytes]]:
    """A file that only its owner may read; none is left where it can't be written to the end."""
    with NamedTemporaryFile(dir=folder, prefix=prefix, delete=False) as file:
        try:
            yield file
        except BaseException:
            os.unlink(file.name)
            raise


def is_here(path: Path, ground: Named[Any]) -> bool:
    """Whether this machine has the rows, in the user's units or on the grid."""
    return path.exists() or _beside(path, ground).exists()


def blocks(
    path: Path, width: int, ground: Named[Any], frame: Named[Frame] | None, view: Named[Projection] | None
) -> Iterator[Block]:
    """The rows of a file on the grid, as seen in a frame and through a view."""
    grid = _seen(path, np.float64, width, ground)
    path.unlink(missing_ok=True)  # the grid takes its place
    if frame is not None:
        grid = _seen(grid, np.int32, width, frame)
    rows = _mapped(grid, np.int32).reshape(-1, width)
    if view is None:
        yield from map(Block, in_blocks(rows))
    else:
        through = _mapped(_seen(grid, np.int32, width, view), np.int32).reshape(len(rows), -1)
        for some, seen in zip(in_blocks(rows), in_blocks(through), strict=True):
            yield Block(some, view.look, seen)


def _seen(path: Path, kind: type[np.generic], width: int, named: Named[Any]) -> Path:
    """What a look at the rows of a file gives, put beside it the first time, in place of the last one."""
    made = _beside(path, named)
    if not made.exists():
        with new(path.parent, path.name.split(".")[0] + "-") as file:
            for rows in in_blocks(_mapped(path, kind).reshape(-1, width)):
                file.write(np.ascontiguousarray(named.look(rows)).data)
        os.replace(file.name, made)  # whoever did the same meanwhile wrote the same
        for last in path.parent.glob(f"{path.name}.*"):
            if not last.name.startswith(made.name):
                last.unlink(missing_ok=True)
    return made


def _beside(path: Path, named: Named[Any]) -> Path:
    return path.with_name(f"{path.name}.{named.name}")


def _mapped(path: Path, kind: type[np.generic]) -> npt.NDArray[Any]:
    """The numbers of a file, read when they are looked at."""
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))

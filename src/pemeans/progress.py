"""What a fit says while it runs: released values only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pemeans.kernels.grid import FloatArray


@dataclass(frozen=True, eq=False)
class Progress:
    """One finished iteration.

    ``cluster_centers`` are the survivors in the user's units, or None while the evolution runs in a
    projection.
    """

    iteration: int
    n_iterations: int
    cluster_centers: FloatArray | None


@contextmanager
def showing_progress(
    wish: bool | Callable[[Progress], None],
) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call after every iteration: the user's own, a bar on standard error, or None."""
    if callable(wish):
        yield wish
    elif not wish:
        yield None
    else:
        from rich.console import Console  # imported late: most fits show no bar
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("Private evolution", total=None)
            yield lambda done: bar.update(task, completed=done.iteration, total=done.n_iterations)

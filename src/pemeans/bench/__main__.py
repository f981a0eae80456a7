"""``python -m pemeans.bench``: the benchmark's commands by themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer

from pemeans.bench.commands import bench_app, data_app
from pemeans.errors import PemeansError


def spoken(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end with one line instead of a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except PemeansError as error:
            typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(1) from None

    return wrapped


if __name__ == "__main__":
    app = bench_app(spoken)
    app.add_typer(data_app(spoken), name="data")
    app()

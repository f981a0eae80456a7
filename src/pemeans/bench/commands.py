"""The commands ``pemeans bench run``, ``pemeans bench report`` and ``pemeans data list | fetch | show``."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pemeans.errors import ParameterError

# What takes long to import is imported where it is used, so that --help is quick.

Command = Callable[..., None]
Wrapper = Callable[[Command], Command]
COMMAND_LINE = {"help_option_names": ["-h", "--help"]}
ResultsFile = Annotated[
    Path, typer.Option("--out", "-o", help="The results file (SQLite), new or to go on with.")
]


def bench_app(spoken: Wrapper) -> typer.Typer:
    """The commands below ``pemeans bench``; `spoken` turns errors into one line."""
    app = typer.Typer(help="Run the paper's studies and show their results.", no_args_is_help=True)
    app.command(context_settings=COMMAND_LINE)(spoken(run))
    app.command(context_settings=COMMAND_LINE)(spoken(report))
    return app


def data_app(spoken: Wrapper) -> typer.Typer:
    """The commands below ``pemeans data``."""
    app = typer.Typer(help="List, fetch and show the data sets of the paper.", no_args_is_help=True)
    app.command("list", context_settings=COMMAND_LINE)(spoken(list_datasets))
    app.command(context_settings=COMMAND_LINE)(spoken(fetch))
    app.command(context_settings=COMMAND_LINE)(spoken(show))
    return app


def run(
    suite: Annotated[
        str,
        typer.Argument(
            help="table1, tradeoff, labels, scaling, tune-iterations, tune-variation, vote-splitting, smoke."
        ),
    ],
    out: ResultsFile = Path("bench.sqlite"),
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Seeds a setting.  [default: the suite's]")
    ] = None,
    methods: Annotated[str | None, typer.Option(metavar="A,B,...", help="These methods only.")] = None,
    datasets: Annotated[str | None, typer.Option(metavar="A,B,...", help="These data sets only.")] = None,
    epsilons: Annotated[
        str | None, typer.Option("--eps", metavar="A,B,...", help="These budgets only.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for one a core.")] = -1,
) -> None:
    """Run a study, or go on with one.

    Every finished run is in the results file at once. Stop at any time, also by force: the same command goes
    on.
    """
    from pemeans.bench.methods import method_named
    from pemeans.bench.runner import run_suite
    from pemeans.bench.suites import suite_named

    chosen = suite_named(suite)
    if jobs == 0:
        raise ParameterError("--jobs 0 would do nothing; pass how many processes, or -1 for one a core")
    if not out.parent.is_dir():
        raise ParameterError(f"--out {out}: there is no folder {out.parent}; make it first")
    names = [method_named(name).name for name in _split(methods)]
    limited = chosen.limited(_split(datasets), names, _numbers(epsilons))
    console = _console()
    summary = run_suite(limited, out, repeats or chosen.repeats, jobs, console)
    console.print(f"{summary.done:,} runs done, {summary.before:,} were done before; results in {out}.")
    if not summary.complete:
        console.print(
            f"{len(summary.failed):,} runs failed and {len(summary.missing):,} data sets were missing: see "
            "above. The same command tries them again."
        )
        raise typer.Exit(1)


def report(
    results: Annotated[list[Path], typer.Argument(help="Results files that bench run wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; made if it is not there.")] = Path(
        "report"
    ),
) -> None:
    """Make tables, figures and a page of results."""
    from pemeans.bench.report import write_report

    for path in write_report(results, out):
        typer.echo(str(path))


def list_datasets() -> None:
    """List all data sets and where they would come from."""
    from pemeans.bench.datasets import reachable
    from pemeans.bench.registry import EXTRAS, TABLE1, find

    typer.echo(f"{'name':<16}{'rows':>8}{'columns':>9}{'k':>5}  from")
    for name in (*TABLE1, *EXTRAS):
        entry = find(name)
        assert entry is not None
        typer.echo(f"{name:<16}{entry.n:>8,}{entry.d:>9}{entry.k:>5}  {reachable(name)}")
    typer.echo(
        "Also made for any size: sklearn_<k>_<d>, scale_<k>_<d>_seed<s>.\n"
        "Own data: see pemeans data show --help."
    )


def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets.  [default: those of Table 1]")] = None,
) -> None:
    """Fetch data sets from their public homes into the cache, and check them."""
    from pemeans.bench.datasets import load
    from pemeans.bench.registry import TABLE1
    from pemeans.errors import PemeansError

    failures = 0
    for name in names or TABLE1:
        try:
            typer.echo("{}: {:,} rows of {} columns, {} clusters".format(name, *load(name).size))
        except PemeansError as error:
            failures += 1
            typer.echo(f"Error: {error}", err=True)
    if failures:
        raise typer.Exit(1)


def show(name: Annotated[str, typer.Argument(help="A data set.")]) -> None:
    """Show what is known of a data set.

    Own data: set PEMEANS_DATA to a folder with a file NAME.npz that holds an array X (rows and columns) and
    either labels y or a number of clusters k.
    """
    from pemeans.bench.datasets import load, reachable
    from pemeans.bench.registry import find

    entry = find(name)
    if entry is None:
        n, d, k = load(name).size
        typer.echo(f"{name}: {n:,} rows of {d} columns, {k} clusters; not registered, from PEMEANS_DATA")
        return
    lines: dict[str, Any] = {
        "name": entry.name,
        "rows": f"{entry.n:,}",
        "columns": entry.d,
        "clusters": entry.k,
        "source": entry.source,
        "license": entry.license,
        "home": entry.home.url if entry.home else "generated" if entry.make else f"none, as {entry.homeless}",
        "rows sha256": entry.checksum or "none",
        "labels sha256": entry.labels_checksum or "none",
        "comes from": reachable(name),
        "note": entry.note or "none",
    }
    for title, value in lines.items():
        typer.echo(_folded(f"{title}: {value}"))


def _folded(text: str) -> str:
    """Lines that a terminal shows as they are; addresses and checksums stay whole."""
    return textwrap.fill(text, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _split(names: str | None) -> list[str]:
    """The names in A,B,..."""
    return [name.strip() for name in names.split(",") if name.strip()] if names else []


def _numbers(text: str | None) -> list[float]:
    try:
        numbers = [float(number) for number in _split(text)]
    except ValueError:
        numbers = [-1.0]
    if any(not number > 0 for number in numbers):
        raise ParameterError(f"--eps {text!r} is not a list of positive numbers; write for example 0.5,1,2")
    return numbers


def _console() -> Any:
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)

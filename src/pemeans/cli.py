"""The command line: reads options, calls the library, and says in one line what went wrong."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pemeans.bench.commands import bench_app, data_app
from pemeans.errors import DomainError, ParameterError, PemeansError, PrivacyLeakWarning, SeededNoiseWarning

# What takes long to import is imported where it is used, so that --help is quick.
if TYPE_CHECKING:
    from rich.console import Console

    from pemeans.bounds import Bounds
    from pemeans.estimators import PrivateKMeans

NO_BOUNDS = (
    "no bounds: say where each column can lie, from what is known without looking at the rows, with "
    "--bounds age=0:120 for every column to use (or --bounds-file, or --radius). Bounds that are read from "
    "the rows reveal the most extreme row; to do so all the same, for study, pass --bounds-from-data"
)
TWO_DOMAINS = "--bounds, --radius and --bounds-from-data exclude one another; keep one"
WARNINGS: dict[type[Warning], str] = {
    SeededNoiseWarning: "--seed is set, so the noise can be reproduced and subtracted: this result is NOT "
    "private. Leave --seed away for a release",
    PrivacyLeakWarning: "the bounds were read from the private rows, which the guarantee does not cover: the "
    "centers can reveal the most extreme row. Pass public --bounds for a release",
}
INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    # Typer's own tracebacks show local variables, and those can hold private rows.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Method(StrEnum):
    """The methods by the names of the command line."""

    dpk = "dpk"
    pe = "pe"
    hdpe = "hdpe"


class Engine(StrEnum):
    """The engines by the names of the command line."""

    dask = "dask"
    spark = "spark"


EngineOption = Annotated[
    Engine | None, typer.Option(help="Let a cluster read the rows, from Parquet.  [default: this program]")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the engine runs: tcp://host:8786 of Dask; spark://host:7077, yarn or sc://host:15002 of "
        "Spark.  [default: started here]",
    ),
]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()


def spoken(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end with one line on standard error instead of a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            with _warnings_in_one_line():
                command(*args, **options)
        except PemeansError as error:
            _fail(str(error))
        except typer.Exit:
            raise  # the command has said what is wrong
        except BrokenPipeError:
            raise  # whoever read the output has seen enough: typer ends quietly
        except OSError as error:
            where = error.filename or "reading or writing"
            _fail(f"{where}: {error.strerror or 'failed'}; check the path and the disk")
        except ModuleNotFoundError as error:
            _fail(_missing(error))
        except MemoryError:
            _fail("not enough memory; use fewer rows or columns")
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except Exception as error:
            _fail(_unexpected(error))

    return wrapped


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _missing(error: ModuleNotFoundError) -> str:
    """What to install: each of the optional packages is called as its module is."""
    if error.name is None or error.name.partition(".")[0] == "pemeans":
        return _unexpected(error)
    package = error.name.partition(".")[0]
    return f"the package {package!r} is missing, which only this command needs; pip install {package}"


def _unexpected(error: Exception) -> str:
    """Where a bug shows, but not the error's own words, which can quote a private value."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = (
        f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else "an unknown place"
    )
    return f"{type(error).__name__} at {where}: this is a bug in pemeans, please report it"


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        typer.echo(f"Warning: {WARNINGS.get(category, str(message))}.", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyLeakWarning)
        warnings.showwarning = show
        yield


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pemeans {version('pemeans')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster private data with differential privacy."""


@app.command()
@spoken
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Private rows: a .csv, .parquet or .feather file, a folder of .parquet files, or a pattern "
            "that matches some, in quotes. Parquet may be larger than memory. With --engine also a URL.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes (JSON).")],
    n_clusters: Annotated[int, typer.Option("-k", "--clusters", min=1, help="How many clusters.")] = 8,
    epsilon: Annotated[float, typer.Option(help="The privacy budget: less is more private.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="Chance that the guarantee fails.  [default: rows^-1.1]"),
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOW:HIGH", help="Public bounds of a column; repeat it.")
    ] = None,
    bounds_file: Annotated[
        Path | None, typer.Option(help="The same in TOML: age = [0, 120] and so on below a line [bounds].")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Instead of bounds: how far from 0 rows can lie.")
    ] = None,
    bounds_from_data: Annotated[
        bool, typer.Option("--bounds-from-data", help="Instead of bounds, for study: NOT private.")
    ] = False,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale", help="Measure columns in half-widths of their bounds, not in units."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Columns to use.  [default: those with bounds, or all]"),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="DPKMeans, or the paper's PE-means or HDPE-means.")
    ] = Method.dpk,
    n_samples: Annotated[
        int | None, typer.Option(min=1, help="The public number of rows.  [default: those in DATA]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Make the noise reproducible, for study: NOT private.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many threads.  [default: all cores]")
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")] = False,
) -> None:
    """Cluster private rows and write the model to a file.

    For example:

    pemeans fit rows.csv -k 5 --bounds age=0:120 --bounds bmi=10:60 --out m.json

    pemeans fit 'visits/*.parquet' -k 5 --bounds age=0:120 --bounds bmi=10:60 --out m.json
    """
    _check_target(out, Path(data))
    known = _bounds(bounds or [], bounds_file, scale)
    _check_one_domain(known, radius, bounds_from_data, scale)
    from pemeans.domain import Domain

    wanted = _split(columns) or list(known.limits) or None
    domain: Domain | str = "from-data"
    if radius is not None:
        domain = Domain.ball(radius)
    elif wanted and not bounds_from_data:
        domain = known.domain(wanted)
    estimator = _estimator(method)(
        n_clusters,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        n_samples=n_samples,
        random_state=seed,
        n_jobs=threads,
        progress=not quiet and sys.stderr is not None and sys.stderr.isatty(),
    )
    with _opened(data, wanted, threads, engine, address) as source:
        estimator.fit(source)
    estimator.save(out)
    if not quiet:
        from pemeans.report.tables import plain_console

        console = plain_console()
        _show_centers(estimator, console)
        _show_budget(estimator, console)
        typer.echo(f"Wrote {out}; show it with: pemeans inspect {out}")


@app.command()
@spoken
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Rows: a .csv, .parquet or .feather file, a folder, or a pattern in quotes."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="Where the labels go: .csv, .parquet or .feather; a folder with --engine."
        ),
    ],
    engine: EngineOption = None,
    address: AddressOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")] = False,
) -> None:
    """Write the cluster of every row to a file.

    The columns that the model was fitted on are found by their names, if it knows them. The labels stand in
    the order of the rows (files are sorted by their names), in a column "cluster". A cluster keeps no order:
    with --engine all columns of the rows are written, and "cluster" beside them.
    """
    from pemeans.estimators import load

    _check_engine(engine, address)
    estimator = load(model)
    with warnings.catch_warnings():
        if not hasattr(estimator, "feature_names_in_"):  # then columns are taken by their place
            warnings.simplefilter("ignore", UserWarning)
        if engine is None:
            written = f"{_label(estimator, model, data, Path(out)):,} labels"
        else:
            _label_there(engine, address, estimator, model, data, out)
            written = "the rows and their labels"
    if not quiet:
        typer.echo(f"Wrote {written} to {out}.")
        typer.echo("A label tells where its row lies: keep labels as private as the rows.")


@app.command()
@spoken
def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead.")] = False,
) -> None:
    """Show the centers of a model and its privacy receipt."""
    from pemeans.estimators import load
    from pemeans.model import read_model
    from pemeans.report.tables import plain_console, show_receipt

    estimator = load(model)
    if as_json:
        typer.echo(json.dumps(read_model(model).to_dict(), indent=2))
        return
    console = plain_console()
    _show_centers(estimator, console)
    show_receipt(estimator.receipt_, console)


@app.command()
@spoken
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model and pictures.")] = Path(
        "demo"
    ),
) -> None:
    """Cluster 5,000 made-up patients.

    Shows what was found beside the truth, and writes a model file and pictures to a folder.
    """
    if out.exists() and not out.is_dir():
        raise ParameterError(f"--out {out} is a file; give a folder")
    from pemeans.demo import run
    from pemeans.report.tables import plain_console

    run(out, plain_console())


@contextmanager
def _opened(
    data: str, wanted: list[str] | None, threads: int | None, engine: Engine | None, address: str | None
) -> Iterator[Any]:
    """The rows, wherever they are to be read."""
    _check_engine(engine, address)
    if engine is None:
        from pemeans.rows.paths import open_path

        yield open_path(data, wanted, threads)
        return
    from pemeans.rows.clusters import open_cluster, read_parquet, select

    with open_cluster(engine, address, threads) as cluster:
        yield select(cluster, read_parquet(cluster, data), wanted, data)


def _label(estimator: PrivateKMeans, model: Path, data: str, out: Path) -> int:
    """Write the labels of rows that this program reads; how many there are."""
    import pyarrow as pa

    from pemeans.rows.files import format_of, write_tables
    from pemeans.rows.paths import files_of, open_path

    format_of(out)
    _check_target(out, *map(Path, files_of(data)), model)
    source = open_path(data, _names(estimator))
    _check_width(estimator, source.n_features, model, data)
    schema = pa.schema({"cluster": pa.int32()})
    labels = estimator.iter_predict(source)
    write_tables((pa.table([some], schema=schema) for some in labels), schema, out)
    return source.n_rows


def _label_there(
    engine: Engine, address: str | None, estimator: PrivateKMeans, model: Path, data: str, out: str
) -> None:
    """Let a cluster write its rows and their labels."""
    from pemeans.rows.clusters import open_cluster, read_parquet, select

    if Path(out).exists():
        raise ParameterError(f"--out {out} is there already; give a folder that is not")
    with open_cluster(engine, address, None) as cluster:
        frame = read_parquet(cluster, data)
        if "cluster" in frame.columns:
            raise ParameterError(f"{data} has a column 'cluster' already; rename it")
        seen = select(cluster, frame, _names(estimator), data)
        _check_width(estimator, len(seen.columns), model, data)
        cluster.write_labeled(frame, estimator.predict(seen), out)


def _check_engine(engine: Engine | None, address: str | None) -> None:
    if engine is None and address is not None:
        raise ParameterError(f"--address {address} of what? Add --engine dask or --engine spark")


def _names(estimator: PrivateKMeans) -> list[str] | None:
    """The columns that a model looks for, if it knows their names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


def _check_width(estimator: PrivateKMeans, n_features: int, model: Path, data: str) -> None:
    if n_features != estimator.n_features_in_:
        raise ParameterError(
            f"{model} was fitted on {estimator.n_features_in_} columns without names, but {data} has "
            f"{n_features}; pass a file with the columns of the fit, in their order"
        )


def _check_target(out: Path, *sources: Path) -> None:
    """Whether a file can be written there, before anything is spent on its content."""
    if out.is_dir():
        raise ParameterError(f"--out {out} is a folder; add a file name")
    if not out.parent.is_dir():
        raise ParameterError(f"--out {out}: there is no folder {out.parent}; make it first")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ParameterError(f"--out {out}: no permission to write there; choose another place")
    if out.exists() and any(source.exists() and out.samefile(source) for source in sources):
        raise ParameterError(f"--out {out} would overwrite what is read; choose another name")


def _bounds(texts: list[str], file: Path | None, scale: bool | None) -> Bounds:
    """The bounds of the file, overridden by those of the command line."""
    from pemeans.bounds import Bounds, parse_bounds, read_bounds

    filed = Bounds() if file is None else read_bounds(file)
    return Bounds(filed.limits | parse_bounds(texts), filed.scale if scale is None else scale)


def _check_one_domain(known: Bounds, radius: float | None, from_data: bool, scale: bool | None) -> None:
    """Exactly one way to say where rows can lie."""
    ways = bool(known.limits) + (radius is not None) + from_data
    if ways == 0:
        raise DomainError(NO_BOUNDS)
    if ways > 1:
        raise ParameterError(TWO_DOMAINS)
    if scale and not known.limits:
        raise ParameterError("--scale measures columns by their bounds, but there are none; pass --bounds")


def _split(columns: str | None) -> list[str]:
    """The names in A,B,... without repetition."""
    names = [] if columns is None else columns.split(",")
    for name in names:
        if not name or names.count(name) > 1:
            raise ParameterError(
                f"--columns {columns!r} has an empty or repeated name; write for example age,bmi"
            )
    return names


def _estimator(method: Method) -> type[PrivateKMeans]:
    """The class that goes by this name."""
    from pemeans.estimators import DPKMeans, HDPEMeans, PEMeans

    return {Method.dpk: DPKMeans, Method.pe: PEMeans, Method.hdpe: HDPEMeans}[method]


def _show_centers(estimator: PrivateKMeans, console: Console) -> None:
    """One line on what was clustered, and the table of centers."""
    from pemeans.report.tables import centers_table

    centers = estimator.cluster_centers_
    names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(centers.shape[1])])
    rows, clusters = _counted(estimator.receipt_.n_rows, "row"), _counted(len(centers), "cluster")
    columns = _counted(centers.shape[1], "column")
    console.print(f"{type(estimator).__name__}: {rows} in {clusters}, by {columns}. Sizes are noisy.\n")
    console.print(centers_table(centers, estimator.cluster_sizes_, list(names)))
    console.print()


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _show_budget(estimator: PrivateKMeans, console: Console) -> None:
    """What the fit cost, and where its noise came from."""
    receipt = estimator.receipt_
    console.print(
        f"Privacy: spent epsilon {receipt.epsilon_spent:.6g} of {receipt.epsilon:g}, "
        f"at delta {receipt.delta:.3g}."
    )
    for remark in receipt.remarks()[2:]:
        console.print(remark)


app.add_typer(bench_app(spoken), name="bench")
app.add_typer(data_app(spoken), name="data")

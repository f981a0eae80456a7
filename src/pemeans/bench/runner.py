"""Running a suite: in parallel, a row at a time to disk, to be stopped and taken up again at will."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pemeans.bench.datasets import load, reachable, size_of
from pemeans.bench.forecast import Forecast, spoken
from pemeans.bench.runs import Outcome, Run, perform
from pemeans.bench.store import Store
from pemeans.bench.suites import Suite
from pemeans.errors import DataError, PemeansError

QUIET_SECONDS = 60.0
"""Where there is no terminal for a bar, a line is printed so often."""
REFRESH_SECONDS = 1.0


@dataclass(frozen=True)
class Summary:
    """What became of a suite's runs."""

    done: int
    before: int
    failed: tuple[Outcome, ...]
    missing: dict[str, str]

    @property
    def complete(self) -> bool:
        """Whether every run of the suite has a result now."""
        return not self.failed and not self.missing


def run_suite(suite: Suite, path: Path, repeats: int, jobs: int, console: Console) -> Summary:
    """Do what is still to be done of a suite.

    Runs are handed out by joblib: ``with joblib.parallel_config(backend=...)`` around this call lets Dask or
    Ray take over.

    Parameters
    ----------
    suite : Suite
        What to run.
    path : Path
        The results file, new or with results of earlier times.
    repeats : int
        Seeds for every setting.
    jobs : int
        Processes; -1 for one a core.
    console : rich.console.Console
        Where progress is shown.

    Raises
    ------
    DataError
        A worker process was killed from outside.
    """
    suite, missing = _with_data_at_hand(suite, console)
    with Store(path) as store:
        runs = list(suite.runs(repeats, size_of))
        finished = store.finished()
        forecast = Forecast(size_of)
        for run, seconds in store.seconds():
            forecast.learn(run, seconds)
        todo = in_order([run for run in runs if run not in finished], forecast)
        failed = []
        workers = cpu_count() if jobs < 0 else jobs
        show = _Show(suite.name, todo, len(runs), forecast, min(workers, max(len(todo), 1)), console)
        with show:
            for outcome in _outcomes(todo, jobs, suite.watched):
                store.add(suite.name, outcome)
                show.update(outcome)
                if outcome.error is not None:
                    failed.append(outcome)
    return Summary(len(todo) - len(failed), len(runs) - len(todo), tuple(failed), missing)


def in_order(runs: list[Run], forecast: Forecast) -> list[Run]:
    """One repeat of everything after the other, and within a repeat the long runs first.

    So a suite that is stopped early has some results for everything, and no long run is left alone at the
    end.
    """
    expected = {cell: forecast.seconds(cell) for cell in {run.cell for run in runs}}
    return sorted(runs, key=lambda run: (run.repeat, -expected[run.cell]))


def _outcomes(runs: list[Run], jobs: int, watched: bool) -> Iterator[Outcome]:
    """Outcomes as they are ready; one run a task, so that no finished run waits unsaved."""
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    try:
        yield from parallel(delayed(perform)(run, watched and run.repeat == 0) for run in runs)
    except TerminatedWorkerError:
        raise DataError(
            "a worker process was killed, most likely for want of memory; what is done is kept: give the "
            "same command with fewer --jobs to go on"
        ) from None


def _with_data_at_hand(suite: Suite, console: Console) -> tuple[Suite, dict[str, str]]:
    """The suite on those data sets that can be had; fetches what is not there yet, once for all workers."""
    missing = {}
    for name in suite.part.datasets:
        if reachable(name) == "generator":
            continue
        try:
            load(name)
        except PemeansError as error:
            missing[name] = str(error)
            console.print(f"Left out: {error}")
    there = tuple(name for name in suite.part.datasets if name not in missing)
    if not there:
        raise DataError("none of the suite's data sets can be had here; see above")
    return suite.limited(there, (), ()), missing


class _Show:
    """A bar with the time left on a terminal, a line now and then elsewhere."""

    def __init__(
        self, title: str, todo: list[Run], total: int, forecast: Forecast, workers: int, console: Console
    ) -> None:
        self._waiting = Counter(run.cell for run in todo)
        self._forecast, self._workers, self._console = forecast, workers, console
        self._title, self._total, self._done = title, total, total - len(todo)
        self._failed = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=self._done, left="")
        self._next = self._next_line = 0.0

    def __enter__(self) -> _Show:
        self._console.print(
            f"Suite {self._title}: {self._total:,} runs, {self._done:,} of them done before, "
            f"{self._workers} at a time."
        )
        self._next_line = monotonic() + QUIET_SECONDS
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, outcome: Outcome) -> None:
        """Count one more, and now and then say how long the rest will take."""
        run = outcome.run
        self._done += 1
        self._waiting[run.cell] -= 1
        if outcome.seconds is not None:
            self._forecast.learn(run, outcome.seconds)
        else:
            self._failed += 1
            self._console.print(
                f"Failed: {run.method} on {run.dataset} at epsilon {run.epsilon:g}, repeat {run.repeat}: "
                f"{outcome.error}"
            )
        now = monotonic()
        if now < self._next:
            return
        self._next = now + REFRESH_SECONDS
        left = f"about {spoken(self._forecast.left(self._waiting.items(), self._workers))} left"
        self._bar.update(self._task, completed=self._done, left=left)
        if not self._console.is_terminal and now >= self._next_line:
            self._next_line = now + QUIET_SECONDS
            self._console.print(f"{self._done:,} of {self._total:,} runs, {left}")

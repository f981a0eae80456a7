"""One run: a method on a data set with a budget and a seed, and what is measured of it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from time import process_time
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from pemeans.bench.datasets import prepared
from pemeans.bench.evaluate import label_accuracy, mean_loss, nearest_centers
from pemeans.bench.methods import METHODS
from pemeans.bench.watching import pack, watched
from pemeans.errors import PrivacyLeakWarning

SEED_BYTES = 4
"""scikit-learn's KMeans takes seeds below 2**32."""
PACKAGES = ("pemeans", "numpy", "scipy", "scikit-learn", "joblib")


@dataclass(frozen=True)
class Run:
    """What is run; ``parameters`` is JSON text with sorted keys."""

    dataset: str
    method: str
    parameters: str
    epsilon: float
    repeat: int

    @property
    def cell(self) -> tuple[str, str, str, float]:
        """All but the number of the repeat."""
        return self.dataset, self.method, self.parameters, self.epsilon

    @property
    def seed(self) -> int:
        """A seed of its own for every data set, method, epsilon and repeat; the same on every machine.

        Runs that differ in parameters only share their seed, so that these are compared on equal terms.
        """
        text = f"{self.dataset}|{self.method}|{self.epsilon!r}|{self.repeat}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=SEED_BYTES).digest(), "big")


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its figures, or the error that it ended with."""

    run: Run
    finished: str
    environment: str
    loss: float | None = None
    accuracy: float | None = None
    seconds: float | None = None
    peak_memory: int | None = None
    trace: bytes | None = None
    error: str | None = None


def canonical(parameters: Mapping[str, Any]) -> str:
    """Parameters as JSON text, the same text for the same parameters.

    Examples
    --------
    >>> canonical({"n_variations": 4, "n_iterations": 2})
    '{"n_iterations": 2, "n_variations": 4}'
    """
    return json.dumps(dict(parameters), sort_keys=True)


def perform(run: Run, watch: bool = False) -> Outcome:
    """Fit, then measure; an error is part of the outcome. A watched run keeps its populations."""
    environment = describe_environment()
    try:
        with _threads().limit(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            figures = _measure(run, watch)
        return Outcome(run, _now(), environment, **figures)
    except Exception as error:  # whatever it is, the other runs must go on
        return Outcome(run, _now(), environment, error=" ".join(f"{type(error).__name__}: {error}".split()))


def _measure(run: Run, watch: bool) -> dict[str, Any]:
    points = prepared(run.dataset)
    parameters = json.loads(run.parameters)
    estimator = METHODS[run.method].make(points, run.epsilon, run.seed, parameters)
    if watch:
        estimator = watched(estimator)
    reset_peak_memory()
    start = process_time()
    estimator.fit(points.X)
    seconds = process_time() - start
    peak = peak_memory()
    centers = estimator.cluster_centers_
    labels = nearest_centers(points.X, centers)
    return {
        "loss": mean_loss(points.X, centers, labels),
        "accuracy": None if points.y is None else label_accuracy(labels, points.y, len(centers)),
        "seconds": seconds,
        "peak_memory": peak,
        "trace": pack(estimator.scenes_) if watch else None,
    }


@cache
def _threads() -> ThreadpoolController:
    """The BLAS and OpenMP pools of this process, scikit-learn's among them."""
    import sklearn.cluster  # noqa: F401  # loads its OpenMP, which else would go unnoticed

    return ThreadpoolController()


@cache
def describe_environment() -> str:
    """Versions and machine as JSON text; without anything that names the machine."""
    return json.dumps(
        {
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in PACKAGES},
            "source": source_fingerprint(),
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
        sort_keys=True,
    )


def source_fingerprint() -> str:
    """A hash of the source of all that computes: results of different sources are told apart by it."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.c")]):
        if path.relative_to(root).parts[0] not in ("bench", "report", "cli.py"):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def reset_peak_memory() -> None:
    """Start measuring anew, where the system can (Linux); else the peak is of the process so far."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory() -> int:
    """Most bytes of memory in use by this process since the last reset."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The demo: a made-up clinic's patients, clustered with and without privacy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from pemeans.bounds import Bounds
from pemeans.estimators import DPKMeans
from pemeans.kernels.distances import squared_distances
from pemeans.kernels.grid import FloatArray, IntArray
from pemeans.report.tables import centers_table, show_receipt
from pemeans.rows.files import write_table

SEED = 20
"""Makes the same patients every time. The noise of the demo is not seeded."""
EPSILON = 1.0
FEATURES = ("age", "bmi", "systolic", "glucose")
UNITS = ("age in years", "body mass index in kg/m²", "systolic blood pressure in mmHg", "glucose in mg/dl")
DECIMALS = (0, 1, 0, 0)
BOUNDS = Bounds(
    {"age": (18.0, 100.0), "bmi": (12.0, 60.0), "systolic": (80.0, 220.0), "glucose": (50.0, 300.0)},
    scale=True,
)
"""What is known of any adult patient without looking at these."""
PAIRS = ((0, 2), (1, 3))
"""The features that are drawn against one another."""


@dataclass(frozen=True)
class Group:
    """One kind of patients: how many, and the mean and the standard deviation of each feature."""

    name: str
    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]


GROUPS = (
    Group("young and well", 1400, (29, 22.5, 114, 88), (6, 2, 8, 7)),
    Group("high blood pressure", 1100, (58, 27, 158, 98), (7, 2.5, 10, 9)),
    Group("diabetes", 900, (61, 33, 140, 185), (7, 3, 10, 20)),
    Group("obesity", 800, (41, 38.5, 132, 108), (7, 3, 9, 10)),
    Group("frail elders", 800, (84, 21.5, 132, 96), (5, 2, 11, 9)),
)


@dataclass(frozen=True, eq=False)
class Clinic:
    """Patients, and the number of the group that each was made from."""

    rows: FloatArray
    groups: IntArray

    def table(self) -> pa.Table:
        """The patients as a table, without their groups."""
        return pa.table(dict(zip(FEATURES, self.rows.T, strict=True)))


def clinic() -> Clinic:
    """5,000 patients who never lived, in natural units and in random order.

    Examples
    --------
    >>> clinic().rows.shape
    (5000, 4)
    """
    rng = np.random.default_rng(SEED)
    drawn = [rng.normal(g.mean, g.deviation, size=(g.size, len(FEATURES))) for g in GROUPS]
    lower, upper = np.transpose([BOUNDS.limits[name] for name in FEATURES])
    rows = np.clip(np.concatenate(drawn), lower, upper)
    rows = np.column_stack([column.round(n) for column, n in zip(rows.T, DECIMALS, strict=True)])
    groups = np.repeat(np.arange(len(GROUPS)), [g.size for g in GROUPS])
    order = rng.permutation(len(rows))
    return Clinic(rows[order], groups[order])


@dataclass(frozen=True, eq=False)
class Findings:
    """What clustering found with and without privacy, in the order of the true groups."""

    model: DPKMeans
    private: FloatArray
    sizes: IntArray
    exact: FloatArray
    private_loss: float
    exact_loss: float


def cluster(patients: Clinic) -> Findings:
    """Fit both; the loss is the mean squared distance to the nearest center, in half-widths of the bounds."""
    model = DPKMeans(len(GROUPS), epsilon=EPSILON, domain=BOUNDS.domain(FEATURES)).fit(patients.table())
    metric = model.domain_.measured
    kmeans = KMeans(len(GROUPS), n_init=10, random_state=0).fit(metric(patients.rows))
    truth = np.array([group.mean for group in GROUPS])
    private = _partners(metric(truth), metric(model.cluster_centers_))
    exact = _partners(metric(truth), kmeans.cluster_centers_)
    lower, upper = np.transpose([BOUNDS.limits[name] for name in FEATURES])
    return Findings(
        model=model,
        private=model.cluster_centers_[private],
        sizes=model.cluster_sizes_[private],
        exact=kmeans.cluster_centers_[exact] * (upper - lower) / 2,
        private_loss=-model.score(patients.table()) / len(patients.rows),
        exact_loss=float(kmeans.inertia_) / len(patients.rows),
    )


def _partners(truth: FloatArray, centers: FloatArray) -> IntArray:
    """The center that goes with each true group, so that all pairs together are closest."""
    return np.asarray(linear_sum_assignment(squared_distances(truth, centers))[1])


def run(folder: Path, console: Console) -> None:
    """Cluster the clinic, show what was found, and leave files in a folder.

    Raises
    ------
    OSError
        The folder can't be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    patients = clinic()
    found = cluster(patients)
    _show(found, console)
    found.model.save(folder / "model.json")
    write_table(patients.table(), folder / "clinic.csv")
    (folder / "bounds.toml").write_text(_bounds_file(), encoding="utf-8")
    names = ["model.json", "clinic.csv", "bounds.toml", *_draw(patients, found, folder, console)]
    console.print(f"Wrote to {folder}: {', '.join(names)}\n")
    console.print("Now try:", soft_wrap=True)
    console.print(f"  pemeans inspect {folder / 'model.json'}", soft_wrap=True)
    fit = f"  pemeans fit {folder / 'clinic.csv'} -k 5 --bounds-file {folder / 'bounds.toml'} --out mine.json"
    console.print(fit, soft_wrap=True)


def _show(found: Findings, console: Console) -> None:
    """The centers beside the truth, the price of privacy, and the receipt."""
    console.print(
        f"A made-up clinic: {sum(g.size for g in GROUPS):,} patients in {len(GROUPS)} groups, which the "
        "program is not told. No patient ever lived, so this demo may show rows, true groups and exact "
        "losses; of real data show the private centers and the receipt only.\n"
    )
    labels, centers, sizes = [], [], []
    for i, group in enumerate(GROUPS):
        labels += [group.name, "  found privately"]
        centers += [group.mean, found.private[i]]
        sizes += [group.size, found.sizes[i]]
    title = f"Centers found with epsilon {EPSILON:g}, below the true ones"
    console.print(centers_table(np.array(centers), np.array(sizes), FEATURES, labels, title))
    console.print(
        f"\nLoss {found.private_loss:.4f}, {found.private_loss / found.exact_loss:.3f} times that of "
        f"scikit-learn's KMeans without privacy ({found.exact_loss:.4f}).\n"
    )
    show_receipt(found.model.receipt_, console)
    console.print()


def _bounds_file() -> str:
    lines = [f"{name} = [{low:g}, {high:g}]" for name, (low, high) in BOUNDS.limits.items()]
    return "\n".join(["scale = true", "", "[bounds]", *lines, ""])


def _draw(patients: Clinic, found: Findings, folder: Path, console: Console) -> list[str]:
    """Pictures of the patients with both kinds of centers, if matplotlib is there."""
    try:
        from pemeans.report.pictures import Dots, scatter
    except ModuleNotFoundError:
        console.print("No pictures: matplotlib is missing; install it with: pip install matplotlib")
        return []
    names = []
    for pair in PAIRS:
        rows, private, exact = patients.rows[:, pair], found.private[:, pair], found.exact[:, pair]
        series = [
            Dots(group.name, rows[patients.groups == i], size=8, face=f"C{i}", alpha=0.4)
            for i, group in enumerate(GROUPS)
        ]
        series.append(Dots("centers without privacy", exact, 240, "none", "black"))
        series.append(Dots(f"private centers (epsilon {EPSILON:g})", private, 90, "black", "white"))
        names.append("-".join(FEATURES[i] for i in pair) + ".png")
        scatter(folder / names[-1], series, (UNITS[pair[0]], UNITS[pair[1]]))
    return names

"""Figures 1 to 7: the paper's studies, drawn from whatever results there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pemeans.bench.analysis import Estimate, Results
from pemeans.bench.datasets import prepared
from pemeans.bench.methods import ALL_METHODS, METHODS, NO_BUDGET, REFERENCE
from pemeans.bench.registry import REGISTRY
from pemeans.bench.runs import canonical
from pemeans.bench.style import LOOKS, canvas, curve, frame, legend, plain, save
from pemeans.bench.suites import EPSILONS, FAMILIES, LABELED, REAL, VOTE_SPLITTING
from pemeans.bench.tables import build, paper_table
from pemeans.bench.tuning import iterations_figure, variation_figure
from pemeans.bench.watching import Scene, unpack
from pemeans.kernels.grid import FloatArray

Draw = Callable[[Results], Figure | None]
SCALING_EPSILON = 1.0
NOTHING, FULL = -0.03, 1.03
"""Just beyond the least and the most accuracy that there is: bands may reach farther."""
CROWDED_OUT = ("BalcanKMeans",)
"""Left out of the plots of the scale family, as in the paper: an order of magnitude worse than the others."""


@dataclass(frozen=True)
class Plate:
    """A figure of the paper: file name, title, what it shows, the suite behind it, and how it is drawn."""

    name: str
    title: str
    caption: str
    suite: str
    draw: Draw


@dataclass(frozen=True)
class Drawn:
    """A plate on disk."""

    plate: Plate
    png: Path
    svg: Path


def draw_all(results: Results, folder: Path) -> tuple[list[Drawn], list[Plate]]:
    """Draw the plates for which there are results; also which there are none for."""
    drawn, without = [], []
    for plate in PLATES:
        figure = plate.draw(results)
        if figure is None:
            without.append(plate)
        else:
            drawn.append(Drawn(plate, *save(figure, folder, plate.name)))
    return drawn, without


def vote_splitting(results: Results) -> Figure | None:
    """A row of panels for each way to select, a column for each iteration."""
    filmed = [_scenes(results, canonical(parameters)) for parameters in VOTE_SPLITTING]
    if not all(filmed):
        return None
    rows = prepared("toy").X
    columns = min(map(len, filmed))
    figure, axes = canvas(2, columns, 2.6 * columns, 5.6, sharex=True, sharey=True)
    for line, (scenes, title) in enumerate(zip(filmed, ("top-k votes", "weighted k-means"), strict=True)):
        for column in range(columns):
            _scene(axes[line][column], rows, scenes[column])
            if line == 0:
                axes[line][column].set_title(f"iteration {column + 1}", fontsize=10)
        axes[line][0].set_ylabel(f"selection by {title}\nsecond column, normalized")
    for column in range(columns):
        axes[1][column].set_xlabel("first column, normalized")
    legend(figure, [axes[0][0]])
    return figure


def _scenes(results: Results, parameters: str) -> list[Scene]:
    outcomes = results.outcomes("toy", "PEMeans", NO_BUDGET, parameters)
    traces = [outcome.trace for _, outcome in sorted(outcomes.items()) if outcome.trace]
    return unpack(traces[0]) if traces else []


def _scene(axes: Axes, rows: FloatArray, scene: Scene) -> None:
    """Rows in gray, candidates in blue, the selected ones in orange."""
    axes.scatter(rows[:, 0], rows[:, 1], s=10, c="#BBBBBB", linewidths=0, label="private rows")
    axes.scatter(
        scene.population[:, 0],
        scene.population[:, 1],
        s=9,
        c="#0072B2",
        alpha=0.6,
        linewidths=0,
        label="population",
    )
    axes.scatter(
        scene.selected[:, 0],
        scene.selected[:, 1],
        s=70,
        c="#D55E00",
        marker="X",
        edgecolors="white",
        label="selected",
    )
    axes.set_aspect("equal")
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(-1.05, 1.05)


def areas(results: Results) -> Figure | None:
    """Table 1 at a glance: every method's area over the non-private one, a line a data set."""
    table = build(results)
    rows = [row for row in table.rows if row.cells[REFERENCE].ours is not None]
    if not rows:
        return None
    figure, ((axes,),) = canvas(1, 1, 8.2, 1.6 + 0.26 * len(rows))
    paper = paper_table()
    for method in (m for m in table.methods if m.private):
        look = LOOKS[method.name]
        heights, ratios, errors, old_heights, old = [], [], [], [], []
        for height, row in enumerate(rows):
            base = row.cells[REFERENCE].ours
            cell = row.cells[method.name]
            if cell.ours and base:
                heights.append(height)
                ratios.append(cell.ours.mean / base.mean)
                errors.append(0.0 if isnan(cell.ours.half) else cell.ours.half / base.mean)
            if cell.paper is not None and paper[row.dataset]["nonprivate"] > 0:
                old_heights.append(height)
                old.append(cell.paper / paper[row.dataset]["nonprivate"])
        axes.scatter(
            old,
            old_heights,
            s=26,
            marker=look.marker,
            facecolors="none",
            edgecolors=look.color,
            linewidths=0.5,
            alpha=0.55,
        )
        axes.errorbar(
            ratios,
            heights,
            xerr=errors,
            fmt=look.marker,
            color=look.color,
            markersize=look.size,
            elinewidth=1,
            label=method.label,
        )
    axes.axvline(1.0, color="black", linestyle="--", linewidth=1, label="Non-private")
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set_yticks(range(len(rows)), [row.dataset for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("area under the loss curve, as a multiple of the non-private one (log scale)")
    legend(figure, [axes])
    return figure


def tradeoff(results: Results) -> Figure | None:
    """Loss against epsilon, a panel a real data set."""
    return _against_epsilon(results, REAL, 3, "loss", log=True)


def labels(results: Results) -> Figure | None:
    """Label accuracy against epsilon, a panel a labeled data set."""
    return _against_epsilon(results, LABELED, 4, "accuracy", log=False)


def _against_epsilon(
    results: Results, datasets: tuple[str, ...], columns: int, measure: str, log: bool
) -> Figure | None:
    """Panels of a measure against epsilon for those data sets that have any."""
    there = [name for name in datasets if _curves(results, name, measure)]
    if not there:
        return None
    columns = min(columns, len(there))
    lines = -(-len(there) // columns)
    figure, grid = canvas(lines, columns, 1.0 + 2.9 * columns, 1.0 + 2.4 * lines)
    flat = [axes for line in grid for axes in line]
    for axes, name in zip(flat, there, strict=False):
        for method, found in _curves(results, name, measure).items():
            epsilons = [epsilon for epsilon, point in zip(EPSILONS, found, strict=True) if point.repeats]
            curve(axes, method, epsilons, [point for point in found if point.repeats])
        axes.set_title(name, fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        if log:
            axes.set_yscale("log")
            plain(axes.yaxis)
            frame(axes)
        else:
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, NOTHING), min(high, FULL))
    for axes in flat[len(there) :]:
        axes.set_visible(False)
    for line in grid:
        line[0].set_ylabel("loss (log scale)" if log else "label accuracy")
    for i, axes in enumerate(flat[: len(there)]):
        if i + columns >= len(there):
            axes.set_xlabel("epsilon (log scale)")
    legend(figure, flat[: len(there)])
    return figure


def _curves(results: Results, dataset: str, measure: str) -> dict[str, list[Estimate]]:
    """Each method's measure at the five budgets, of methods that have any."""
    read = results.loss if measure == "loss" else results.accuracy
    curves = {
        method.name: [read(dataset, method.name, epsilon) for epsilon in EPSILONS] for method in ALL_METHODS
    }
    return {name: found for name, found in curves.items() if any(point.repeats for point in found)}


def scaling(results: Results) -> Figure | None:
    """Loss against k at epsilon 1, a panel for each family and dimension."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name in FAMILIES:
        entry = REGISTRY[name]
        if any(results.loss(name, m, SCALING_EPSILON).repeats for m in METHODS if m != REFERENCE):
            groups.setdefault((entry.family, entry.d), []).append(name)
    if not groups:
        return None
    families = list(dict.fromkeys(family for family, _ in groups))
    dimensions = sorted({d for _, d in groups})
    figure, grid = canvas(
        len(families), len(dimensions), 1.0 + 2.5 * len(dimensions), 1.0 + 2.5 * len(families)
    )
    for line, family in enumerate(families):
        for column, d in enumerate(dimensions):
            axes, names = grid[line][column], groups.get((family, d), [])
            _against_clusters(axes, results, names, CROWDED_OUT if family == "scale" else ())
            axes.set_title(f"{family}, d = {d}", fontsize=10)
            axes.set_visible(bool(names))
        grid[line][0].set_ylabel("loss (log scale)")
    for axes in grid[-1]:
        axes.set_xlabel("clusters k (log scale)")
    legend(figure, [axes for line in grid for axes in line])
    return figure


def _against_clusters(axes: Axes, results: Results, names: list[str], hidden: tuple[str, ...]) -> None:
    names = sorted(names, key=lambda name: REGISTRY[name].k)
    for method in METHODS:
        found = [(REGISTRY[name].k, results.loss(name, method, SCALING_EPSILON)) for name in names]
        seen = [(float(k), point) for k, point in found if point.repeats]
        if seen and method not in hidden:
            curve(axes, method, [k for k, _ in seen], [point for _, point in seen])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    if axes.lines:
        plain(axes.yaxis)
        frame(axes)
    ticks = [REGISTRY[name].k for name in names]
    axes.set_xticks(ticks, map(str, ticks))


PLATES = (
    Plate(
        "figure1-vote-splitting",
        "Figure 1. Vote splitting",
        "Four iterations of PE-means on 200 rows in four clusters, without noise (epsilon infinite), T = "
        "4, gamma = 0.05. Selecting the candidates with the most votes loses whole clusters once several "
        "candidates share their votes; weighted k-means of the population keeps all four.",
        "vote-splitting",
        vote_splitting,
    ),
    Plate(
        "figure2-iterations",
        "Figure 2. Numbers of iterations T and of variations L",
        "At epsilon 1. Left and middle: the three best settings of each data set against its number of "
        "dimensions d and of rows n, with a LOWESS line (orange) and the paper's rule (black, dashed). "
        "Right: the loss of the rule against that of the best setting; the line is y = x. The best setting "
        "is chosen and judged on the same runs, which favors it.",
        "tune-iterations",
        iterations_figure,
    ),
    Plate(
        "figure3-variation",
        "Figure 3. The variation's scale gamma and Levy index beta",
        "At epsilon 1. Left: mean increase of the loss over each data set's best setting, in percent; the "
        "default is framed. Right: the loss of the default against that of the best setting; the line is y "
        "= x.",
        "tune-variation",
        variation_figure,
    ),
    Plate(
        "figure4-areas",
        "Figure 4. Table 1 at a glance",
        "Each method's area under the loss curve over epsilon, as a multiple of non-private k-means' "
        "(dashed line). Bars: 95 % confidence intervals of the mean. Hollow: the paper's figures over the "
        "paper's non-private.",
        "table1",
        areas,
    ),
    Plate(
        "figure5-tradeoff",
        "Figure 5. Privacy against loss on the real data sets",
        "Mean squared distance to the nearest center; bands: 95 % confidence intervals of the mean.",
        "tradeoff",
        tradeoff,
    ),
    Plate(
        "figure6-labels",
        "Figure 6. Label accuracy",
        "Each center takes the majority label of its rows; the share of rows that are labeled right so. "
        "Bands: 95 % confidence intervals of the mean.",
        "labels",
        labels,
    ),
    Plate(
        "figure7-scaling",
        "Figure 7. Loss against the number of clusters",
        "At epsilon 1, on the two synthetic families. Balcan et al. is left out of the scale family, as in "
        "the paper. Bands: 95 % confidence intervals of the mean.",
        "scaling",
        scaling,
    ),
)

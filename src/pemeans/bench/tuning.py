"""Figures 2 and 3: how good the default settings are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pemeans.bench.analysis import DEFAULTS, Results
from pemeans.bench.registry import REGISTRY
from pemeans.bench.smoothing import lowess
from pemeans.bench.style import LOOKS, canvas, plain
from pemeans.bench.suites import (
    DEFAULT_INDEX,
    DEFAULT_SCALE,
    ITERATIONS,
    LEVY_INDICES,
    SCALES,
    SUITES,
    VARIATIONS,
    Suite,
)
from pemeans.kernels.grid import FloatArray

METHOD, EPSILON = "PEMeans", 1.0
BEST = 3
"""So many of the best settings of each data set are drawn."""
ORANGE = "#D55E00"
HEADROOM = 4.0
"""Room for the legend above the largest value."""
DARK = 0.45
"""Colors of the heat map from here on need white letters."""


@dataclass(frozen=True)
class Grid:
    """Mean losses of a data set's settings, over the repeats that all of them share."""

    dataset: str
    losses: dict[str, float]

    @property
    def default(self) -> float:
        return self.losses[DEFAULTS]

    @property
    def best(self) -> float:
        return min(self.losses.values())


def grids(results: Results, suite: Suite) -> list[Grid]:
    """The suite's grids, of data sets on which all of it has run: the best of half a grid means nothing."""
    found = []
    for dataset in (name for name in results.datasets if name in REGISTRY):
        entry = REGISTRY[dataset]
        settings = suite.part.settings((entry.n, entry.d, entry.k))
        if set(settings) <= set(results.settings(dataset, METHOD, EPSILON)):
            found.append(_grid(results, dataset, settings))
    return [grid for grid in found if grid.losses]


def _grid(results: Results, dataset: str, settings: list[str]) -> Grid:
    outcomes = {text: results.outcomes(dataset, METHOD, EPSILON, text) for text in settings}
    shared = set.intersection(*(set(found) for found in outcomes.values()))
    if not shared:
        return Grid(dataset, {})
    return Grid(
        dataset, {text: float(np.mean([found[r].loss for r in shared])) for text, found in outcomes.items()}
    )


def iterations_figure(results: Results) -> Figure | None:
    """The best T and L against d and n, and the default against the best."""
    found = grids(results, SUITES["tune-iterations"])
    if not found:
        return None
    figure, axes = canvas(2, 3, 11.0, 6.6, width_ratios=(1, 1, 1.25))
    d, n, t, v = _best_settings(found)
    for line, (best, title, tried) in enumerate(
        ((v, "variations L", VARIATIONS), (t, "iterations T", ITERATIONS))
    ):
        _cloud(axes[line][0], d, best, "dimensions d", title)
        _cloud(axes[line][1], n, best, "rows n", title)
        axes[line][0].set_xscale("log", base=2)
        for panel in axes[line][:2]:
            panel.set_yticks(tried, map(str, tried))
            panel.set_ylim(tried[0] / 1.5, tried[-1] * HEADROOM)
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.xaxis.set_minor_formatter("")
    xs = np.geomspace(d.min(), d.max(), 50)
    axes[1][0].plot(xs, 4 * np.sqrt(xs), "k--", linewidth=1, label="T = 4 sqrt(d)")
    rows = sorted(found, key=lambda grid: REGISTRY[grid.dataset].n)
    sizes = [(REGISTRY[g.dataset].n, REGISTRY[g.dataset].k) for g in rows]
    axes[0][1].plot(
        [n for n, _ in sizes],
        [max(n // (5 * k), 4) for n, k in sizes],
        "k_",
        markersize=9,
        label="L = n / 5k",
    )
    for panel in (axes[0][1], axes[1][0]):
        panel.legend(frameon=False, loc="upper left")
    big = axes[0][2]
    axes[1][2].remove()
    big.set_subplotspec(big.get_gridspec()[:, 2])  # type: ignore[index]
    _default_against_best(big, found, "the paper's rule")
    return figure


def _best_settings(found: list[Grid]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """d, n, T and L of the best settings; the default rule's own is spelled out."""
    points = []
    for grid in found:
        entry = REGISTRY[grid.dataset]
        rule = {"n_iterations": int(4 * sqrt(entry.d)), "n_variations": max(entry.n // (5 * entry.k), 4)}
        for text in sorted(grid.losses, key=lambda text: grid.losses[text])[:BEST]:
            setting: dict[str, Any] = json.loads(text) or rule
            points.append((entry.d, entry.n, setting["n_iterations"], setting["n_variations"]))
    d, n, t, v = np.array(points, dtype=np.float64).T
    return d, n, t, v


def _cloud(axes: Axes, x: FloatArray, y: FloatArray, x_title: str, y_title: str) -> None:
    """Points, a little shaken so that equal ones show, and a LOWESS line; both axes logarithmic."""
    shake = np.random.default_rng(0).uniform(0.94, 1.06, size=(2, len(x)))
    axes.scatter(x * shake[0], y * shake[1], s=16, color=LOOKS[METHOD].color, alpha=0.55, linewidths=0)
    order = np.argsort(x, kind="stable")
    smooth = np.exp2(lowess(np.log2(x[order]), np.log2(y[order])))
    axes.plot(x[order], smooth, color=ORANGE, label="LOWESS")
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.set_xlabel(f"{x_title} (log scale)")
    axes.set_ylabel(f"{y_title} (log scale)")


def _default_against_best(axes: Axes, found: list[Grid], name: str) -> None:
    """One point a data set, and the line y = x."""
    best, default = [grid.best for grid in found], [grid.default for grid in found]
    axes.scatter(best, default, s=24, color=LOOKS[METHOD].color, alpha=0.8, linewidths=0)
    ends = [min(best) * 0.8, max(default) * 1.25]
    axes.plot(ends, ends, color="black", linewidth=1, linestyle="--", label="y = x")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.xaxis)
    plain(axes.yaxis)
    axes.set_aspect("equal")
    axes.set_xlabel("loss of the best setting (log scale)")
    axes.set_ylabel(f"loss of {name} (log scale)")
    axes.legend(frameon=False, loc="upper left")
    ratio = float(np.exp(np.mean(np.log(np.array(default) / best))))
    axes.text(0.98, 0.03, f"geometric mean ratio {ratio:.3f}", transform=axes.transAxes, ha="right")


def variation_figure(results: Results) -> Figure | None:
    """The heat map over gamma and beta, and the default against the best."""
    found = grids(results, SUITES["tune-variation"])
    if not found:
        return None
    figure, ((left, right),) = canvas(1, 2, 10.0, 4.6)
    increase = np.array([[_increase(found, scale, index) for index in LEVY_INDICES] for scale in SCALES])
    image = left.imshow(increase, cmap="viridis_r", norm="log" if np.nanmin(increase) > 0 else None)
    shade: Any = image.norm
    left.grid(visible=False)
    left.set_xticks(range(len(LEVY_INDICES)), [f"{index:g}" for index in LEVY_INDICES])
    left.set_yticks(range(len(SCALES)), [f"{scale:g}" for scale in SCALES])
    left.set_xlabel("Levy index beta")
    left.set_ylabel("scale gamma")
    for i, j in np.ndindex(increase.shape):
        color = "white" if shade(increase[i, j]) > DARK else "black"
        left.text(j, i, f"{increase[i, j]:.1f}", ha="center", va="center", color=color)
    i, j = SCALES.index(DEFAULT_SCALE), LEVY_INDICES.index(DEFAULT_INDEX)
    left.add_patch(_frame(j, i))
    bar = figure.colorbar(image, ax=left, label="mean increase of the loss over the best, %", shrink=0.85)
    plain(bar.ax.yaxis)
    _default_against_best(right, found, "the default")
    return figure


def _increase(found: list[Grid], scale: float, index: float) -> float:
    """Mean increase over the best setting in percent, over all data sets that have this setting."""
    default = (scale, index) == (DEFAULT_SCALE, DEFAULT_INDEX)
    text = DEFAULTS if default else json.dumps({"levy_index": index, "variation_scale": scale})
    shares = [grid.losses[text] / grid.best - 1 for grid in found if text in grid.losses]
    return 100 * float(np.mean(shares)) if shares else float("nan")


def _frame(column: int, row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2.5)

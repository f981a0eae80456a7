"""How figures look: the same color and marker for a method everywhere, told apart also without color."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from PIL import Image

from pemeans.bench.analysis import Estimate
from pemeans.bench.methods import METHODS, REFERENCE

RESOLUTION = 150
MARGIN = 1.3
"""Room above the highest mean and below the lowest, as a factor."""
LEAST_FOR_BAND = 3
"""With two repeats an interval is some thirteen standard errors wide: it would hide the others' curves."""
LEGEND_INCHES = 1.7
"""Width of a column of the legend."""


@dataclass(frozen=True)
class Look:
    """Color, marker and line of a method."""

    color: str
    marker: str
    line: str = "-"
    size: float = 5


LOOKS: dict[str, Look] = {
    # M. Okabe and K. Ito's palette, which is told apart with all kinds of color vision.
    "NonPrivateKMeans": Look("#000000", "", "--"),
    "PEMeans": Look("#0072B2", "o"),
    "HDPEMeans": Look("#56B4E9", "s"),
    "DPKMeans": Look("#D55E00", "*", size=9),
    "LSHKMeans": Look("#009E73", "^"),
    "FastLloyd": Look("#CC79A7", "D"),
    "FastLloyd6": Look("#CC79A7", "d", ":"),
    "FastLloydPaper": Look("#CC79A7", "P", "--"),
    "DPLloyd": Look("#E69F00", "v"),
    "BalcanKMeans": Look("#7F7F7F", "X"),
}
SETTINGS: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.markersize": 5,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "pemeans",  # the same picture gives the same file
    "svg.fonttype": "none",
}


def canvas(
    rows: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of axes in the common style."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), dpi=RESOLUTION, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


class PlainNumbers(LogFormatter):
    """Numbers such as 0.05 beside a logarithmic axis, at as many ticks as there is room for."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def plain(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers."""
    axis.set_major_formatter(PlainNumbers())
    axis.set_minor_formatter(PlainNumbers())


def frame(axes: Axes) -> None:
    """Show all means; bands, which may reach far down on a logarithmic axis, are cut off there."""
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines])
    if axes.get_yscale() == "log":
        axes.set_ylim(heights.min() / MARGIN, heights.max() * MARGIN)


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and SVG."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with mpl.rc_context(SETTINGS):
        figure.savefig(png)
        # 256 colors show the same at a third of the size.
        Image.open(png).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(png, optimize=True)
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def curve(axes: Axes, method: str, x: list[float], found: list[Estimate]) -> None:
    """A method's means, with the confidence interval as a band where there are repeats enough."""
    look = LOOKS[method]
    means = [point.mean for point in found]
    axes.plot(
        x,
        means,
        color=look.color,
        marker=look.marker or None,
        markersize=look.size,
        linestyle=look.line,
        label=METHODS[method].label,
    )
    halves = [p.half if p.repeats >= LEAST_FOR_BAND else nan for p in found]
    low, high = ([p.mean + sign * half for p, half in zip(found, halves, strict=True)] for sign in (-1, 1))
    axes.fill_between(x, low, high, color=look.color, alpha=0.18, linewidth=0)


def legend(figure: Figure, axes: list[Axes], columns: int = 5) -> None:
    """One legend for all axes, above them, in the order of the methods."""
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    order = [method.label for method in METHODS.values()]
    labels = sorted(handles, key=lambda label: order.index(label) if label in order else len(order))
    figure.legend(
        [handles[label] for label in labels],
        labels,
        loc="outside upper center",
        ncols=min(columns, max(len(labels), 1), max(int(figure.get_figwidth() / LEGEND_INCHES), 1)),
        frameon=False,
    )


def reference_first(methods: list[str]) -> list[str]:
    """Methods in the common order, the reference drawn first and so below the others."""
    return sorted(methods, key=lambda name: (name != REFERENCE, list(METHODS).index(name)))

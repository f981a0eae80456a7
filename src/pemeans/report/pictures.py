"""Pictures of clusterings, for data that may be shown; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from pemeans.kernels.grid import FloatArray

LEGEND_COLUMNS = 3


@dataclass(frozen=True, eq=False)
class Dots:
    """Points that look alike: their name in the legend, and colors as matplotlib knows them."""

    name: str
    points: FloatArray
    size: float
    face: str
    edge: str = "none"
    alpha: float = 1.0


def scatter(path: Path, series: Sequence[Dots], axes: tuple[str, str]) -> None:
    """Write a PNG of points in two dimensions, later series on top of earlier ones.

    Parameters
    ----------
    path : Path
        Where the PNG goes.
    series : sequence of Dots
        Points that may be shown to whoever sees the picture.
    axes : (str, str)
        What the two features are called.
    """
    figure = Figure(figsize=(7, 5.5), dpi=150, layout="constrained")
    canvas = figure.subplots()
    for dots in series:
        canvas.scatter(
            dots.points[:, 0],
            dots.points[:, 1],
            s=dots.size,
            facecolors=dots.face,
            edgecolors=dots.edge,
            linewidths=1.5,
            alpha=dots.alpha,
            label=dots.name,
        )
    canvas.set_xlabel(axes[0])
    canvas.set_ylabel(axes[1])
    canvas.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=LEGEND_COLUMNS, frameon=False)
    figure.savefig(path)

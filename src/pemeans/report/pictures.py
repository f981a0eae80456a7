"""Pictures of clusterings, for data that may be shown; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from pemeans.kernels.grid import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Marks:
    """Some points that stand out from the rows: a name for the legend and a marker."""

    name: str
    points: FloatArray
    marker: str
    size: float
    color: str


def scatter(
    path: Path, rows: FloatArray, groups: IntArray, axes: tuple[str, str], marks: Sequence[Marks]
) -> None:
    """Write a picture of rows in two dimensions, tinted by group, with marks on top.

    Parameters
    ----------
    path : Path
        Where the PNG goes.
    rows : array of shape (n, 2)
        Rows that may be shown to whoever sees the picture.
    groups : array of shape (n,)
        The number of each row's group.
    axes : (str, str)
        What the two features are called.
    marks : sequence of Marks
        Points in the same units.
    """
    figure = Figure(figsize=(7, 5), dpi=150, layout="constrained")
    canvas = figure.subplots()
    canvas.scatter(
        rows[:, 0], rows[:, 1], c=groups, cmap="Set2", s=5, alpha=0.5, linewidths=0, rasterized=True
    )
    for mark in marks:
        canvas.scatter(
            mark.points[:, 0],
            mark.points[:, 1],
            marker=mark.marker,
            s=mark.size,
            c=mark.color,
            edgecolors="white",
            linewidths=1.2,
            label=mark.name,
        )
    canvas.set_xlabel(axes[0])
    canvas.set_ylabel(axes[1])
    canvas.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(marks), frameon=False)
    figure.savefig(path)

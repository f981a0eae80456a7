"""Tables for a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from pemeans.kernels.grid import FloatArray, IntArray
from pemeans.privacy.ledger import Receipt

WIDTH = 80
PADDING = 2
"""Blanks between two columns."""
LEAST_HEAD, MOST_HEAD = 8, 16
"""Letters of a column's name that stand in one line, in a full and in an empty table; the rest is folded."""


def plain_console() -> Console:
    """Standard output, where a column may be called [bold] and still shows so."""
    return Console(markup=False, emoji=False, highlight=False)


def centers_table(
    centers: FloatArray,
    sizes: IntArray,
    names: Sequence[str],
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Table:
    """A line for every cluster: its number or label, its noisy size, and as many features as fit."""
    first = ["cluster", *(labels or map(str, range(len(centers))))]
    second = ["size", *(f"{size:,}" for size in sizes)]
    table = _table(title)
    table.add_column(first[0], no_wrap=True)
    table.add_column(second[0], justify="right", no_wrap=True)
    room = WIDTH - sum(max(map(len, column)) + PADDING for column in (first, second))
    columns: list[list[str]] = []
    for name, values in zip(names, centers.T, strict=True):
        cells = _aligned(values.tolist())
        width = max(*map(len, cells), min(len(name), LEAST_HEAD))
        room -= width + PADDING
        if room < 0:
            table.caption = f"and {len(names) - len(columns):,} more features"
            break
        table.add_column(
            printable(name),
            justify="right",
            overflow="fold",
            min_width=width,
            max_width=max(width, MOST_HEAD),
        )
        columns.append(cells)
    for line in zip(first[1:], second[1:], *columns, strict=True):
        table.add_row(*line)
    return table


def show_receipt(receipt: Receipt, console: Console) -> None:
    """What was released, what it cost, and what the guarantee rests on."""
    head, *lines = receipt.table()
    table = _table(f"Privacy receipt: epsilon {receipt.epsilon:g} at delta {receipt.delta:.3g}")
    for name in head[:2]:
        table.add_column(name, overflow="fold")
    for name, *cells in list(zip(head, *lines, strict=True))[2:]:
        # A narrow terminal folds the words, and cuts no number off.
        table.add_column(name, justify="right", no_wrap=True, min_width=max(map(len, (name, *cells))))
    for line in lines:
        table.add_row(*map(printable, line))
    console.print(table)
    console.print()
    for remark in receipt.remarks():
        console.print(printable(remark))


def printable(text: str) -> str:
    """A name that can't move the cursor or break the line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _table(title: str | None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def _aligned(values: Sequence[float]) -> list[str]:
    """Numbers of one column, with as many decimals as its largest needs to show four digits."""
    largest = max(map(abs, values))
    magnitude = math.floor(math.log10(largest)) if largest else 0
    if not -4 <= magnitude <= 9:
        return [f"{value:.3e}" for value in values]
    return [f"{value:,.{max(0, 3 - magnitude)}f}" for value in values]

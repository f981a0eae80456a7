"""Draw docs/pemeans.png, the picture of the README: ``python docs/make_picture.py``.

The people are invented. The noise is seeded, so that everybody gets the same picture.
"""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from sklearn.cluster import KMeans

from pemeans import Domain, PEMeans, SeededNoiseWarning

Floats = npt.NDArray[np.float64]

PICTURE = Path(__file__).with_name("pemeans.png")
LOWER, UPPER = (0, 10), (100, 45)
DOMAIN = Domain.box(LOWER, UPPER, scale=True)
MEANS = np.array([[12, 17], [28, 24], [47, 31], [62, 24], [80, 29]])
SPREADS = np.array([[4, 1.6], [5, 2.2], [6, 2.6], [5, 2.0], [5, 2.4]])
K = len(MEANS)
FITS = 20
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# From Okabe and Ito's colors, which people of every color vision can tell apart; the shapes differ as well.
BLUE, ORANGE, GREEN, INK, PEOPLE = "#0072B2", "#D55E00", "#009E73", "#222222", "#B4BEC8"


def people(n: int) -> Floats:
    """Age and body mass index of so many invented people in five groups."""
    rng = np.random.default_rng(7)
    group = rng.integers(K, size=n)
    drawn: Floats = rng.normal(MEANS[group], SPREADS[group])
    return np.clip(drawn, LOWER, UPPER)


def private_fit(rows: Floats, epsilon: float, seed: int) -> PEMeans:
    """One private model with reproducible noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return PEMeans(K, epsilon=epsilon, domain=DOMAIN, random_state=seed).fit(rows)


def plain_fit(rows: Floats) -> tuple[Floats, float]:
    """Centers and loss of ordinary k-means, in the same metric."""
    half_widths = np.subtract(UPPER, LOWER) / 2
    fitted = KMeans(K, n_init=10, random_state=0).fit(rows / half_widths)
    return fitted.cluster_centers_ * half_widths, float(fitted.inertia_)


def losses(n: int) -> Floats:
    """The loss of every private fit at every budget, in multiples of ordinary k-means'."""
    rows = people(n)
    _, plain = plain_fit(rows)
    private = [[-private_fit(rows, budget, seed).score(rows) for seed in range(FITS)] for budget in BUDGETS]
    return np.array(private) / plain


def draw_people(axes: Axes) -> None:
    """Left: the rows, the ordinary centers, and the centers of all private fits at epsilon 1."""
    rows = people(5000)
    plain, _ = plain_fit(rows)
    fits = np.concatenate([private_fit(rows, 1.0, seed).cluster_centers_ for seed in range(FITS)])
    axes.scatter(
        rows[:, 0], rows[:, 1], s=5, color=PEOPLE, linewidths=0, alpha=0.6, label="5,000 invented people"
    )
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.8, "zorder": 3}
    axes.scatter(plain[:, 0], plain[:, 1], s=380, **ring, label="k-means, not private")
    diamond: dict[str, Any] = {"marker": "D", "color": ORANGE, "edgecolors": "white", "linewidths": 0.6}
    axes.scatter(fits[:, 0], fits[:, 1], s=36, **diamond, label=f"PEMeans at epsilon 1: {FITS} fits")
    axes.set(xlabel="age", ylabel="body mass index")
    axes.set(xlim=(LOWER[0], UPPER[0]), ylim=(LOWER[1], UPPER[1]))
    axes.set_title("Where the centers land", loc="left")
    axes.legend(loc="upper left", frameon=False, handletextpad=0.5, labelspacing=0.6)


def draw_prices(axes: Axes) -> None:
    """Right: what privacy costs, and that it costs less the more people there are."""
    for n, color, marker in ((300, BLUE, "o"), (1000, ORANGE, "D"), (5000, GREEN, "s")):
        low, middle, high = np.quantile(losses(n), [0.1, 0.5, 0.9], axis=1)
        axes.fill_between(BUDGETS, low, high, color=color, alpha=0.16, linewidth=0)
        line: dict[str, Any] = {"color": color, "marker": marker, "markersize": 5.5, "linewidth": 2}
        axes.plot(BUDGETS, middle, **line, label=f"{n:,} people")
    axes.axhline(1, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label="k-means, not private")
    axes.set(xscale="log", yscale="log", xlabel="epsilon (smaller is more private)")
    axes.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
    axes.set_yticks((1, 2, 5, 10), ("1 x", "2 x", "5 x", "10 x"))
    axes.minorticks_off()
    axes.set_title("What privacy costs: the loss beside that of k-means", loc="left")
    note = f"line: the median of {FITS} fits\nband: the middle 80 % of them"
    axes.legend(frameon=False, title=note, title_fontsize=9.5, alignment="left")


def main() -> None:
    """Draw both panels and keep the file small: 128 colors are plenty."""
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10.5, "axes.titlesize": 12})
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    draw_people(left)
    draw_prices(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=130)
    Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()

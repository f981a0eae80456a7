"""Draw docs/pemeans.png, the picture of the README: ``python docs/make_picture.py``.

The people are invented. Noise is seeded, so that everybody gets the same picture.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.cluster import KMeans

from pemeans import Domain, PEMeans, SeededNoiseWarning

Floats = npt.NDArray[np.float64]

PICTURE = Path(__file__).with_name("pemeans.png")
DOMAIN = Domain.box(lower=[0, 10], upper=[110, 60], scale=True)
MEANS = np.array([[12, 17], [28, 24], [47, 31], [62, 24], [80, 29]])
SPREADS = np.array([[4, 1.6], [5, 2.2], [6, 2.6], [5, 2.0], [5, 2.4]])
K = len(MEANS)
FITS = 20
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# Okabe and Ito's colors, which people of every color vision can tell apart; shapes differ as well.
BLUE, ORANGE, GREEN, INK, PEOPLE = "#0072B2", "#D55E00", "#009E73", "#222222", "#B9C2CB"


def people(n: int) -> Floats:
    """Age and body mass index of so many invented people in five groups."""
    rng = np.random.default_rng(7)
    group = rng.integers(K, size=n)
    drawn: Floats = rng.normal(MEANS[group], SPREADS[group])
    return np.clip(drawn, [0, 10], [110, 60])


def private_fit(rows: Floats, epsilon: float, seed: int) -> PEMeans:
    """One private model with reproducible noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return PEMeans(K, epsilon=epsilon, domain=DOMAIN, random_state=seed).fit(rows)


def plain_fit(rows: Floats) -> tuple[Floats, float]:
    """Centers and loss of ordinary k-means in the same units."""
    half = (np.array([110, 60]) - [0, 10]) / 2
    fitted = KMeans(K, n_init=10, random_state=0).fit(rows / half)
    return fitted.cluster_centers_ * half, float(fitted.inertia_)


def draw_people(axes: Axes) -> None:
    """Left: the rows, ordinary centers, and the centers of some private fits."""
    rows = people(5000)
    plain, _ = plain_fit(rows)
    fits = np.concatenate([private_fit(rows, 1.0, seed).cluster_centers_ for seed in range(FITS)])
    axes.scatter(*rows.T, s=5, color=PEOPLE, linewidths=0, alpha=0.55, label="5,000 invented people")
    axes.scatter(*plain.T, s=230, facecolors="none", edgecolors=INK, linewidths=1.8, label="k-means, not private")
    axes.scatter(
        *fits.T, s=34, marker="D", color=ORANGE, edgecolors="white", linewidths=0.6,
        label=f"PEMeans, epsilon 1, {FITS} fits",
    )
    axes.set(xlabel="age", ylabel="body mass index", xlim=(0, 100), ylim=(11, 42))
    axes.set_title("Private centers land where they should", loc="left")
    axes.legend(loc="upper left", frameon=False, handletextpad=0.5, labelspacing=0.7)


def draw_prices(axes: Axes) -> None:
    """Right: what privacy costs in loss, and that it costs less the more people there are."""
    for n, color, marker in ((300, BLUE, "o"), (1000, ORANGE, "D"), (5000, GREEN, "s")):
        rows = people(n)
        _, plain = plain_fit(rows)
        ratio = np.array(
            [[-private_fit(rows, epsilon, seed).score(rows) / plain for seed in range(FITS)] for epsilon in BUDGETS]
        )
        low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9], axis=1)
        axes.fill_between(BUDGETS, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(BUDGETS, middle, color=color, marker=marker, markersize=5.5, linewidth=2, label=f"{n:,} people")
    axes.axhline(1, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set(xscale="log", yscale="log", xlabel="epsilon (smaller is more private)", ylabel="loss, in multiples of k-means'")
    axes.set_title("What privacy costs", loc="left")
    axes.legend(frameon=False)


def main() -> None:
    """Draw both panels."""
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10.5, "axes.titlesize": 12.5})
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_people(left)
    draw_prices(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()

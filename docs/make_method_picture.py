"""Draw docs/method.png, the picture of the page on DPKMeans: ``python docs/make_method_picture.py``.

The rows are invented. The noise is seeded, so that everybody gets the same picture. All that is drawn but the
rows are answers that a fit released, and what follows from them.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from pemeans import Domain
from pemeans.evolution.recommended import dp_kmeans
from pemeans.evolution.select import keep_largest
from pemeans.kernels.grid import GRID_UNIT, Frame, to_float
from pemeans.privacy.bits import SeededBits
from pemeans.privacy.curator import Answer, Curator
from pemeans.privacy.ledger import Ledger
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import NearestVotes, ResidualSums, Statistic
from pemeans.rows.memory import MemoryRows

Floats = npt.NDArray[np.float64]

PICTURE = Path(__file__).with_name("method.png")
MEANS = np.array([[-0.21, 0.02], [-0.13, 0.15], [0.03, 0.17], [0.16, 0.05], [0.04, -0.1], [-0.12, -0.14]])
K, N, SPREAD = len(MEANS), 3000, 0.024
VIEW = 0.54
# From Okabe and Ito's colors, which people of every color vision can tell apart; the shapes differ as well.
BLUE, ORANGE, INK, ROWS = "#0072B2", "#D55E00", "#222222", "#B4BEC8"


class Witness(Curator):
    """A curator that keeps what it has released."""

    def remember(self) -> None:
        self.told: list[tuple[Statistic, Answer]] = []
        self.frames: list[Frame] = []

    def framed(self, frame: Frame) -> Curator:
        self.frames.append(frame)
        return super().framed(frame)

    def release(self, name: str, statistic: Statistic, share: float) -> Answer:
        answer = super().release(name, statistic, share)
        self.told.append((statistic, answer))
        return answer


def fitted() -> tuple[Floats, Witness, Floats]:
    """The rows, what was released of them, and the centers."""
    rng = np.random.default_rng(3)
    rows = MEANS[rng.integers(K, size=N)] + SPREAD * rng.standard_normal((N, 2))
    domain = Domain.ball(1.0).bind(*rows.shape)
    ledger = Ledger(1.0, N**-1.1)
    curator = Witness(
        MemoryRows(rows, domain, 1), domain, ledger, NoiseSampler(SeededBits(1), ledger.tail_bits)
    )
    curator.remember()
    found = dp_kmeans(curator, K, np.random.default_rng(1), lambda *_: None)
    return rows, curator, to_float(found.centers)


def draw_rows(axes: Axes, rows: Floats, title: str) -> None:
    """What nobody but the curator sees."""
    axes.scatter(rows[:, 0], rows[:, 1], s=3, color=ROWS, linewidths=0, alpha=0.7)
    axes.set(xlim=(-VIEW, VIEW), ylim=(-VIEW, VIEW), xticks=[], yticks=[], aspect="equal")
    axes.set_title(title, loc="left")


def draw_frame(axes: Axes, frame: Frame) -> None:
    """The ball in which all that follows happens."""
    middle = to_float(frame.center)
    axes.add_patch(Circle(tuple(middle), frame.radius / GRID_UNIT, fill=False, color=INK, lw=1.6))
    axes.plot(*middle, "+", color=INK, markersize=11, markeredgewidth=1.8)


def draw_votes(axes: Axes, frame: Frame, vote: NearestVotes, answer: Answer) -> None:
    """Candidates as dots; those that keep votes as circles as large as their votes."""
    assert vote.view is not None
    basis = vote.view.matrix / np.linalg.norm(vote.view.matrix, axis=1, keepdims=True)
    places = frame.to_domain(to_float(vote.candidates) @ basis)
    kept = keep_largest(answer.values, N)
    axes.scatter(places[:, 0], places[:, 1], s=2, color=INK, linewidths=0, alpha=0.35)
    voted, votes = places[kept > 0], kept[kept > 0]
    axes.scatter(voted[:, 0], voted[:, 1], s=1.2 * votes, color=BLUE, linewidths=0, alpha=0.55)


def draw_steps(axes: Axes, frame: Frame, steps: list[ResidualSums], centers: Floats) -> None:
    """Every center's way, with the radius at its beginning, and where it ends."""
    ways = np.array([frame.to_domain(to_float(step.centers)) for step in steps])
    for way, radius in zip(ways.transpose(1, 0, 2), steps[0].radii, strict=True):
        size = float(radius) / GRID_UNIT * frame.radius / GRID_UNIT
        axes.add_patch(Circle(tuple(way[0]), size, fill=False, color=BLUE, lw=1, ls=(0, (3, 2))))
        axes.plot(*way.T, color=BLUE, lw=1.2)
    axes.scatter(
        centers[:, 0],
        centers[:, 1],
        marker="D",
        s=34,
        color=ORANGE,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )


def main() -> None:
    """Four panels; 128 colors are plenty."""
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 10.5})
    rows, witness, centers = fitted()
    frame = witness.frames[0]
    votes = [(s, a) for s, a in witness.told if isinstance(s, NearestVotes)]
    steps = [s for s, _ in witness.told if isinstance(s, ResidualSums)][1:]  # the first is the mean
    figure = Figure(figsize=(12, 3.45), layout="constrained")
    panels = figure.subplots(1, 4)
    titles = (
        "1  a frame in a wide domain",
        "2  the first vote",
        "3  the last vote",
        "4  refinement",
    )
    for axes, title in zip(panels, titles, strict=True):
        draw_rows(axes, rows, title)
    draw_frame(panels[0], frame)
    draw_votes(panels[1], frame, *votes[0])
    draw_votes(panels[2], frame, *votes[-1])
    draw_steps(panels[3], frame, steps, centers)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110)
    Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()

"""The privacy budget: what was granted, what each release spent, what is left; printed as the receipt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from textwrap import fill
from typing import Any

from pemeans.errors import BudgetError, ParameterError
from pemeans.privacy.accounting import mu_of, sigma_for
from pemeans.privacy.composition import Event, PureEvent, composed_epsilon, mu_of_event, smallest_scale
from pemeans.privacy.noise import MAX_SCALE

DELTA_FOR_SAMPLING = 2.0**-20
"""The part of delta set aside for the sampler, whose tails are cut off far out."""
MOST_DRAWS_LOG2 = 50
"""No fit draws more than 2**50 numbers."""
TOLERANCE = 1e-9
"""Shares like 1/7 don't add up to 1 in floating point; what they overshoot is covered by `SLACK`."""
SLACK = 1 + 1e-9
"""Every sigma is this much larger than its share asks for."""
GAUSSIAN, LAPLACE, GEOMETRIC = "Gaussian", "Laplace", "geometric"
"""The laws of the noise; a release under one of the last two is epsilon-DP by itself."""
LINE_WIDTH = 80
"""Remarks under a printed receipt are wrapped here."""
NEIGHBORS = (
    "zeroing out one row (it casts no vote and adds nothing), the number of rows being public; "
    "equally adding or removing one row where the number of rows is public"
)


@dataclass(frozen=True)
class Release:
    """One answered question: `share` of the budget for `statistic` with noise `sigma`.

    The budget is the squared mu of Gaussian differential privacy, or epsilon where delta is 0. Under the laws
    of Laplace and the geometric law `sigma` is the scale of the noise, and `sensitivity` is in the L1 norm.
    """

    name: str
    statistic: str
    sensitivity: int
    sigma: float
    share: float
    law: str = GAUSSIAN


@dataclass(frozen=True)
class Receipt:
    """What was released and what it cost; holds nothing that is not public.

    ``print(receipt)`` shows a table, `to_json` every release by itself.
    """

    epsilon: float
    delta: float
    releases: tuple[Release, ...]
    n_rows: int
    domain: str
    seeded: bool
    notes: tuple[str, ...] = ()

    @property
    def epsilon_spent(self) -> float:
        """The epsilon that all releases together keep at `delta`; never above `epsilon`."""
        return _running_epsilon(self.releases, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """The receipt as plain JSON values, with the running epsilon after every release."""
        running = [_running_epsilon(self.releases[: i + 1], self.delta) for i in range(len(self.releases))]
        return {
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "epsilon_spent": _number(running[-1] if running else 0.0),
            "neighbors": NEIGHBORS,
            "public": {"n_rows": self.n_rows, "domain": self.domain},
            "seeded": self.seeded,
            "notes": list(self.notes),
            "releases": [
                asdict(release) | {"epsilon_so_far": _number(so_far)}
                for release, so_far in zip(self.releases, running, strict=True)
            ],
        }

    def to_json(self) -> str:
        """The receipt as a JSON document."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Receipt:
        """The receipt that `to_dict` wrote."""
        return cls(
            epsilon=float(document["epsilon"]),
            delta=float(document["delta"]),
            releases=tuple(
                Release(
                    str(r["name"]),
                    str(r["statistic"]),
                    int(r["sensitivity"]),
                    float(r["sigma"]),
                    float(r["share"]),
                    str(r["law"]),
                )
                for r in document["releases"]
            ),
            n_rows=int(document["public"]["n_rows"]),
            domain=str(document["public"]["domain"]),
            seeded=bool(document["seeded"]),
            notes=tuple(map(str, document["notes"])),
        )

    def table(self) -> list[tuple[str, ...]]:
        """Rows of text for a table: a header, then a line for every run of equal releases."""
        lines: list[tuple[str, ...]] = [
            ("release", "statistic", "sensitivity", "sigma", "share", "spent so far")
        ]
        done = 0
        for same in _runs(self.releases):
            done += len(same)
            first, share = same[0], math.fsum(release.share for release in same)
            name = first.name if len(same) == 1 else f"{first.name} x {len(same)}"
            so_far = _running_epsilon(self.releases[:done], self.delta)
            noise = f"{first.sigma:.6g}" if first.law == GAUSSIAN else f"b={first.sigma:.6g}"
            numbers = (str(first.sensitivity), noise, f"{share:.4f}", f"{so_far:.6g}")
            lines.append((name, first.statistic, *numbers))
        return lines

    def remarks(self) -> list[str]:
        """What the table leaves unsaid: neighbors, public facts, where the noise came from."""
        if not math.isfinite(self.epsilon):
            noise = "NONE: epsilon is infinite, so this result is not private at all"
        elif self.seeded:
            noise = "from a seed: the result is reproducible, and so NOT private to whoever knows the seed"
        else:
            laws = " and ".join(dict.fromkeys(release.law for release in self.releases)) or GAUSSIAN
            noise = f"exact discrete {laws}, from the operating system's randomness"
        return [
            f"Neighbors: {NEIGHBORS}.",
            f"Public: {self.n_rows} rows; {self.domain}.",
            f"Noise: {noise}.",
            *(f"Note: {note}." for note in self.notes),
        ]

    def __str__(self) -> str:
        head = (
            f"Privacy receipt: epsilon {self.epsilon:g} at delta {self.delta:.3g}; "
            f"spent epsilon {self.epsilon_spent:.6g}"
        )
        lines = self.table()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(r, widths)))  # noqa: B905
            for r in lines
        ]
        remarks = (fill(remark, LINE_WIDTH, subsequent_indent="  ") for remark in self.remarks())
        return "\n".join([head, "", *(row.rstrip() for row in rows), "", *remarks])


@dataclass
class Ledger:
    """A budget of Gaussian differential privacy, charged before anything is asked.

    With a delta of 0 it is one of pure differential privacy: then shares are parts of epsilon.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee that all releases together keep. ``epsilon=inf`` switches the noise off, for study.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0, delta=1e-5)
    >>> sigma = ledger.charge("votes", "NearestVotes", sensitivity=1, share=0.25)
    >>> round(sigma, 1), round(ledger.left, 2)
    (7.5, 0.75)
    >>> pure = Ledger(epsilon=1.0, delta=0.0)
    >>> round(pure.charge_pure("counts", "NearestVotes", sensitivity=1, share=0.25), 6)
    4.0
    """

    epsilon: float
    delta: float
    releases: list[Release] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Find the budget, less what the sampler's own error takes of delta."""
        if not self.epsilon > 0:
            raise ParameterError(f"epsilon={self.epsilon!r} is not positive; pass a privacy budget")
        if not math.isfinite(self.epsilon):
            self.mu = math.inf
        elif self.delta == 0:
            self.mu = 0.0
        else:
            self.mu = mu_of(self.epsilon, self._delta_for_noise)

    @property
    def left(self) -> float:
        """The share of the budget (of mu squared) that is not spent yet."""
        return 1.0 - math.fsum(release.share for release in self.releases)

    @property
    def _delta_for_noise(self) -> float:
        return self.delta * (1 - DELTA_FOR_SAMPLING)

    @property
    def tail_bits(self) -> int:
        """How deep into the tails the sampler must reach.

        Noise that errs by eta in total variation costs ``(1 + e^epsilon) eta`` of delta. So deep, 2**50 draws
        together cost less than the ``delta * 2**-20`` set aside, and err by less than 2**-50.
        """
        if self.delta == 0:
            return MOST_DRAWS_LOG2 + 58  # no Gaussian noise will be drawn
        growth = math.ceil(math.log2(math.e) * self.epsilon) + 1 if math.isfinite(self.epsilon) else 0
        return MOST_DRAWS_LOG2 + max(58, 20 + math.ceil(-math.log2(self.delta)) + growth)

    def charge(self, name: str, statistic: str, sensitivity: int, share: float) -> float:
        """Spend a share of the budget on one release, and say how much noise that takes.

        Returns
        -------
        float
            The parameter sigma of the discrete Gaussian noise for every number of the answer; 0 where
            epsilon is infinite.
        """
        self._check_share(name, share)
        _check_sensitivity(statistic, sensitivity)
        if self.mu == 0:
            raise BudgetError(f"delta=0 can't pay for the Gaussian noise of {name!r}; grant a delta above 0")
        sigma = SLACK * sigma_for(self.mu * math.sqrt(share) / sensitivity) if math.isfinite(self.mu) else 0.0
        release = Release(name, statistic, sensitivity, sigma, share)
        if any(made.law != GAUSSIAN for made in self.releases):  # their shares alone vouch for nothing
            self._check_epsilon(release)
        return self._record(release)

    def charge_pure(
        self, name: str, statistic: str, sensitivity: int, share: float, law: str = LAPLACE
    ) -> float:
        """Spend a share of epsilon on one release that is pure; needs a delta of 0.

        Returns
        -------
        float
            The scale of the noise, Laplace or geometric; 0 where epsilon is infinite.
        """
        self._check_share(name, share)
        _check_sensitivity(statistic, sensitivity)
        if self.delta > 0:
            raise BudgetError(
                f"delta={self.delta:g} is above 0, so {name!r} can't have a share of epsilon; "
                "grant a delta of 0, or charge for its noise"
            )
        # Once for shares that overshoot, once for the quotient that the receipt takes again.
        scale = SLACK * SLACK * sensitivity / share / self.epsilon
        return self._record(Release(name, statistic, sensitivity, scale, share, law))

    def charge_noise(
        self, name: str, statistic: str, sensitivity: int, multiplier: float, law: str = LAPLACE
    ) -> float:
        """Spend what noise of a given size costs: `multiplier` times the sensitivity.

        Refused if all releases together, accounted for exactly, would then cost more than epsilon. In the
        receipt such a release has the share of a Gaussian one of equal sensitivity and scale.

        Returns
        -------
        float
            Sigma, or the scale of the Laplace noise; 0 where epsilon is infinite.
        """
        if not math.isfinite(self.epsilon):
            return self._record(Release(name, statistic, sensitivity, 0.0, 0.0, law))
        if self.delta == 0:
            raise BudgetError(f"delta=0 makes {name!r} pure; charge for a share of epsilon, or grant a delta")
        _check_sensitivity(statistic, sensitivity)
        sigma = multiplier * sensitivity
        # Of a Gaussian release the whole cost, so that later shares can rely on what is left.
        mu = mu_of_event(Event(sigma, sensitivity)) if law == GAUSSIAN else 1 / multiplier
        release = Release(name, statistic, sensitivity, sigma, (mu / self.mu) ** 2, law)
        self._check_epsilon(release)
        return self._record(release)

    def smallest_multiplier(self, events: Callable[[float], Sequence[Event | PureEvent]]) -> float:
        """Return the smallest noise at which all of these events together cost no more than epsilon.

        Parameters
        ----------
        events : callable
            What the releases are at a noise of a given size; less private the smaller it is.
        """
        if not math.isfinite(self.epsilon):
            return 0.0
        return smallest_scale(events, self.epsilon, self._delta_for_noise)

    def _check_share(self, name: str, share: float) -> None:
        if not 0 < share <= self.left + TOLERANCE:
            raise BudgetError(
                f"share={share:g} for {name!r} does not fit into the {max(self.left, 0.0):.3g} of the budget "
                "that is left; ask for less, or grant a larger epsilon"
            )

    def _check_epsilon(self, release: Release) -> None:
        if not _running_epsilon([*self.releases, release], self.delta) <= self.epsilon:
            raise BudgetError(
                f"noise of scale {release.sigma:.6g} for {release.name!r} would cost more than the "
                f"epsilon={self.epsilon:g} that was granted; add more noise, or grant a larger epsilon"
            )

    def _record(self, release: Release) -> float:
        """Write the release down, if its noise can be drawn, and return that noise."""
        if release.sigma > MAX_SCALE:
            raise BudgetError(
                f"epsilon={self.epsilon:g} at delta={self.delta:g} would take noise of "
                f"sigma={release.sigma:.3g} for {release.name!r}, more than can be drawn; "
                "grant a larger epsilon or make fewer releases"
            )
        self.releases.append(release)
        return release.sigma


def _check_sensitivity(statistic: str, sensitivity: int) -> None:
    """Integers that a row can move at all move by 1 or more; without noise nothing is released."""
    if not sensitivity >= 1:
        raise ParameterError(f"sensitivity={sensitivity!r} of {statistic} is not a whole number from 1 up")


def _runs(releases: Sequence[Release]) -> Iterator[list[Release]]:
    """Consecutive releases that are equal."""
    return (list(same) for _, same in groupby(releases))


def _running_epsilon(releases: Sequence[Release], delta: float) -> float:
    """The epsilon of these releases together at `delta`."""
    if any(release.sigma == 0 for release in releases):
        return math.inf
    events = [_event(same[0], len(same)) for same in _runs(releases)]
    return composed_epsilon(events, delta * (1 - DELTA_FOR_SAMPLING)) if events else 0.0


def _event(release: Release, count: int) -> Event | PureEvent:
    """What so many releases like this one are to the accountant."""
    if release.law == GAUSSIAN:
        return Event(release.sigma, release.sensitivity, count)
    return PureEvent(release.sensitivity / release.sigma, count)


def _number(value: float) -> float | str:
    """A float that JSON can hold: infinity is written as text, and ``float`` reads it back."""
    return value if math.isfinite(value) else str(value)

"""The only door to the private rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from pemeans.domain import Domain
from pemeans.kernels.grid import Frame, IntArray
from pemeans.privacy.choice import noisy_minimum
from pemeans.privacy.composition import Event, PureEvent
from pemeans.privacy.ledger import GAUSSIAN, GEOMETRIC, LAPLACE, Ledger, Receipt
from pemeans.privacy.noise import NoiseSampler
from pemeans.privacy.statistics import Framed, Losses, PureStatistic, Statistic
from pemeans.rows.base import Question, Rows


@dataclass(frozen=True, eq=False)
class Answer:
    """A noisy answer, and the sigma of its noise; the scale, where that is of Laplace."""

    values: IntArray
    sigma: float


class Curator:
    """Ledger, rows and noise: charges first, then asks, and hands out noisy integers only.

    Parameters
    ----------
    rows : Rows
        The private rows.
    domain : Domain
        The public facts, bound to the data's public size.
    ledger : Ledger
        The budget.
    noise : NoiseSampler
        Where the noise comes from.
    """

    def __init__(self, rows: Rows, domain: Domain, ledger: Ledger, noise: NoiseSampler) -> None:
        self.__rows = rows
        self.__noise = noise
        self._ledger = ledger
        self._frame: Frame | None = None
        self.n_rows = domain.n_rows or 0
        self.n_features = domain.n_features

    @property
    def epsilon(self) -> float:
        """The epsilon that was granted."""
        return self._ledger.epsilon

    @property
    def mu(self) -> float:
        """The whole budget as a parameter of Gaussian differential privacy."""
        return self._ledger.mu

    def framed(self, frame: Frame) -> Curator:
        """The same curator with the same budget, looking at the rows in a frame."""
        view = copy(self)
        view._frame = frame
        return view

    def release(self, name: str, statistic: Statistic, share: float) -> Answer:
        """Answer one question with noise, for a share of the budget.

        Parameters
        ----------
        name : str
            What the answer is for; stands in the receipt.
        statistic : Statistic
            The question.
        share : float
            The part of the squared Gaussian-DP budget that it may cost; all shares together make at most 1.

        Examples
        --------
        >>> from pemeans.privacy.bits import SystemBits
        >>> from pemeans.privacy.noise import NoiseSampler
        >>> from pemeans.privacy.statistics import NearestVotes
        >>> from pemeans.rows.memory import MemoryRows
        >>> import numpy as np
        >>> domain = Domain.ball(1.0).bind(n_rows=3, n_features=1)
        >>> rows = MemoryRows(np.array([[0.1], [0.2], [0.9]]), domain)
        >>> curator = Curator(rows, domain, Ledger(np.inf, 0.01), NoiseSampler(SystemBits()))
        >>> curator.release("votes", NearestVotes(np.array([[0], [4000000]], dtype=np.int32)), 1.0).values
        array([2, 1])
        """
        # Charge first: an error after this line has still spent.
        sigma = self._ledger.charge(name, type(statistic).__name__, statistic.sensitivity, share)
        return self._with_gaussian(statistic, sigma)

    def release_pure(self, name: str, statistic: PureStatistic, share: float) -> Answer:
        """Answer one question with Laplace noise, for a share of epsilon; for a budget whose delta is 0.

        Discrete Laplace noise of scale ``s / e`` on integers that one row moves by at most s in the L1 norm
        is e-DP: no probability changes by more than a factor of ``exp(e)``.
        """
        scale = self._ledger.charge_pure(name, type(statistic).__name__, statistic.l1_sensitivity, share)
        return self._with_laplace(statistic, scale)

    def choose(self, name: str, losses: Losses, share: float) -> int:
        """The number of a choice with nearly the least loss, for a share of epsilon; the delta being 0."""
        scale = self._ledger.charge_pure(name, type(losses).__name__, losses.spread, share, GEOMETRIC)
        return noisy_minimum(self.__exact(losses), scale, self.__noise)

    def smallest_multiplier(self, events: Callable[[float], Sequence[Event | PureEvent]]) -> float:
        """The least noise at which the whole budget pays for these events; 0 where epsilon is infinite."""
        return self._ledger.smallest_multiplier(events)

    def release_gaussian(self, name: str, statistic: Statistic, multiplier: float) -> Answer:
        """Answer one question with Gaussian noise, so many times its sensitivity, if the budget pays it."""
        kind = type(statistic).__name__
        sigma = self._ledger.charge_noise(name, kind, statistic.sensitivity, multiplier, GAUSSIAN)
        return self._with_gaussian(statistic, sigma)

    def release_laplace(self, name: str, statistic: PureStatistic, multiplier: float) -> Answer:
        """Answer one question with Laplace noise, so many times its sensitivity, if the budget pays it."""
        kind = type(statistic).__name__
        scale = self._ledger.charge_noise(name, kind, statistic.l1_sensitivity, multiplier, LAPLACE)
        return self._with_laplace(statistic, scale)

    def _with_gaussian(self, statistic: Question, sigma: float) -> Answer:
        exact = self.__exact(statistic)
        if sigma == 0:
            return Answer(exact, sigma)
        return Answer(exact + self.__noise.gaussian(sigma, exact.size).reshape(exact.shape), sigma)

    def _with_laplace(self, statistic: Question, scale: float) -> Answer:
        exact = self.__exact(statistic)
        if scale == 0:
            return Answer(exact, scale)
        return Answer(exact + self.__noise.laplace(scale, exact.size).reshape(exact.shape), scale)

    def __exact(self, statistic: Question) -> IntArray:
        """The total without noise: it must not leave this class, its name is known only here."""
        return self.__rows.total(statistic if self._frame is None else Framed(statistic, self._frame))

    def receipt(self, domain: str, notes: tuple[str, ...] = ()) -> Receipt:
        """What was released so far and what it cost; `domain` describes the public domain in words."""
        return Receipt(
            epsilon=self._ledger.epsilon,
            delta=self._ledger.delta,
            releases=tuple(self._ledger.releases),
            n_rows=self.n_rows,
            domain=domain,
            seeded=self.__noise.seeded,
            notes=notes,
        )

    def __repr__(self) -> str:
        return f"<Curator of {self.n_features} features, {self._ledger.left:.3g} of the budget left>"

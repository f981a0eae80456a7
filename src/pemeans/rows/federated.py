"""Rows that several holders keep: each answers with its total, and only the sum of the totals is seen."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pemeans.domain import Domain
from pemeans.errors import ParameterError
from pemeans.kernels.grid import IntArray
from pemeans.rows.base import Question, Rows, open_source, refuse_to_read_domain

QUESTIONS = ("pemeans.privacy.", "pemeans.domain", "pemeans.kernels.grid")
"""Modules whose classes a question may be made of."""
ARRAYS = ("_frombuffer", "_reconstruct", "ndarray", "dtype")
"""What NumPy makes arrays with."""


class Holder:
    """One holder's rows, which stay with it.

    A total is exact: hand it to a secure sum, and to nobody who could see it alone.

    Parameters
    ----------
    data : Any
        Whatever `fit` takes. Bad rows are refused here, in the same words.
    n_jobs : int, optional
        Threads; None means all cores.
    """

    def __init__(self, data: Any, n_jobs: int | None = None) -> None:
        self._source, self._n_jobs = open_source(data, n_jobs), n_jobs
        self._held: tuple[Domain, Rows] | None = None
        self.n_rows, self.n_features, self.names = (
            self._source.n_rows,
            self._source.n_features,
            self._source.names,
        )

    def total(self, question: bytes) -> IntArray:
        """The exact total of a question, as int64; add it to those of the others modulo 2**64."""
        statistic, domain = _unpacked(question)
        if self._held is None or self._held[0] != domain:
            self._held = domain, self._source.rows(domain, self._n_jobs)
        return np.asarray(self._held[1].total(statistic), dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Federation:
    """What `fit` takes where the rows are with holders: the public facts, and a way to ask.

    Parameters
    ----------
    ask : callable
        Is given a question in bytes and returns the sum of what `Holder.total` says to it, over all holders.
    n_rows, n_features : int
        Of all holders together; both public.
    names : tuple of str, optional
        The columns' names, which all holders share.
    """

    ask: Callable[[bytes], IntArray]
    n_rows: int
    n_features: int
    names: tuple[str, ...] | None = None

    def rows(self, domain: Domain, n_jobs: int | None) -> FederatedRows:
        """The rows on the domain's grid, wherever they are."""
        return FederatedRows(self.ask, domain)

    def domain_of_rows(self) -> Domain:
        """Refused."""
        return refuse_to_read_domain()


@dataclass(frozen=True, eq=False, repr=False)
class FederatedRows:
    """The rows of all holders."""

    ask: Callable[[bytes], IntArray]
    domain: Domain

    def total(self, statistic: Question) -> IntArray:
        """The sum over all holders: the same integers as if the rows were in one place."""
        return np.asarray(self.ask(pickle.dumps((statistic, self.domain), protocol=5)))


class _Unpickler(pickle.Unpickler):
    """Reads questions and nothing else: who may ask for totals may not run what they like."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("numpy") and name in ARRAYS:
            return super().find_class(module, name)
        if module.startswith(QUESTIONS) and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError


def _unpacked(question: bytes) -> tuple[Question, Domain]:
    try:
        statistic, domain = _Unpickler(io.BytesIO(question)).load()
    except Exception:
        statistic, domain = None, None
    # Raised out here, where no other error is chained.
    if not (callable(statistic) and isinstance(domain, Domain)):
        raise ParameterError(
            "question is none that a pemeans of this version asks; use the same version everywhere"
        )
    return statistic, domain

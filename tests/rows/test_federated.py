"""Holders that keep their rows give the fit of the pooled rows, bit for bit; nobody sees a holder's total."""

from __future__ import annotations

import os
import pickle
from functools import reduce
from itertools import combinations
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_answer import METHODS, SECRET, D, N, as_array, as_frame, fitted, wanted

from pemeans import Domain, DPKMeans
from pemeans.errors import DataError, DomainError, ParameterError
from pemeans.kernels.grid import IntArray
from pemeans.privacy.statistics import NearestVotes
from pemeans.rows.federated import Federation, Holder

CUTS = [slice(0, 1), slice(1, 700), slice(700, N)]


def pooled(holders: list[Holder], named: bool) -> Federation:
    """All holders, added up in the clear."""
    names = holders[0].names if named else None
    return Federation(lambda question: reduce(add, (each.total(question) for each in holders)), N, D, names)


@pytest.mark.parametrize("method", METHODS)
def test_holders_give_the_fit_of_the_pooled_rows(method: str) -> None:
    holders = [Holder(as_array()[cut], n_jobs=1) for cut in CUTS]
    assert sum(holder.n_rows for holder in holders) == N
    assert fitted(method, pooled(holders, named=False)) == wanted(method, named=False)


def test_holders_may_keep_their_rows_in_different_ways(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(as_frame())
    pq.write_table(table.slice(700), tmp_path / "rows.parquet")
    holders = [Holder(as_frame()[:1]), Holder(table.slice(1, 699)), Holder(tmp_path)]
    assert fitted("DPKMeans", pooled(holders, named=True)) == wanted("DPKMeans", named=True)


def masks_that_cancel(shape: tuple[int, ...], round_number: int) -> list[npt.NDArray[np.uint64]]:
    """A mask for each holder: of every pair one adds a number that the two share, the other subtracts it."""
    masks = [np.zeros(shape, dtype=np.uint64) for _ in CUTS]
    for one, other in combinations(range(len(CUTS)), 2):
        shared = np.random.default_rng([one, other, round_number]).integers(
            2**64, size=shape, dtype=np.uint64
        )
        masks[one] += shared
        masks[other] -= shared
    return masks


def test_masked_totals_add_up_modulo_two_to_the_64() -> None:
    """What the driver is sent looks like noise; the sum is exact, also where totals are negative."""
    holders = [Holder(as_array()[cut], n_jobs=1) for cut in CUTS]
    rounds: list[list[npt.NDArray[np.uint64]]] = []
    plain: list[IntArray] = []

    def ask(question: bytes) -> IntArray:
        totals = [holder.total(question) for holder in holders]
        masks = masks_that_cancel(totals[0].shape, len(rounds))
        rounds.append([total.view(np.uint64) + mask for total, mask in zip(totals, masks, strict=True)])
        plain.extend(totals)
        return reduce(add, rounds[-1]).view(np.int64)

    assert fitted("DPKMeans", Federation(ask, N, D)) == wanted("DPKMeans", named=False)
    assert min(total.min() for total in plain) < 0
    sent = np.concatenate([masked.ravel() for each in rounds for masked in each])
    # Uniform bits: half are ones, within 5 standard deviations (false alarms: 6e-7; the seeds are fixed).
    ones = np.unpackbits(sent.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * len(sent))


def test_bad_rows_are_refused_where_they_are() -> None:
    with pytest.raises(DataError, match="column 0") as caught:
        Holder([[np.nan], [SECRET]])
    assert str(SECRET) not in str(caught.value)
    with pytest.raises(DomainError, match="in memory"):
        DPKMeans(3, domain="from-data").fit(Federation(lambda _: np.zeros(1, int), N, D))


class Evil:
    """Makes whoever reads it run a function."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __reduce__(self) -> Any:
        return self._function, ("touched",)


def by_a_dotted_name() -> bytes:
    """The module is allowed, and the name leads out of it."""
    return b"\x80\x04\x8c\x15pemeans.privacy.noise\x8c\x08os.mkdir\x93\x8c\x07touched\x85R."


@pytest.mark.parametrize(
    "question",
    [
        b"",
        pickle.dumps("votes"),
        pickle.dumps((Evil(os.mkdir), 1)),
        by_a_dotted_name(),
        pickle.dumps((NearestVotes(np.zeros((1, 1), np.int32)), "no domain")),
    ],
)
def test_a_question_runs_nothing(question: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="question"):
        Holder([[0.5]]).total(question)
    assert not list(tmp_path.iterdir())


def test_a_holder_answers_with_int64() -> None:
    question = pickle.dumps((NearestVotes(np.zeros((2, 1), np.int32)), Domain.ball(1.0).bind(3, 1)))
    total = Holder([[0.5], [0.1], [0.2]]).total(question)
    assert total.dtype == np.int64
    assert total.tolist() == [3, 0]

"""The budget is never overspent, and the receipt says the truth about it."""

from __future__ import annotations

import contextlib
import json
import math
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pemeans.errors import BudgetError, ParameterError
from pemeans.kernels.grid import GRID_UNIT
from pemeans.privacy.composition import Event, composed_epsilon, mu_of_event
from pemeans.privacy.ledger import GAUSSIAN, LAPLACE, NEIGHBORS, Ledger, Receipt, Release
from pemeans.privacy.noise import MAX_SCALE

EPSILONS = (1e-3, 0.01, 0.25, 1.0, 4.0, 20.0, 100.0)
DELTAS = (1e-9, 1e-3, 1e-300)


def spent(epsilon: float, delta: float, releases: int, sensitivity: int = 1) -> Ledger:
    ledger = Ledger(epsilon, delta)
    for _ in range(releases):
        ledger.charge("votes", "NearestVotes", sensitivity, 1 / releases)
    return ledger


def receipt(ledger: Ledger, *, seeded: bool = False, notes: tuple[str, ...] = ()) -> Receipt:
    domain = "box of 2 features: age [0, 120], bmi [10, 60]"
    return Receipt(ledger.epsilon, ledger.delta, tuple(ledger.releases), 1234, domain, seeded, notes)


def plain_delta(releases: list[Release], epsilon: float) -> mpmath.mpf:
    """``Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2)`` with mu from the receipt, in 60 digits."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(sum((mpmath.mpf(r.sensitivity) / mpmath.mpf(r.sigma)) ** 2 for r in releases))
        e = mpmath.mpf(epsilon)
        return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)


# --- spending --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "releases"),
    [
        *((epsilon, releases) for epsilon in EPSILONS for releases in (1, 16, 49)),
        (1e-3, 1600),
        (1.0, 1600),
        (100.0, 1600),
    ],
)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_from_the_receipts_own_numbers_is_not_above_the_one_asked_for(
    epsilon: float, delta: float, releases: int
) -> None:
    ledger = spent(epsilon, delta, releases)
    assert plain_delta(ledger.releases, epsilon) <= delta
    if min(release.sigma for release in ledger.releases) > 64:  # nor is budget wasted
        assert plain_delta(ledger.releases, epsilon * (1 - 1e-4)) > delta
    assert receipt(ledger).epsilon_spent <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_votes_and_sums_together_are_not_above_the_epsilon_asked_for(epsilon: float) -> None:
    ledger = Ledger(epsilon, 1e-6)
    for name, sensitivity in [("votes", 1)] * 14 + [("sums", GRID_UNIT), ("counts", 1)]:
        ledger.charge(name, "Any", sensitivity, 1 / 16)
    assert plain_delta(ledger.releases, epsilon) <= 1e-6
    assert receipt(ledger).epsilon_spent <= epsilon
    sums, counts = ledger.releases[-2:]
    assert sums.sigma / GRID_UNIT == pytest.approx(counts.sigma, rel=max(1e-3, 0.1 / counts.sigma**2))


@pytest.mark.parametrize("releases", [*range(1, 60), 93, 100, 999, 1600, 1999, 2000])
def test_equal_shares_add_up_to_the_whole(releases: int) -> None:
    ledger = Ledger(math.inf, 1e-5)  # shares are counted alike; noise takes time
    for _ in range(releases):
        ledger.charge("votes", "NearestVotes", 1, 1 / releases)
    assert abs(ledger.left) < 1e-9
    with pytest.raises(BudgetError):
        ledger.charge("one more", "NearestVotes", 1, 1 / releases)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.floats(0, 1.5) | st.sampled_from([1 / 3, 0.5, 1e-9, 1e-10, 1.0]), max_size=30))
def test_no_sequence_of_shares_spends_more_than_there_is(shares: list[float]) -> None:
    ledger = Ledger(1.0, 1e-5)
    for share in shares:
        before = list(ledger.releases)
        try:
            ledger.charge("votes", "NearestVotes", 1, share)
        except (BudgetError, ParameterError):
            assert ledger.releases == before
    if ledger.releases:
        assert plain_delta(ledger.releases, 1.0) <= 1e-5


def test_what_shares_overshoot_is_covered_by_the_noise() -> None:
    """A billionth more than the whole is let through, because shares like 1/7 need it; nobody gains by it."""
    ledger = Ledger(1.0, 1e-5)
    for share in (1.0, 0.999e-9):
        ledger.charge("votes", "NearestVotes", 1, share)
    assert math.fsum(mu_of_event(Event(r.sigma, r.sensitivity)) ** 2 for r in ledger.releases) <= ledger.mu**2


def test_the_receipt_leaves_the_sampler_its_part_of_delta() -> None:
    ledger = spent(1.0, 1e-5, 16)
    events = [Event(ledger.releases[0].sigma, 1, 16)]
    assert receipt(ledger).epsilon_spent == composed_epsilon(events, 1e-5 * (1 - 2.0**-20))
    assert receipt(ledger).epsilon_spent > composed_epsilon(events, 1e-5)


@pytest.mark.parametrize("share", [0.0, -0.5, 1 + 1e-6, math.nan, math.inf])
def test_shares_that_make_no_sense_are_refused(share: float) -> None:
    ledger = Ledger(1.0, 1e-5)
    with pytest.raises(BudgetError, match="share="):
        ledger.charge("votes", "NearestVotes", 1, share)
    assert ledger.releases == []
    assert ledger.left == 1


@pytest.mark.parametrize("sensitivity", [0, -1, math.nan])
def test_sensitivities_that_make_no_sense_are_refused(sensitivity: int) -> None:
    """Above all 0: it would let the exact answer out."""
    for ledger, charge in (
        (gaussian := Ledger(1.0, 1e-5), gaussian.charge),
        (pure := Ledger(1.0, 0.0), pure.charge_pure),
        (mixed := Ledger(1.0, 1e-5), mixed.charge_noise),
    ):
        with pytest.raises(ParameterError, match="sensitivity="):
            charge("votes", "NearestVotes", sensitivity, 0.5)
        assert ledger.releases == []


CHARGES = st.tuples(
    st.sampled_from(["share", "share", GAUSSIAN, LAPLACE]), st.integers(1, 3), st.floats(0.01, 8)
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.floats(0.5, 200), st.lists(CHARGES, min_size=1, max_size=6), st.integers(1, 3))
def test_no_mixture_of_charges_spends_more_than_there_is(
    epsilon: float, charges: list[tuple[str, int, float]], last: int
) -> None:
    """Shares, and noise of a given size, in any order; at the end all that is left is asked for."""
    ledger = Ledger(epsilon, 1e-5)
    for how, sensitivity, size in charges:
        with contextlib.suppress(BudgetError, ParameterError):
            if how == "share":
                ledger.charge("votes", "Any", sensitivity, size / 8 * ledger.left)
            else:
                ledger.charge_noise("votes", "Any", sensitivity, size, how)
    with contextlib.suppress(BudgetError, ParameterError):
        ledger.charge("votes", "Any", last, ledger.left)
    assert receipt(ledger).epsilon_spent <= epsilon


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.floats(1e-3, 100), st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1.1)), max_size=20))
def test_shares_of_a_pure_budget_add_up(epsilon: float, charges: list[tuple[int, float]]) -> None:
    ledger = Ledger(epsilon, 0.0)
    for sensitivity, share in charges:
        with contextlib.suppress(BudgetError):
            ledger.charge_pure("counts", "Any", sensitivity, share)
    assert math.fsum(r.sensitivity / r.sigma for r in ledger.releases) <= epsilon
    assert receipt(ledger).epsilon_spent <= epsilon


def test_a_pure_budget_pays_for_no_gaussian_noise_and_the_other_way_round() -> None:
    pure, gaussian = Ledger(1.0, 0.0), Ledger(1.0, 1e-5)
    for charge in (pure.charge, pure.charge_noise, gaussian.charge_pure):
        with pytest.raises(BudgetError, match="delta"):
            charge("votes", "Any", 1, 0.5)
    assert pure.releases == gaussian.releases == []


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger(1e-6, 1e-30)
    with pytest.raises(BudgetError, match="larger epsilon"):
        ledger.charge("sums", "NearestSums", GRID_UNIT, 0.01)
    assert ledger.releases == []
    assert ledger.charge("votes", "NearestVotes", 1, 0.01) < MAX_SCALE


def test_sigma_grows_with_sensitivity_and_falls_with_the_share() -> None:
    ledger = Ledger(1.0, 1e-5)
    one = ledger.charge("votes", "NearestVotes", 1, 0.1)
    thousand = ledger.charge("sums", "NearestSums", 1000, 0.1)
    four_shares = ledger.charge("votes", "NearestVotes", 1, 0.4)
    assert thousand == pytest.approx(1000 * one, rel=1e-3)
    assert one == pytest.approx(2 * four_shares, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, 100.0])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-300])
def test_the_sampler_errs_by_less_than_the_delta_set_aside_for_it(delta: float, epsilon: float) -> None:
    """Noise that is off by eta in total variation costs (1 + e^epsilon) eta of delta."""
    ledger = Ledger(epsilon, delta)
    log2_error = 50 - ledger.tail_bits  # of 2**50 draws
    assert log2_error <= -50
    assert log2_error + math.log2(1 + math.exp(epsilon)) <= math.log2(delta) - 20


def test_infinite_epsilon_means_no_noise() -> None:
    assert spent(math.inf, 1e-5, 3).releases[0].sigma == 0


# --- the receipt -----------------------------------------------------------------------------------


def mixed(epsilon: float = 2.0) -> Ledger:
    ledger = Ledger(epsilon, 1e-5)
    for name, sensitivity in [("votes", 1)] * 8 + [("lifted sums", GRID_UNIT), ("lifted counts", 1)]:
        ledger.charge(name, "NearestVotes" if sensitivity == 1 else "NearestSums", sensitivity, 0.1)
    return ledger


def test_receipt_states_what_is_protected_and_what_is_public() -> None:
    text = " ".join(str(receipt(mixed(), notes=("a remark",))).split())
    assert NEIGHBORS in text
    assert "zeroing out one row" in text
    assert "number of rows being public" in text
    assert "Public: 1234 rows; box of 2 features: age [0, 120], bmi [10, 60]." in text
    assert "epsilon 2 at delta 1e-05" in text
    assert "operating system" in text
    assert "Note: a remark." in text
    assert "NOT private" not in text


def test_receipt_says_when_noise_was_seeded_or_absent() -> None:
    assert "NOT private" in str(receipt(mixed(), seeded=True))
    unprotected = str(receipt(mixed(math.inf), seeded=True))
    assert "NONE" in unprotected
    assert "not private at all" in " ".join(unprotected.split())


@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_receipt_as_json(epsilon: float) -> None:
    ledger = mixed(epsilon)
    document = json.loads(receipt(ledger, notes=("a remark",)).to_json())
    assert document["neighbors"] == NEIGHBORS
    assert document["public"] == {"n_rows": 1234, "domain": "box of 2 features: age [0, 120], bmi [10, 60]"}
    assert document["seeded"] is False
    assert document["notes"] == ["a remark"]
    assert float(document["epsilon"]) == epsilon
    assert float(document["epsilon_spent"]) <= epsilon
    assert [r["name"] for r in document["releases"]] == ["votes"] * 8 + ["lifted sums", "lifted counts"]
    for written, release in zip(document["releases"], ledger.releases, strict=True):
        assert {name: written[name] for name in ("statistic", "sensitivity", "sigma", "share")} == {
            "statistic": release.statistic,
            "sensitivity": release.sensitivity,
            "sigma": release.sigma,
            "share": release.share,
        }
    assert Receipt.from_dict(document) == receipt(ledger, notes=("a remark",))
    json.loads(receipt(ledger).to_json(), parse_constant=pytest.fail)  # no Infinity in strict JSON


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_running_epsilon_rises_to_what_was_spent(epsilon: float) -> None:
    made = receipt(mixed(epsilon))
    running = [release["epsilon_so_far"] for release in made.to_dict()["releases"]]
    assert all(before <= after for before, after in pairwise(running))
    assert running[-1] == made.epsilon_spent <= epsilon
    assert made.epsilon_spent > 0.85 * epsilon


def test_running_epsilon_covers_the_releases_so_far() -> None:
    ledger = mixed(0.1)  # much noise: there the plain formula is what the exact accounting comes to
    for i, release in enumerate(receipt(ledger).to_dict()["releases"]):
        assert plain_delta(ledger.releases[: i + 1], release["epsilon_so_far"]) <= 1e-5


def test_nothing_released_is_nothing_spent() -> None:
    empty = receipt(Ledger(1.0, 1e-5))
    assert empty.epsilon_spent == 0
    assert empty.to_dict()["releases"] == []
    assert "spent epsilon 0" in str(empty)


def test_table_has_a_line_for_every_run_of_equal_releases() -> None:
    header, votes, sums, counts = receipt(mixed()).table()
    assert header[-1] == "spent so far"
    assert votes[0] == "votes x 8"
    assert votes[4] == "0.8000"
    assert [sums[0], sums[2]] == ["lifted sums", str(GRID_UNIT)]
    assert counts[0] == "lifted counts"


def test_printed_receipt_fits_into_80_columns() -> None:
    ledger = Ledger(1.0, 1e-300)
    for name, sensitivity in [("votes", 1)] * 1000 + [("lifted sums", GRID_UNIT), ("lifted counts", 1)]:
        ledger.charge(name, "NearestVotes", sensitivity, 1 / 1002)
    names = ", ".join(f"column {i} [0, {i}]" for i in range(40))
    text = str(Receipt(1.0, 1e-300, tuple(ledger.releases), 10**9, names, True, ("word " * 60,)))
    assert max(map(len, text.splitlines())) <= 80

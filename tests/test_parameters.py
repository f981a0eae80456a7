"""Parameters: what is refused, in which words, and what becomes of the rest."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pemeans import Domain, DomainError, HDPEMeans, ParameterError, PEMeans
from pemeans.estimators import METHODS
from pemeans.parameters import OPTIONAL, RULES, check_parameters, check_size

GOOD = PEMeans(domain=Domain.box(0, 1)).get_params()
ROWS = np.array([[123456.789, 123456.789]])
"""What somebody passes who forgets which argument comes first."""

BAD: list[tuple[str, Any, str]] = [
    ("n_clusters", 0, r"n_clusters=0 is not a whole number from 1 to .*pass how many"),
    ("n_clusters", -3, "n_clusters=-3 is not a whole number"),
    ("n_clusters", 2.0, r"n_clusters=2\.0 is not a whole number"),
    ("n_clusters", True, "n_clusters=True is not"),
    ("n_clusters", "8", "n_clusters='8' is not"),
    ("n_clusters", None, "n_clusters=None is not"),
    ("n_clusters", 10**5000, "n_clusters=<int> is not"),
    ("n_clusters", ROWS, "n_clusters=<ndarray> is not"),
    ("epsilon", 0, r"epsilon=0 is not a number from 0\.001 to 1000; common values are 0\.1 to 10"),
    ("epsilon", -1.0, r"epsilon=-1\.0 is not"),
    ("epsilon", float("nan"), "epsilon=nan is not"),
    ("epsilon", -math.inf, "epsilon=-inf is not"),
    ("epsilon", 1001, "epsilon=1001 is not"),
    ("epsilon", 10**400, "epsilon=<int> is not"),
    ("epsilon", 1j, "epsilon=1j is not"),
    ("epsilon", "1", "epsilon='1' is not"),
    ("epsilon", True, "epsilon=True is not"),
    ("epsilon", None, "epsilon=None is not"),
    ("epsilon", ROWS, "epsilon=<ndarray> is not"),
    ("delta", 0, r"delta=0 is not a number from 1e-300 to 0\.5; None means n_samples\*\*-1\.1"),
    ("delta", 0.6, r"delta=0\.6 is not"),
    ("delta", -1e-9, "delta=-1e-09 is not"),
    ("delta", float("nan"), "delta=nan is not"),
    ("domain", (0, 1), "domain=<tuple> is neither a Domain nor 'from-data'; use Domain.box"),
    ("domain", "box", "domain='box' is neither"),
    ("domain", Domain, "domain=<type> is neither"),
    ("domain", ROWS, "domain=<ndarray> is neither"),
    ("n_samples", 0, r"n_samples=0 is not.*None means len\(X\)"),
    ("n_samples", 2**41, "n_samples=2199023255552 is not"),
    ("n_samples", 1e3, r"n_samples=1000\.0 is not"),
    ("n_iterations", 0, "n_iterations=0 is not"),
    ("n_iterations", 10_001, "n_iterations=10001 is not a whole number from 1 to 10000"),
    ("n_variations", 0, "n_variations=0 is not"),
    ("n_variations", 10_000, r"max_candidates=16384 is less than .* = 80008; raise it"),
    ("max_candidates", 39, r"max_candidates=39 is less than n_clusters \* \(n_variations \+ 1\) = 40"),
    ("max_candidates", None, "max_candidates=None is not"),
    ("variation_scale", 0.0, r"variation_scale=0\.0 is not.*0\.01"),
    ("variation_scale", math.inf, "variation_scale=inf is not"),
    ("levy_index", 0.2, r"levy_index=0\.2 is not.*1\.75"),
    ("levy_index", 2.5, r"levy_index=2\.5 is not"),
    ("selection", "best", "selection='best' is not one of 'k-means', 'top-k'"),
    ("selection", ["k-means"], "selection=<list> is not one of"),
    ("selection", None, "selection=None is not one of"),
    ("n_jobs", 0, "n_jobs=0 is not a whole number other than 0; None means all cores"),
    ("n_jobs", 1.0, r"n_jobs=1\.0 is not"),
    ("progress", "yes", "progress='yes' is neither True, False nor a function"),
    ("progress", None, "progress=None is neither"),
    ("random_state", -1, "random_state=-1 is neither None, a whole number.*leave it None"),
    ("random_state", 0.5, r"random_state=0\.5 is neither"),
    ("random_state", True, "random_state=True is neither"),
    ("random_state", np.random.SeedSequence(0), "random_state=<SeedSequence> is neither"),
]


@pytest.mark.parametrize(("name", "value", "says"), BAD, ids=[f"{case[0]}-{i}" for i, case in enumerate(BAD)])
def test_a_parameter_that_makes_no_sense_is_refused_by_name(name: str, value: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as caught:
        check_parameters(GOOD | {name: value})
    assert caught.value.__context__ is None
    assert "123456" not in str(caught.value)


def test_no_domain_is_refused_with_what_to_pass_and_why() -> None:
    with pytest.raises(DomainError, match=r"domain=None: .*Domain\.box\(.*Domain\.ball\(.*reveal.*from-data"):
        check_parameters(PEMeans().get_params())


@pytest.mark.parametrize("method", METHODS.values())
def test_every_parameter_has_a_rule(method: Any) -> None:
    parameters = method().get_params()
    assert parameters.keys() <= RULES.keys()
    unset = {name for name, value in parameters.items() if value is None}
    assert unset == {*OPTIONAL, "domain"} & parameters.keys()
    check_parameters(parameters | {"domain": Domain.box(0, 1)})


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("n_clusters", np.uint8(200), 200),
        ("n_samples", np.int64(7), 7),
        ("epsilon", np.float32(0.5), 0.5),
        ("epsilon", Fraction(1, 4), 0.25),
        ("epsilon", 1, 1.0),
        ("epsilon", np.float32("inf"), math.inf),
        ("epsilon", 1e-3, 1e-3),
        ("epsilon", 1e3, 1e3),
        ("delta", 1e-300, 1e-300),
        ("delta", 0.5, 0.5),
        ("levy_index", 2, 2.0),
        ("selection", np.str_("top-k"), "top-k"),
        ("n_jobs", np.int8(-1), -1),
    ],
)
def test_numbers_become_those_of_python(name: str, value: Any, plain: Any) -> None:
    found = check_parameters(GOOD | {name: value})[name]
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    "seed", [0, 2**200, np.uint64(5), np.random.RandomState(0), np.random.default_rng(0)]
)
def test_seeds_of_every_kind_are_taken(seed: Any) -> None:
    assert check_parameters(GOOD | {"random_state": seed})["random_state"] is seed


def test_there_are_no_more_clusters_than_rows() -> None:
    check_size(5, 5)
    with pytest.raises(ParameterError, match="n_clusters=6 is more than n_samples=5; ask for fewer"):
        check_size(6, 5)


@pytest.mark.parametrize("method", [PEMeans, HDPEMeans])
@pytest.mark.parametrize("extreme", [{"epsilon": 1e-3}, {"epsilon": 1e3, "n_iterations": 3}])
@pytest.mark.parametrize("delta", [1e-300, 0.5])
def test_the_noise_of_extreme_budgets_can_be_drawn(method: Any, extreme: Any, delta: float) -> None:
    settings = {"n_iterations": 300, "n_variations": 4, "n_jobs": 1} | extreme
    model = method(2, delta=delta, domain=Domain.ball(1), **settings).fit(np.zeros((5, 20)))
    assert 0 <= model.receipt_.epsilon_spent <= extreme["epsilon"]


def test_the_most_noise_that_a_release_can_need_can_be_drawn() -> None:
    from pemeans.kernels.grid import GRID_UNIT
    from pemeans.privacy.ledger import Ledger
    from pemeans.privacy.noise import MAX_SCALE

    sigma = Ledger(epsilon=1e-3, delta=1e-300).charge("sums", "NearestSums", GRID_UNIT, share=1 / 10_000)
    assert sigma <= MAX_SCALE

"""scikit-learn's own estimator checks, each expected failure named and explained."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pemeans import DPKMeans, HDPEMeans, PEMeans
from pemeans.peers import BalcanKMeans, DPLloyd, FastLloyd, LSHKMeans

pytestmark = pytest.mark.filterwarnings("ignore::pemeans.errors.PrivacyLeakWarning")

EXPECTED = {
    "check_clustering": "reads labels_: one exact private number a row, which no fitted model may hold. "
    "What else it asks for is tested in test_estimators.py",
}
# The checks give no domain and compare refits. Few rounds of few candidates keep them quick.
SMALL: dict[str, Any] = {"domain": "from-data", "random_state": 0, "n_clusters": 3, "n_jobs": 1}
BRIEF: dict[str, Any] = {"n_iterations": 2, "n_variations": 4}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        PEMeans(**SMALL, **BRIEF),
        HDPEMeans(**SMALL, **BRIEF),
        *(method(**SMALL) for method in (DPKMeans, LSHKMeans, FastLloyd, DPLloyd, BalcanKMeans)),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)

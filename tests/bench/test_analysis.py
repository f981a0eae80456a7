from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from made_up import constant, record, results

from pemeans.bench.analysis import area, estimate
from pemeans.bench.evaluate import label_accuracy, mean_loss, nearest_centers
from pemeans.bench.smoothing import lowess


def test_area_is_the_papers_sum() -> None:
    # (4+3)/2*.25 + (3+2)/2*.5 + (2+1)/2*1 + (1+0)/2*2
    assert area([4.0, 3.0, 2.0, 1.0, 0.0]) == pytest.approx(0.875 + 1.25 + 1.5 + 1.0)
    assert area([1.0] * 5) == pytest.approx(3.75)


def test_interval_is_students() -> None:
    found = estimate([1.0, 3.0])
    assert (found.mean, found.repeats) == (2.0, 2)
    assert found.half == pytest.approx(12.7062, abs=1e-4)  # t(0.975, 1) * sqrt(2) / sqrt(2)
    assert isnan(estimate([1.0]).half)


def test_only_repeats_with_all_budgets_and_without_error_count() -> None:
    complete = constant("iris", "PEMeans", [1.0, 2.0])
    missing = [record("iris", "PEMeans", 0.25, 2, 9.0)]
    failed = [record("iris", "PEMeans", 1.0, 1, None, error="ValueError: no")]
    assert results(complete, missing).areas("iris", "PEMeans").tolist() == pytest.approx([3.75, 7.5])
    without = [one for one in complete if (one.run.epsilon, one.run.repeat) != (1.0, 1)]
    assert results(without, failed).areas("iris", "PEMeans").tolist() == pytest.approx([3.75])


def test_the_reference_is_the_same_at_every_budget() -> None:
    found = results(constant("iris", "NonPrivateKMeans", [0.5, 0.7]))
    assert found.areas("iris", "NonPrivateKMeans").tolist() == pytest.approx([1.875, 2.625])
    assert found.loss("iris", "NonPrivateKMeans", 0.25).mean == pytest.approx(0.6)


def test_loss_and_labels_against_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    X, centers, truth = rng.normal(size=(500, 7)), rng.normal(size=(9, 7)), rng.integers(-1, 3, size=500)
    gaps = [[float(((x - c) ** 2).sum()) for c in centers] for x in X]
    labels = nearest_centers(X, centers)
    assert labels.tolist() == [int(np.argmin(gap)) for gap in gaps]
    assert mean_loss(X, centers, labels) == pytest.approx(np.mean([min(gap) for gap in gaps]))
    right = sum(
        max(int(((labels == j) & (truth == name)).sum()) for name in range(3)) for j in range(len(centers))
    )
    assert label_accuracy(labels, truth, len(centers)) == pytest.approx(right / (truth >= 0).sum())


def test_losses_far_smaller_than_the_rows_do_not_cancel() -> None:
    X = 1.0 + 1e-9 * np.array([[1.0], [-1.0]])
    center = np.array([[1.0]])
    assert mean_loss(X, center, nearest_centers(X, center)) == pytest.approx(1e-18, rel=1e-6)


def test_lowess_follows_the_bulk_and_not_an_outlier() -> None:
    x = np.linspace(0, 10, 60)
    y = 3 * x + 2
    bent = y.copy()
    bent[30] += 500
    assert lowess(x, bent)[[5, 30, 55]] == pytest.approx(y[[5, 30, 55]], abs=0.2)


def test_lowess_bears_many_points_at_all_but_one_place() -> None:
    x = np.concatenate([np.full(40, 10.0), np.full(40, 10.001), [1.0, 2.0, 12.0]])
    y = np.random.default_rng(0).normal(size=len(x))
    smooth = lowess(x, y)
    assert np.abs(smooth).max() < 3
    assert np.ptp(smooth[:80]) < 0.2

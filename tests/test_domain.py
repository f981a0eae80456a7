"""Domains: what is inside, what becomes of the rest, and back to the user's units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pemeans import Domain, DomainError, PEMeans
from pemeans.domain import LARGEST, domain_read_from, shown
from pemeans.kernels.grid import GRID_UNIT, FloatArray, to_float

RNG = np.random.default_rng(20)


def fitted(X: Any, domain: Domain, **parameters: Any) -> PEMeans:
    settings = {"n_clusters": 3, "epsilon": 2.0, "random_state": 5, "n_iterations": 4, "n_jobs": 1}
    return PEMeans(domain=domain, **(settings | parameters)).fit(X)


def random_boxes(count: int, width: int) -> list[tuple[FloatArray, FloatArray]]:
    """Boxes of all sizes, whose middles and widths are no round numbers."""
    lower = RNG.normal(size=(count, width)) * 10.0 ** RNG.integers(-6, 7, size=(count, 1))
    return [(low, low + RNG.random(width) * 10.0 ** RNG.integers(-3, 4)) for low in lower]


@pytest.mark.parametrize("scale", [False, True])
def test_rows_outside_a_box_count_as_clipped_bit_for_bit(scale: bool) -> None:
    for width in (1, 2, 7):
        for lower, upper in random_boxes(200, width):
            domain = Domain.box(lower, upper, scale=scale)
            rows = (lower + upper) / 2 + (upper - lower) * RNG.standard_cauchy((20, width))
            assert np.array_equal(domain.to_grid(rows), domain.to_grid(np.clip(rows, lower, upper)))


@pytest.mark.parametrize("scale", [False, True])
def test_a_fit_with_outliers_equals_a_fit_on_clipped_rows(scale: bool) -> None:
    lower, upper = np.array([0.1, -3.3]), np.array([0.7, 11.9])
    X = lower + (upper - lower) * RNG.random((400, 2))
    X[::7] *= 1e9
    X[3] = [np.finfo(float).max, -np.finfo(float).max]
    domain = Domain.box(lower, upper, scale=scale)
    far, near = fitted(X, domain), fitted(np.clip(X, lower, upper), domain)
    assert far.cluster_centers_.tobytes() == near.cluster_centers_.tobytes()
    assert far.cluster_sizes_.tobytes() == near.cluster_sizes_.tobytes()


def test_rows_outside_a_ball_are_pulled_toward_its_center() -> None:
    center, radius = np.array([3.0, -1.0, 0.5]), 2.5
    domain = Domain.ball(radius, center)
    away = RNG.standard_normal((500, 3))
    away *= (
        radius * (1 + RNG.standard_exponential((500, 1)) * 100) / np.linalg.norm(away, axis=1, keepdims=True)
    )
    edge = center + away * radius / np.linalg.norm(away, axis=1, keepdims=True)
    pulled = to_float(domain.to_grid(center + away))
    assert np.abs(pulled - (edge - center) / radius).max() < 3 / GRID_UNIT
    assert np.linalg.norm(pulled, axis=1).max() <= 1.0


def test_rows_inside_stay_where_they_are() -> None:
    X = RNG.random((100, 4)) * [1, 10, 100, 1000]
    for domain in (Domain.box(0, [1, 10, 100, 1000]), Domain.box(0, [1, 10, 100, 1000], scale=True)):
        there_and_back = domain.from_unit(to_float(domain.to_grid(X)))
        assert np.allclose(there_and_back, X, atol=2.0 * 1000 / GRID_UNIT)


@pytest.mark.parametrize(
    "domain",
    [
        Domain.box([0.1, -3.3], [0.7, 11.9]),
        Domain.box([0.1, -3.3], [0.7, 11.9], scale=True),
        Domain.ball(0.3, [0.4, 0.3]),
        Domain.box(-1e150, 1e150),
        Domain.box(1.0, np.nextafter(1.0, 2.0)),
        Domain.box(-1e-150, 1e-150),
        Domain.ball(1e-150),
        Domain.ball(1e150, 1e150),
    ],
    ids=str,
)
def test_centers_are_inside_the_domain(domain: Domain) -> None:
    centers = fitted(RNG.standard_cauchy((100, 2)), domain).cluster_centers_
    assert np.isfinite(centers).all()
    if domain.bounds is not None:
        assert (centers >= domain.bounds[0]).all()
        assert (centers <= domain.bounds[1]).all()
    else:
        assert (np.linalg.norm((centers - domain.center) / domain.radius, axis=1) <= 1 + 1e-12).all()


def test_one_number_holds_for_all_features() -> None:
    assert Domain.box(0, 1).bind(9, 3) == Domain.box([0, 0, 0], [1, 1, 1]).bind(9, 3)
    assert Domain.box(0, [1, 2]).bind(9, 2) == Domain.box([0, 0], [1, 2]).bind(9, 2)
    assert Domain.box([0, 1], 5, scale=True) == Domain.box([0, 1], [5, 5], scale=True)
    assert Domain.ball(2, 1).bind(9, 3) == Domain.ball(2, [1, 1, 1]).bind(9, 3)
    assert Domain.box(0, 1).bind(9, 3).radius == pytest.approx(3**0.5 / 2)


def test_a_bound_domain_can_be_used_again() -> None:
    used = Domain.box([0, 0], [1, 3], scale=True).bind(10, 2)
    assert used.bind(20, 2) == replace(used, n_rows=20)


@pytest.mark.parametrize("scale", [False, True])
def test_a_fit_follows_shift_and_scale_of_the_units(scale: bool) -> None:
    # Shifted and scaled by powers of two the rows are not rounded, so all votes agree exactly.
    X = RNG.integers(0, 1024, size=(500, 2)) / 1024
    plain = fitted(X, Domain.box(0, 1, scale=scale))
    moved = fitted(X * 8 - 16, Domain.box(-16, -8, scale=scale))
    assert np.allclose(moved.cluster_centers_, plain.cluster_centers_ * 8 - 16, rtol=0, atol=1e-13)
    assert np.array_equal(moved.cluster_sizes_, plain.cluster_sizes_)
    assert np.array_equal(moved.predict(X * 8 - 16), plain.predict(X))


def test_units_matter_only_without_scale() -> None:
    X = RNG.random((500, 2))
    centimeters = X * [1, 128]
    scaled = fitted(X, Domain.box(0, 1, scale=True))
    same = fitted(centimeters, Domain.box([0, 0], [1, 128], scale=True))
    assert np.allclose(same.cluster_centers_ / [1, 128], scaled.cluster_centers_, rtol=0, atol=1e-12)
    assert np.allclose(same.transform(centimeters), scaled.transform(X))
    other = fitted(centimeters, Domain.box([0, 0], [1, 128]))
    assert not np.allclose(other.cluster_centers_ / [1, 128], scaled.cluster_centers_, atol=0.01)


def test_general_units_agree_up_to_rounding() -> None:
    blobs = np.concatenate([RNG.normal(c, 1.0, size=(2000, 2)) for c in (0, 20, 40)])
    celsius = fitted(blobs, Domain.box(-10, 50))
    fahrenheit = fitted(blobs * 1.8 + 32, Domain.box(14, 122))
    back = (np.sort(fahrenheit.cluster_centers_, axis=0) - 32) / 1.8
    assert np.abs(back - np.sort(celsius.cluster_centers_, axis=0)).max() < 0.5


box: Any = Domain.box
ball: Any = Domain.ball


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: box([0, 5], [1, 4]),
            r"lower=5\.0 is not below upper=4\.0 for feature 1.*lower < upper",
        ),
        (lambda: box(1, 1), "lower=1.0 is not below upper=1.0"),
        (lambda: box(0, 5e-324), "is not below"),
        (lambda: box([0, float("nan")], 1), "lower=nan is not a finite number"),
        (lambda: box(0, float("inf")), "upper=inf is not a finite number"),
        (lambda: box(0, 1e151), "upper=1e.151 is not a finite number of size at most 1e.150"),
        (lambda: box([0, 0], [1, 1, 1]), "lower has 2 values and upper has 3; give as many"),
        (lambda: box([], []), "lower is empty; give"),
        (lambda: box("0", "1"), "lower='0' is not a number or a flat sequence"),
        (lambda: box(["0"], [1]), "lower=<list> is not a number"),
        (lambda: box([[0, 1]], [[1, 2]]), "lower=<list> is not a number or a flat sequence"),
        (lambda: box([0, [1]], [1, 2]), "lower=<list> is not a number"),
        (lambda: box(None, 1), "lower=None is not a number"),
        (lambda: box(0, 1j), "upper=1j is not a number"),
        (lambda: box(0, 10**400), "upper=<int> is not a number"),
        (lambda: box(0, 1, scale="yes"), "scale='yes' is neither True nor False"),
        (lambda: ball(0), "radius=0 is not one positive number; give"),
        (lambda: ball(-1), "radius=-1 is not one positive number"),
        (lambda: ball([1, 2]), "radius=<list> is not one positive number"),
        (lambda: ball(float("nan")), "radius=nan is not a finite number"),
        (lambda: ball(1, float("inf")), "center=inf is not a finite number"),
        (lambda: ball(1, "middle"), "center='middle' is not a number"),
        (lambda: box([0, 0], 1).bind(10, 3), "domain describes 2 features, but X has 3; give bounds"),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(DomainError, match=says):
        make()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.uint64, list, tuple])
def test_bounds_may_be_arrays_and_sequences(kind: Any) -> None:
    lower, upper = [0, 10], [100, 60]
    given = [kind(b) if kind in (list, tuple) else np.array(b, dtype=kind) for b in (lower, upper)]
    assert box(*given) == box(lower, upper)


def test_a_domain_reads_back_from_plain_values() -> None:
    for domain in (
        Domain.box([0.1, 1 / 3], [0.7, 9.0], scale=True),
        Domain.ball(1 / 3, [0.1, 0.2]).bind(10, 2),
        domain_read_from(RNG.normal(size=(10, 3))),
    ):
        assert Domain.from_dict(domain.to_dict()) == domain


def test_a_domain_describes_itself_in_the_units_of_the_user() -> None:
    people = Domain.box([0, 10], [120, 60.5], scale=True)
    assert str(people) == "box of 2 features: [0, 120], [10, 60.5], each measured in its half-width"
    assert people.describe(["age", "bmi"]).startswith("box of 2 features: age [0, 120], bmi [10, 60.5]")
    assert str(Domain.box([0] * 9, [1] * 9)).endswith("[0, 1], ...")
    assert str(Domain.ball(2, [1, 1, 2])) == "ball of radius 2 around 1, 1, 2"
    assert str(Domain.ball(2, list(range(9)))) == "ball of radius 2 around 0, 1, 2, 3, 4, 5, ..."
    assert "read from the private rows" in str(domain_read_from(np.eye(2)))
    assert repr(people) == f"Domain({people})"


def test_the_domain_of_the_rows_is_the_ball_around_their_mean() -> None:
    X = RNG.normal(size=(50, 3)) + 7
    domain = domain_read_from(X)
    assert np.allclose(domain.center, X.mean(axis=0))
    assert domain.radius == pytest.approx(np.linalg.norm(X - X.mean(axis=0), axis=1).max())
    assert domain_read_from(np.asfortranarray(X)) == domain
    assert domain_read_from(np.ones((3, 2))).radius == 1.0  # a ball of no size holds nothing


def test_the_domain_of_huge_rows_is_still_one() -> None:
    domain = domain_read_from(np.array([[1e300, -1e300], [-1e300, 1e300], [0, 0]]))
    assert domain.radius == LARGEST
    assert np.isfinite(domain.to_grid(np.array([[1e308, 1e-308]]))).all()


def test_no_warning_tells_of_a_row(recwarn: pytest.WarningsRecorder) -> None:
    extremes = np.array([[1.7e308, -1.7e308], [5e-324, 0.0], [1e150, -1e150]])
    for domain in (Domain.ball(1e-150), Domain.box(0, 1e-150, scale=True), Domain.box(-1e150, 1e150)):
        bound = domain.bind(3, 2)
        bound.to_grid(extremes)
        bound.measured(extremes)
    domain_read_from(extremes)
    assert not list(recwarn)


def test_messages_show_plain_values_and_the_type_of_all_else() -> None:
    assert shown("abc") == "'abc'"
    assert shown(np.float64(0.5)) == repr(np.float64(0.5))
    assert shown(np.array([[123456.789]])) == "<ndarray>"
    assert shown("x" * 50) == "<str>"
    assert shown(10**5000) == "<int>"

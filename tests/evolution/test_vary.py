"""VARIATION_API: Levy flights by Mantegna's algorithm (section 3.3 of the paper)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from pemeans.evolution.vary import levy, mantegna_sigma, vary
from pemeans.kernels.grid import GRID_UNIT, GridArray, squared_norms, to_float, to_grid

FALSE_ALARM = 1e-7
DRAWS = 100_000


def centers_of(k: int, d: int) -> GridArray:
    return to_grid(np.random.default_rng(k).standard_normal((k, d)) / np.sqrt(d) / 4)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.25, 1.5, 1.75, 1.99])
def test_sigma_of_u_is_equation_2(beta: float) -> None:
    logs = [
        gammaln(1 + beta),
        np.log(np.cos(np.pi * (1 - beta) / 2)),  # sin(pi beta / 2)
        -gammaln((1 + beta) / 2),
        -np.log(beta),
        -(beta - 1) / 2 * np.log(2),
    ]
    assert mantegna_sigma(beta) == pytest.approx(np.exp(sum(logs) / beta), rel=1e-12)


def test_sigma_of_u_at_the_papers_beta() -> None:
    assert mantegna_sigma(1.75) == pytest.approx(0.507450491352, rel=1e-11)
    assert mantegna_sigma(1.0) == pytest.approx(1.0)  # the quotient of two standard normals: Cauchy


def distribution_of_steps(x: float, beta: float) -> float:
    """P(u / |v|^(1/beta) <= x), by integrating over v."""
    value, _ = integrate.quad(
        lambda v: 2 * stats.norm.pdf(v) * stats.norm.cdf(x * v ** (1 / beta) / mantegna_sigma(beta)), 0, 12
    )
    return float(value)


@pytest.mark.parametrize("beta", [1.0, 1.75])
def test_steps_follow_mantegnas_law(beta: float) -> None:
    """The empirical distribution at nine places; all together raise a false alarm with chance 1e-7."""
    steps = levy((DRAWS,), beta, np.random.default_rng(3))
    for x in (-20.0, -3.0, -1.0, -0.25, 0.0, 0.1, 0.5, 2.0, 10.0):
        p = distribution_of_steps(x, beta)
        low, high = (stats.binom.ppf(tail, DRAWS, p) for tail in (FALSE_ALARM / 18, 1 - FALSE_ALARM / 18))
        assert low <= (steps <= x).sum() <= high, x


def test_beta_1_is_cauchy_and_beta_2_is_gaussian() -> None:
    rng = np.random.default_rng(4)
    assert stats.kstest(levy((DRAWS,), 1.0, rng), "cauchy").pvalue > FALSE_ALARM
    assert stats.kstest(levy((DRAWS,), 2.0, rng), "norm").pvalue > FALSE_ALARM
    assert stats.kstest(levy((DRAWS,), 1.75, rng), "norm").pvalue < FALSE_ALARM


def test_every_coordinate_of_every_variation_has_its_own_step() -> None:
    """Neither u nor v is shared: sizes of steps are not correlated either."""
    k, d, copies = 2, 3, 20_000
    center = to_float(centers_of(k, d))
    steps = to_float(vary(centers_of(k, d), copies, 1e-3, 1.75, np.random.default_rng(5))) - np.tile(
        center, (copies, 1)
    )
    # One line a round of variations, one column a coordinate of a center.
    ranks = np.apply_along_axis(stats.rankdata, 0, np.abs(steps.reshape(copies, k * d)))
    correlation = np.corrcoef(ranks.T) - np.eye(k * d)
    assert np.abs(correlation).max() < stats.norm.isf(FALSE_ALARM / 36) / np.sqrt(copies)


@pytest.mark.parametrize(("k", "copies", "d"), [(1, 1, 1), (3, 4, 2), (5, 20, 16)])
def test_every_center_gets_its_variations(k: int, copies: int, d: int) -> None:
    centers = centers_of(k, d)
    children = vary(centers, copies, 1e-6, 2.0, np.random.default_rng(0))
    assert children.shape == (k * copies, d)
    gaps = np.abs(children[:, np.newaxis] - centers).max(axis=2)
    assert (gaps.min(axis=1) < 10 * 1e-6 * GRID_UNIT).all()
    assert (np.bincount(gaps.argmin(axis=1), minlength=k) == copies).all()


def test_steps_are_scaled_by_gamma() -> None:
    origin = np.zeros((1, 2), dtype=np.int32)
    small, large = (vary(origin, 50, scale, 2.0, np.random.default_rng(0)) for scale in (0.001, 0.1))
    np.testing.assert_allclose(large, 100 * small, atol=51)
    spread = to_float(vary(origin, DRAWS, 0.01, 2.0, np.random.default_rng(1))).std()
    assert spread == pytest.approx(0.01, rel=0.02)


def test_variations_outside_are_pulled_to_the_edge_of_the_ball() -> None:
    centers = to_grid(np.array([[1.0, 0.0], [0.0, -0.99]]))
    children = vary(centers, 500, 0.05, 1.75, np.random.default_rng(0))
    squared = squared_norms(children)
    assert squared.max() <= GRID_UNIT**2
    clipped = squared > (GRID_UNIT - 4) ** 2
    assert 200 < clipped.sum() < 800
    # Pulled back along their own direction: the same steps, seen without the edge, have the same angle.
    free = vary(centers // 4, 500, 0.05 / 4, 1.75, np.random.default_rng(0))
    angle = np.arctan2(children[:, 1], children[:, 0]) - np.arctan2(free[:, 1], free[:, 0])
    near = squared_norms(free) < GRID_UNIT**2 / 2
    assert np.abs(angle[near & clipped]).max() < 1e-5


@pytest.mark.parametrize("scale", [1e30, 1e200, 1e308])
def test_absurd_scales_still_end_in_the_ball(scale: float) -> None:
    with np.errstate(over="ignore"):
        children = vary(centers_of(2, 3), 100, scale, 1.0, np.random.default_rng(0))
    assert squared_norms(children).max() <= GRID_UNIT**2

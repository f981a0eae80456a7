"""The noise sampler against its exact laws.

Every statistical check has a fixed seed and rejects at ``ALPHA`` or beyond six standard deviations; there are
fewer than a hundred of them, so under fresh seeds a false alarm would be less likely than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from pemeans.errors import ParameterError
from pemeans.privacy import noise
from pemeans.privacy.bits import SeededBits, SystemBits
from pemeans.privacy.noise import NoiseSampler

ALPHA = 1e-8
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def sampler(seed: int, tail_bits: int = 128) -> NoiseSampler:
    return NoiseSampler(SeededBits(seed), tail_bits)


def gaussian_pmf(z: Integers, sigma: float) -> Floats:
    support = np.arange(-math.ceil(40 * sigma) - 1, math.ceil(40 * sigma) + 2)
    total = np.exp(-0.5 * (support / sigma) ** 2).sum()
    return np.asarray(np.exp(-0.5 * (z / sigma) ** 2) / total)


def laplace_pmf(z: Integers, scale: float) -> Floats:
    return np.asarray(math.tanh(0.5 / scale) * np.exp(-np.abs(z) / scale))


def chi_square(counts: Integers, expected: Floats) -> float:
    """Return the p-value of counts against expected counts, thin cells pooled into one."""
    thick = expected >= 20
    observed = np.append(counts[thick], counts[~thick].sum())
    wanted = np.append(expected[thick], expected[~thick].sum())
    if wanted[-1] < 20:
        observed[-2] += observed[-1]
        wanted[-2] += wanted[-1]
        observed, wanted = observed[:-1], wanted[:-1]
    return float(stats.chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


def histogram(draws: Integers, reach: int) -> Integers:
    """Count -reach..reach; a draw outside is an error of the caller's choice of reach."""
    return np.bincount(draws + reach, minlength=2 * reach + 1)


@contextmanager
def every_comparison_in_doubt() -> Iterator[None]:
    with mock.patch.object(noise, "_TOLERANCE", 2.0):
        yield


class TestGaussianLaw:
    @pytest.mark.parametrize("sigma", [0.3, 0.7, 1.0, 3.0, 16.0, 31.9, 40.0, 64.5, 200.0])
    def test_frequencies_are_those_of_the_exact_law(self, sigma: float) -> None:
        size = 600_000
        reach = math.ceil(14 * sigma) + 20
        counts = histogram(sampler(1).gaussian(sigma, size), reach)
        expected = size * gaussian_pmf(np.arange(-reach, reach + 1), sigma)
        assert chi_square(counts, expected) > ALPHA

    @pytest.mark.parametrize("sigma", [2.0**20, 1.37 * 2**20, 2.0**36, 1.9 * 2**36, 2.0**40])
    def test_binned_frequencies_at_large_sigma(self, sigma: float) -> None:
        size = 600_000
        draws = sampler(2).gaussian(sigma, size)
        edges = np.round(np.linspace(-5, 5, 301) * sigma).astype(np.int64)
        inside = draws[(draws >= edges[0]) & (draws < edges[-1])]
        counts = np.bincount(np.searchsorted(edges, inside, side="right") - 1, minlength=300)
        # The sum over the integers a..b-1 is the integral from a - 1/2 to b - 1/2, to within 1 / sigma^2.
        expected = size * np.diff(special.ndtr((edges - 0.5) / sigma))
        assert chi_square(counts, expected) > ALPHA

    @pytest.mark.parametrize("sigma", [2.0**20, 2.0**36, 2.0**40])
    def test_low_digits_are_uniform_at_large_sigma(self, sigma: float) -> None:
        draws = sampler(3).gaussian(sigma, 200_000)
        for divisor in (64, 81, 100):
            counts = np.bincount(draws % divisor, minlength=divisor)
            assert chi_square(counts, np.full(divisor, 200_000 / divisor)) > ALPHA

    @pytest.mark.parametrize("sigma", [3.0, 200.0, 2.0**20, 2.0**36, 2.0**40])
    def test_tails_weigh_what_they_should(self, sigma: float) -> None:
        size = 1_000_000
        draws = np.abs(sampler(4).gaussian(sigma, size))
        for multiple in (3, 4):
            start = math.ceil(multiple * sigma)
            if sigma < 1000:
                weight = 2 * gaussian_pmf(np.arange(start, 40 * start), sigma).sum()
            else:
                weight = 2 * special.ndtr(-(start - 0.5) / sigma)
            assert stats.binomtest(int((draws >= start).sum()), size, weight).pvalue > ALPHA

    @pytest.mark.parametrize("sigma", [0.7, 20.0, 2.0**40])
    def test_moments_and_symmetry(self, sigma: float) -> None:
        size = 400_000
        draws = sampler(5).gaussian(sigma, size)
        exact = Fraction(sum(int(z) ** 2 for z in draws), size)
        support = np.arange(-40, 41)
        variance = (support**2 * gaussian_pmf(support, sigma)).sum() if sigma < 1 else sigma**2
        spread = variance * math.sqrt(3 / size)
        assert abs(float(exact) - variance) < 6 * spread
        assert abs(float(Fraction(int(draws.sum()), size))) < 6 * sigma / math.sqrt(size)
        positive, negative = int((draws > 0).sum()), int((draws < 0).sum())
        assert stats.binomtest(positive, positive + negative).pvalue > ALPHA

    @pytest.mark.parametrize("sigma", [0.7, 30.0])
    def test_agrees_with_opendp(self, sigma: float) -> None:
        opendp = pytest.importorskip("opendp.prelude", reason="compares with OpenDP")
        opendp.enable_features("contrib")
        space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="i64")
        size = 20_000
        theirs = np.array(opendp.m.make_gaussian(*space, scale=sigma)([0] * size))
        ours = sampler(6).gaussian(sigma, size)
        # Bins of equal weight, from the normal law, so that none is thin.
        edges = np.unique(np.floor(sigma * stats.norm.ppf(np.linspace(0.02, 0.98, 25)))) + 0.5
        table = [
            np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1) for draws in (ours, theirs)
        ]
        assert stats.chi2_contingency(table).pvalue > ALPHA


class TestLaplaceLaw:
    @pytest.mark.parametrize("scale", [0.1, 0.5, 5.0, 31.0, 50.0, 1000.0])
    def test_frequencies_are_those_of_the_exact_law(self, scale: float) -> None:
        size = 600_000
        draws = sampler(7).laplace(scale, size)
        reach = max(int(np.abs(draws).max()), math.ceil(40 * scale))
        expected = size * laplace_pmf(np.arange(-reach, reach + 1), scale)
        assert chi_square(histogram(draws, reach), expected) > ALPHA

    @pytest.mark.parametrize("scale", [2.0**21, 1.5 * 2**35, 2.0**45])
    def test_binned_frequencies_at_large_scale(self, scale: float) -> None:
        size = 600_000
        draws = sampler(8).laplace(scale, size)
        edges = np.round(np.linspace(0, 10, 301) * scale).astype(np.int64)
        magnitudes = np.abs(draws)
        counts = np.bincount(np.searchsorted(edges, magnitudes[magnitudes < edges[-1]], side="right") - 1)
        expected = -size * np.diff(np.exp(-(edges - 0.5) / scale))
        assert chi_square(counts, expected) > ALPHA
        assert stats.binomtest(int((draws > 0).sum()), size).pvalue > ALPHA

    def test_support_has_no_end(self) -> None:
        # x is 1 to within 2^-117: that is 400 scales out, ten times as far as the float64 table goes.
        scale, size, depth = 5.0, 3_000, 2.0**-117
        table = noise._Table(noise._Laplace(scale))
        further = ScriptedBits(SeededBits(9))
        draws = np.empty(size, dtype=np.int64)
        for i in range(size):
            further.script = [2**64 - 1]
            draws[i], kept = table.resolve(noise._LazyUniform(2**53 - 1, further), 0)
            assert kept
        m = np.arange(350, 700)
        beyond = 2 / (1 + math.exp(-1 / scale)) * np.exp(-m / scale)
        pmf = -np.diff(np.minimum(beyond, depth)) / depth
        assert draws.min() > 400
        assert draws.max() < 700
        assert chi_square(np.bincount(draws - 350, minlength=len(pmf)), size * pmf) > ALPHA


class ScriptedBits:
    """Words from a script first, one at a time; after it, from another source."""

    seeded = True

    def __init__(self, rest: SeededBits) -> None:
        self.script: list[int] = []
        self._rest = rest

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        if self.script:
            assert count == 1
            return np.array([self.script.pop(0)], dtype=np.uint64)
        return self._rest.words(count)

    def spawn(self) -> SeededBits:
        return self._rest.spawn()


class ExactLaw:
    """An independent evaluation of the slots in the module's docstring, to sixty digits."""

    def __init__(self, law: noise._Law, sharpness: int) -> None:
        self.scale = Decimal(law.scale)
        self.sharpness = sharpness
        self.width = 2 ** max(0, math.floor(math.log2(law.scale)) - 4)
        self.starts = [h * self.width for h in range(math.ceil(20 * law.scale / self.width))]
        with localcontext(prec=60):
            weights = [self.weight(start) for start in self.starts]
            if self.width > 1:
                weights[0] = Decimal(1)
            self.edges = list(accumulate(weights, initial=Decimal(0)))
            self.total = self.edges[-1]
            if sharpness == 1:
                # The geometric series goes on without end.
                ratio = (-self.width / self.scale).exp()
                self.total += self.weight(self.starts[-1] + self.width) / (1 - ratio)

    def weight(self, m: int) -> Decimal:
        with localcontext(prec=60):
            return (
                Decimal("0.5") if m == 0 else (-((m / self.scale) ** self.sharpness) / self.sharpness).exp()
            )

    def share(self, value: Decimal) -> Fraction:
        return Fraction(value) / Fraction(self.total)


LAWS = [
    *[
        (noise._Gaussian(sigma, 128), 2)
        for sigma in (0.3, 0.7, 3.0, 16.0, 40.0, 200.0, 2.0**36, 1.999 * 2**40)
    ],
    *[(noise._Laplace(scale), 1) for scale in (0.5, 5.0, 50.0, 1000.0, 2.0**45)],
]


@pytest.mark.parametrize(("law", "sharpness"), LAWS)
class TestStaircase:
    """Uniforms on a regular grid hit an interval as often as it is long, give or take one: no chance here."""

    def areas(self, law: noise._Law, offset: int, uniforms: list[int], bits: int) -> dict[int, int]:
        table = noise._Table(law)
        words = np.array(uniforms, dtype=np.uint64) << np.uint64(53 - bits)
        magnitudes, kept, _ = table.look_up(words, np.full(len(uniforms), offset, dtype=np.int64))
        values, counts = np.unique(magnitudes[kept], return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def test_area_of_each_magnitude_is_its_weight(self, law: noise._Law, sharpness: int) -> None:
        exact = ExactLaw(law, sharpness)
        grid = list(range(2**20))
        for offset in sorted({0, 1 % exact.width, exact.width // 3, exact.width - 1}):
            areas = self.areas(law, offset, grid, 20)
            for start in exact.starts:
                wanted = exact.share(exact.weight(start + offset)) * 2**20
                assert abs(areas.get(start + offset, 0) - wanted) <= 1
            assert set(areas) <= {start + offset for start in exact.starts}

    def test_exact_arithmetic_gives_the_same_answers(self, law: noise._Law, sharpness: int) -> None:
        del sharpness
        table = noise._Table(law)
        random = np.random.default_rng(10)
        uniforms = random.integers(2**53, size=500, dtype=np.uint64)
        offsets = random.integers(1 << law.shift, size=500)
        magnitudes, kept, doubtful = table.look_up(uniforms, offsets)
        assert not doubtful.any()
        further = SeededBits(11)
        for i in range(500):
            x = noise._LazyUniform(int(uniforms[i]), further)
            assert table.resolve(x, int(offsets[i])) == (magnitudes[i], kept[i])

    def test_float64_errors_stay_far_below_the_tolerance(self, law: noise._Law, sharpness: int) -> None:
        exact = ExactLaw(law, sharpness)
        edges = noise._Table(law)._edges
        for ours, theirs in zip(edges.tolist(), exact.edges, strict=False):
            assert abs(Fraction(ours) - exact.share(theirs)) < noise._TOLERANCE / 32

    def test_exact_arithmetic_doubts_what_it_has_rounded_off(self, law: noise._Law, sharpness: int) -> None:
        exact = ExactLaw(law, sharpness)
        table = noise._ExactTable(law, 117)
        x = noise._LazyUniform(0, SeededBits(0))
        x.length = 170
        for edge in exact.edges[1:40]:
            x.value = math.floor(exact.share(edge) * 2**x.length)
            assert table.look_up(x, 0) is None

    def test_close_calls_are_doubted_and_settled_by_further_bits(
        self, law: noise._Law, sharpness: int
    ) -> None:
        exact = ExactLaw(law, sharpness)
        table = noise._Table(law)
        offset = exact.width // 3
        further = SeededBits(12)
        size = 1_000
        block = 1 if len(exact.starts) > 1 else 0
        threshold = exact.share(exact.edges[block] + exact.weight(exact.starts[block] + offset))
        # The 53 known bits of x leave room on both sides of the threshold.
        known, room = divmod(threshold * 2**53, 1)
        _, _, doubtful = table.look_up(np.array([known], dtype=np.uint64), np.array([offset]))
        assert doubtful.all()
        below = 0
        for _ in range(size):
            magnitude, kept = table.resolve(noise._LazyUniform(int(known), further), offset)
            below += kept and magnitude == exact.starts[block] + offset
        assert stats.binomtest(below, size, float(room)).pvalue > ALPHA


class TestExactPath:
    @pytest.mark.parametrize(
        "sigma", [0.3, 0.7, 3.0, 31.0, 40.0, 200.0, 2.0**15 - 1, 2.0**15, 2.0**20, 2.0**40]
    )
    def test_gaussian_draws_do_not_depend_on_the_path(self, sigma: float) -> None:
        fast = sampler(13).gaussian(sigma, 700)
        with every_comparison_in_doubt():
            slow = sampler(13).gaussian(sigma, 700)
        np.testing.assert_array_equal(fast, slow)

    @pytest.mark.parametrize("scale", [0.1, 0.5, 5.0, 50.0, 1000.0, 2.0**45])
    def test_laplace_draws_do_not_depend_on_the_path(self, scale: float) -> None:
        fast = sampler(14).laplace(scale, 500)
        with every_comparison_in_doubt():
            slow = sampler(14).laplace(scale, 500)
        np.testing.assert_array_equal(fast, slow)

    def test_with_a_very_long_tail(self) -> None:
        fast = sampler(15, tail_bits=1300).gaussian(7.5, 300)
        with every_comparison_in_doubt():
            slow = sampler(15, tail_bits=1300).gaussian(7.5, 300)
        np.testing.assert_array_equal(fast, slow)

    @settings(max_examples=40, deadline=None)
    @given(power=st.floats(-4, 45), seed=st.integers(0, 2**32))
    def test_at_any_scale(self, power: float, seed: int) -> None:
        fast, slow = sampler(seed), sampler(seed)
        expected = fast.gaussian(2.0**power, 20), fast.laplace(2.0**power, 20)
        with every_comparison_in_doubt():
            np.testing.assert_array_equal(slow.gaussian(2.0**power, 20), expected[0])
            np.testing.assert_array_equal(slow.laplace(2.0**power, 20), expected[1])

    def test_the_path_is_really_taken(self) -> None:
        with mock.patch.object(noise._Table, "resolve", side_effect=AssertionError("resolved")):
            sampler(16).gaussian(200.0, 1000)
            with every_comparison_in_doubt(), pytest.raises(AssertionError, match="resolved"):
                sampler(16).gaussian(200.0, 1000)


class TestScale:
    """The scale is the rational number that the float64 is, down to its last bit."""

    @pytest.mark.parametrize("scale", [0.1, 1 / 3, 1e9 / 7, 2.0**45])
    def test_exponents_are_exact(self, scale: float) -> None:
        m = 2**50 + 1
        assert Fraction(*noise._Gaussian(scale, 128).exact_exponent(m)) == m**2 / (2 * Fraction(scale) ** 2)
        assert Fraction(*noise._Laplace(scale).exact_exponent(m)) == m / Fraction(scale)

    def test_no_digit_is_lost_on_the_way(self) -> None:
        with mock.patch.object(noise, "_Table", wraps=noise._Table) as table:
            sampler(35, tail_bits=200).gaussian(1 / 3, 1)
            sampler(35).laplace(1e9 / 7, 1)
        assert [call.args for call in table.call_args_list] == [
            (noise._Gaussian(1 / 3, 200),),
            (noise._Laplace(1e9 / 7),),
        ]


class TestTruncation:
    @pytest.mark.parametrize("tail_bits", [1, 8, 64, 128, 900])
    @pytest.mark.parametrize("sigma", [0.01, 0.3, 0.7, 3.0, 16.0, 40.0, 200.0])
    def test_what_is_left_out_weighs_no_more_than_stated(self, sigma: float, tail_bits: int) -> None:
        law = noise._Gaussian(sigma, tail_bits)
        end = law.blocks(0) << law.shift
        context = Context(prec=30)
        weights = [
            context.exp(Decimal(-(z**2)) / (2 * Decimal(sigma) ** 2))
            for z in range(end, end + math.ceil(8 * sigma))
        ]
        # All weights together are at least the one of zero, and at least their integral.
        total = Decimal(max(1.0, sigma * math.sqrt(2 * math.pi)))
        assert 2 * sum(weights) / total <= Decimal(2) ** -tail_bits

    @pytest.mark.parametrize("sigma", [0.7, 3.0, 200.0])
    def test_no_draw_lies_beyond_the_end(self, sigma: float) -> None:
        # With tail_bits=6 the support ends at 3.33 sigma, beyond which 1 in 1,200 would otherwise lie.
        law = noise._Gaussian(sigma, 6)
        end = law.blocks(0) << law.shift
        draws = np.abs(sampler(17, tail_bits=6).gaussian(sigma, 200_000))
        assert draws.max() < end
        assert draws.max() > 0.6 * end

    def test_total_variation_adds_up_over_gaussian_draws(self) -> None:
        noisy = sampler(18, tail_bits=100)
        assert noisy.log2_total_variation == -math.inf
        noisy.gaussian(3.0, 24)
        noisy.laplace(3.0, 1000)
        noisy.gaussian(1e6, 40)
        assert noisy.draws == 64
        assert noisy.log2_total_variation == -94

    def test_a_billion_draws_stay_below_two_to_the_minus_fifty(self) -> None:
        assert math.log2(1e9) - 128 < -50
        noisy = NoiseSampler(SystemBits())
        noisy.gaussian(5.0, 1)
        assert noisy.log2_total_variation == -128


class TestRandomness:
    def test_spawned_samplers_are_uncorrelated(self) -> None:
        parent = SeededBits(22)
        size = 100_000
        draws = [NoiseSampler(bits).gaussian(50.0, size) for bits in (parent, parent.spawn(), parent.spawn())]
        correlations = np.asarray(np.corrcoef(draws))[np.triu_indices(3, 1)]
        assert np.abs(correlations).max() < 6 / math.sqrt(size)

    def test_consecutive_calls_and_neighboring_draws_are_uncorrelated(self) -> None:
        noisy = sampler(23)
        size = 100_000
        first, second = noisy.gaussian(50.0, size), noisy.gaussian(50.0, size)
        assert abs(stats.pearsonr(first, second).statistic) < 6 / math.sqrt(size)
        assert abs(stats.pearsonr(first[1:], first[:-1]).statistic) < 6 / math.sqrt(size)

    def test_sign_and_magnitude_are_independent(self) -> None:
        draws = sampler(24).gaussian(100.0, 200_000)
        draws = draws[draws != 0]
        deciles = np.searchsorted(np.quantile(np.abs(draws), np.linspace(0.1, 0.9, 9)), np.abs(draws))
        table = np.array([np.bincount(deciles[draws > 0]), np.bincount(deciles[draws < 0])])
        assert stats.chi2_contingency(table).pvalue > ALPHA

    def test_same_seed_same_draws(self) -> None:
        for seed in (0, 25, 2**200, np.random.SeedSequence(25)):
            first, second = NoiseSampler(SeededBits(seed)), NoiseSampler(SeededBits(seed))
            for sigma in (0.5, 20.0, 2.0**36):
                np.testing.assert_array_equal(first.gaussian(sigma, 100), second.gaussian(sigma, 100))
        assert not np.array_equal(sampler(25).gaussian(20.0, 100), sampler(26).gaussian(20.0, 100))

    def test_a_seed_gives_the_same_draws_in_every_release(self) -> None:
        noisy = sampler(27)
        assert noisy.gaussian(20.0, 8).tolist() == [38, 40, -42, -1, -3, -10, 1, 1]
        assert noisy.gaussian(2.0**36, 3).tolist() == [96640119569, -14019001080, 51255549297]
        assert noisy.laplace(20.0, 8).tolist() == [-28, 2, 11, -3, -8, -23, -11, 22]

    @pytest.mark.parametrize(("sigma", "words"), [(3.0, 1), (2.0**15 - 1, 1), (2.0**15, 2), (2.0**40, 2)])
    def test_no_bit_serves_twice(self, sigma: float, words: int) -> None:
        # One sign, 53 bits of x, and log2(sigma) - 4 bits of offset: a second word as soon as 64 are too few.
        bits = SeededBits(36)
        noisy = NoiseSampler(bits)
        with mock.patch.object(bits, "words", wraps=bits.words) as drawn:
            noisy.gaussian(sigma, 1)
        assert drawn.call_count == words

    def test_system_bits_differ_each_time(self) -> None:
        noisy = NoiseSampler(SystemBits())
        first, second = noisy.gaussian(1e6, 50), noisy.gaussian(1e6, 50)
        third = NoiseSampler(SystemBits()).gaussian(1e6, 50)
        assert len({first.tobytes(), second.tobytes(), third.tobytes()}) == 3

    def test_the_sampler_knows_where_its_bits_come_from(self) -> None:
        assert sampler(29).seeded
        assert not NoiseSampler(SystemBits()).seeded


class TestInterface:
    def test_weights_too_small_for_a_float_are_no_errors(self) -> None:
        with np.errstate(all="raise"):  # as careful users may have it
            assert sampler(40, tail_bits=2000).gaussian(3.0, 100).std() > 0

    @pytest.mark.parametrize("size", [0, 1, 17, 100_000])
    def test_only_integers_leave(self, size: int) -> None:
        noisy = sampler(30)
        for draws in (noisy.gaussian(100.0, size), noisy.laplace(100.0, size)):
            assert draws.dtype == np.int64
            assert draws.shape == (size,)

    def test_sigma_may_be_any_real_number_type(self) -> None:
        numbers: list[Any] = [3, np.int64(3), np.float64(3), np.float32(3), Fraction(3)]
        for sigma in numbers:
            np.testing.assert_array_equal(sampler(31).gaussian(sigma, 20), sampler(31).gaussian(3.0, 20))

    @pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-8, 0.01])
    def test_tiny_scales_give_no_noise(self, scale: float) -> None:
        assert not sampler(32).gaussian(scale, 1000).any()
        assert not sampler(32).laplace(scale, 1000).any()
        with every_comparison_in_doubt():
            assert not sampler(32).gaussian(scale, 20).any()
            assert not sampler(32).laplace(scale, 20).any()

    @pytest.mark.parametrize(
        "scale", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, 2.0**45 * 1.001, 10**400, "3", None, 1j, [1.0]]
    )
    def test_scales_without_sense_are_refused(self, scale: float) -> None:
        with pytest.raises(ParameterError, match="sigma must be a finite number above 0"):
            sampler(33).gaussian(scale, 1)
        with pytest.raises(ParameterError, match="scale must be a finite number above 0"):
            sampler(33).laplace(scale, 1)

    @pytest.mark.parametrize("size", [-1, 2.5, "3", None])
    def test_sizes_without_sense_are_refused(self, size: int) -> None:
        with pytest.raises(ParameterError, match="size must be"):
            sampler(34).gaussian(1.0, size)

    @pytest.mark.parametrize("tail_bits", [0, -5, 5000])
    def test_tails_without_sense_are_refused(self, tail_bits: int) -> None:
        with pytest.raises(ParameterError, match="tail_bits must be"):
            NoiseSampler(SystemBits(), tail_bits)

    @pytest.mark.parametrize("seed", [-1, 1.5, "seed", None])
    def test_seeds_without_sense_are_refused(self, seed: int) -> None:
        with pytest.raises(ParameterError, match="seed must be"):
            SeededBits(seed)

    @settings(max_examples=150, deadline=None)
    @given(
        scale=st.one_of(st.floats(5e-324, 2.0**45), st.floats(-10, 45).map(lambda power: 2.0**power)),
        tail_bits=st.one_of(st.integers(1, 200), st.integers(1, 4096)),
        size=st.integers(0, 60),
        seed=st.integers(0, 2**64),
    )
    def test_no_scale_crashes(self, scale: float, tail_bits: int, size: int, seed: int) -> None:
        noisy = sampler(seed, tail_bits)
        gaussian, laplace = noisy.gaussian(scale, size), noisy.laplace(scale, size)
        assert gaussian.dtype == laplace.dtype == np.int64
        assert gaussian.shape == laplace.shape == (size,)
        assert noisy.draws == size
        if size:
            law = noise._Gaussian(scale, tail_bits)
            assert int(np.abs(gaussian).max()) < law.blocks(0) << law.shift
            assert int(np.abs(laplace).max()) <= 60 * scale

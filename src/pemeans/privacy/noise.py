r"""Exact integer noise: the discrete Gaussian and the discrete Laplace distribution.

Both laws have probability mass proportional to :math:`e^{-f(|z|)}` on the integers :math:`z`:

========  ========================================  =============================
law       :math:`f(m)`                              support
========  ========================================  =============================
Gaussian  :math:`m^2 / (2 \sigma^2)`                cut off at ``tail_bits``
Laplace   :math:`m / b`                             all integers
========  ========================================  =============================

The scale is a float64 and is taken as the rational number that it is, exactly.

**Method.** Let :math:`g(m) = e^{-f(m)}` for :math:`m \ge 1` and :math:`g(0) = 1/2`. A magnitude with
weights :math:`g`, given a fair sign, has the wanted law, because zero then collects both halves. Magnitudes
are cut into blocks of :math:`B = 2^s` neighbors, about 16 to 32 blocks to a standard deviation. A candidate
needs a uniform real :math:`x`, a fair sign, and an offset :math:`l` uniform on :math:`0 \dots B-1`. With
:math:`w_h` the largest weight in block :math:`h`, :math:`c_h = w_0 + \dots + w_{h-1}` and :math:`T` the sum
of all of them, :math:`x T` falls into one slot :math:`[c_h, c_{h+1})`, which names the block, and then lies
uniformly within that slot, so the same :math:`x` also decides acceptance: :math:`m = hB + l` is kept when
:math:`x T < c_h + g(m)`. A kept candidate is :math:`m` with probability exactly :math:`g(m) / (B T)`. For
:math:`B = 1` nothing is ever rejected.

**Why floats do no harm.** The two questions, which slot and whether kept, compare :math:`x` with real
numbers. They are first asked in float64. The errors of that arithmetic are bounded (see ``_TOLERANCE``),
and an answer counts only if :math:`x` is farther from the number than the bound. Otherwise, at most about
once in :math:`10^{8}` candidates, both are asked again in decimal arithmetic of growing precision, with
further bits of :math:`x` drawn from a stream of their own, until there is no doubt. So the draws are those of
real arithmetic: they don't depend on how well, or on which machine, ``exp`` was computed, and only integers
leave.

**Error.** The Laplace sampler has none. The Gaussian sampler has one: its table ends with the block that
reaches :math:`t = \sigma \sqrt{2 \ln 2 \cdot (\mathtt{tail\_bits} + 2)}`, and larger magnitudes are never
drawn. Since :math:`P(|Z| \ge t) \le 2 e^{-t^2 / (2 \sigma^2)}` (the discrete Gaussian is sub-Gaussian:
Canonne, Kamath and Steinke, 2020, `arXiv:2004.00010 <https://arxiv.org/abs/2004.00010>`_), one draw is within
:math:`2^{-\mathtt{tail\_bits}}` of the true law in total variation, and :math:`n` draws are within :math:`n`
times that: see :attr:`NoiseSampler.log2_total_variation`.

The time a call takes depends on the draws, as with every rejection sampler.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from numbers import Real

import numpy as np
import numpy.typing as npt

from pemeans.errors import ParameterError
from pemeans.privacy.bits import Bits, Words

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_SCALE = 2.0**45
"""The largest scale accepted: every magnitude then fits a float64 exactly, and an int64 by far."""

MAX_TAIL_BITS = 4096
"""Keeps a table below 2^12 blocks, on which ``_TOLERANCE`` relies."""

# 16 to 32 blocks to one scale: at most 3 % of the candidates are rejected, and the table stays in the cache.
_LOG2_BLOCKS_PER_SCALE = 4

# A float64 holds 53 bits of x exactly. The other 11 bits of the word are the sign and the offset, if it fits.
_UNIFORM_BITS = 53
_SPARE_BITS = 64 - _UNIFORM_BITS

# Bound on the error of every number compared in float64, in units of T. Let e = 2^-53, H the number of
# blocks and t = scale / B < 32. Then H <= 76 t + 1 < 2^12 (76 from MAX_TAIL_BITS) and T >= max(1, t) / 2,
# so H / T < 2^8.
# - g(m): m and the scale are exact and f(m) takes at most three roundings, which moves g by at most 3e f g
#   < 2e; exp itself is allowed 16 units in the last place, 32e. Together below 2^6 e = 2^-47.
# - c_h and T: the weights' errors add up to at most 2^-47 H <= 2^-39 T, and summing adds H e T <= 2^-41 T;
#   the Laplace tail left out of T is below 2^-52 T. Dividing one by the other doubles this, below 2^-37.6.
# - the threshold adds 2^-46 for its own weight, and x, known to 53 bits, is an interval of length e.
# All of it stays below half the tolerance in the worst case, and some 2^-45 is typical. A larger tolerance
# is slower and changes no draw: the tests raise it to see just that.
_TOLERANCE = 2.0**-36

# Candidates handled at once: the temporaries then stay in the second-level cache.
_CHUNK = 1 << 14


class NoiseSampler:
    """Draws exact discrete Gaussian and discrete Laplace noise.

    Parameters
    ----------
    bits
        Where randomness comes from: `SystemBits` for privacy, `SeededBits` for studies.
    tail_bits
        One Gaussian draw is within ``2**-tail_bits`` of its law in total variation.

    Examples
    --------
    >>> from pemeans.privacy.bits import SeededBits
    >>> sampler = NoiseSampler(SeededBits(1))
    >>> noise = sampler.gaussian(sigma=20.0, size=1000)
    >>> noise.dtype, bool(18 < noise.std() < 22)
    (dtype('int64'), True)
    >>> sampler.draws, round(sampler.log2_total_variation, 1)
    (1000, -118.0)
    """

    def __init__(self, bits: Bits, tail_bits: int = 128) -> None:
        if not 1 <= tail_bits <= MAX_TAIL_BITS:
            raise ParameterError(
                f"tail_bits must be between 1 and {MAX_TAIL_BITS}, got {tail_bits!r}; 128 is plenty"
            )
        self._bits = bits
        self._further_bits = bits.spawn()
        self._tail_bits = tail_bits
        self._draws = 0

    @property
    def seeded(self) -> bool:
        """Whether the noise can be reproduced from a seed."""
        return self._bits.seeded

    @property
    def draws(self) -> int:
        """How many Gaussian values were drawn so far."""
        return self._draws

    @property
    def log2_total_variation(self) -> float:
        """Bound on the total-variation error of all draws so far together, as a base-2 logarithm."""
        return math.log2(self._draws) - self._tail_bits if self._draws else -math.inf

    def gaussian(self, sigma: float, size: int) -> Integers:
        """Draw ``size`` independent values z with probability proportional to ``exp(-z^2 / (2 sigma^2))``."""
        law = _Gaussian(_checked_scale("sigma", sigma), self._tail_bits)
        noise = self._draw(law, _checked_size(size))
        self._draws += noise.size
        return noise

    def laplace(self, scale: float, size: int) -> Integers:
        """Draw ``size`` independent values z with probability proportional to ``exp(-|z| / scale)``."""
        return self._draw(_Laplace(_checked_scale("scale", scale)), _checked_size(size))

    def _draw(self, law: _Law, size: int) -> Integers:
        table = _Table(law)
        noise = np.empty(size, dtype=np.int64)
        filled = 0
        while filled < size:
            wanted = size - filled
            # A few spare candidates mostly save a second round for a handful of rejected ones.
            spare = wanted // 16 + 16 if law.shift else 0
            kept = self._candidates(table, min(wanted + spare, _CHUNK))[:wanted]
            noise[filled : filled + kept.size] = kept
            filled += kept.size
        return noise

    def _candidates(self, table: _Table, count: int) -> Integers:
        """Try ``count`` candidates and return those that are kept, with their signs."""
        shift = table.law.shift
        first = self._bits.words(count)
        second = first if shift < _SPARE_BITS else self._bits.words(count)
        uniforms = first >> np.uint64(_SPARE_BITS)
        offsets = ((second >> 1) & ((1 << shift) - 1)).astype(np.int64)
        magnitudes, kept, doubtful = table.look_up(uniforms, offsets)
        for index in np.flatnonzero(doubtful):
            x = _LazyUniform(int(uniforms[index]), self._further_bits)
            magnitudes[index], kept[index] = table.resolve(x, int(offsets[index]))
        return np.where(second & 1, -magnitudes, magnitudes)[kept]


@dataclass(frozen=True)
class _Law(ABC):
    """What the sampler must know of a distribution."""

    scale: float

    @property
    def shift(self) -> int:
        """The base-2 logarithm of the block width."""
        return max(0, math.frexp(self.scale)[1] - 1 - _LOG2_BLOCKS_PER_SCALE)

    @property
    def first_weight(self) -> float:
        """The largest weight in the first block: 1/2 if zero is alone there, else 1 is a bound."""
        return 1.0 if self.shift else 0.5

    def weights(self, magnitudes: Integers) -> Floats:
        """Compute g in float64, but for g(0); one too small for a float is 0."""
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(-self.exponent(magnitudes)))

    def blocks(self, bits: float) -> int:
        """How many blocks a table of ``bits`` bits of precision needs."""
        return max(1, math.ceil(math.ldexp(self.reach(bits), -self.shift)))

    @abstractmethod
    def reach(self, bits: float) -> float:
        """The magnitude from which on all weights together do not matter at ``bits`` bits of precision."""

    @abstractmethod
    def exponent(self, magnitudes: Integers) -> Floats:
        """Compute f in float64, with at most three roundings."""

    @abstractmethod
    def exact_exponent(self, magnitude: int) -> tuple[int, int]:
        """Compute f as numerator and denominator."""


@dataclass(frozen=True)
class _Gaussian(_Law):
    tail_bits: int

    def reach(self, bits: float) -> float:
        # The support ends here at any precision. The bound 2 exp(-t^2 / (2 sigma^2)) <= 2^-tail_bits asks for
        # one bit more than tail_bits; another one makes up for rounding.
        del bits
        return self.scale * math.sqrt(2 * math.log(2) * (self.tail_bits + 2))

    def exponent(self, magnitudes: Integers) -> Floats:
        ratio = magnitudes / self.scale
        return 0.5 * ratio * ratio

    def exact_exponent(self, magnitude: int) -> tuple[int, int]:
        numerator, denominator = self.scale.as_integer_ratio()
        return (magnitude * denominator) ** 2, 2 * numerator**2


@dataclass(frozen=True)
class _Laplace(_Law):
    def reach(self, bits: float) -> float:
        # Blocks from H on weigh exp(-H B / b) (1 + 1 / (exp(B / b) - 1)) <= exp(-H B / b) (1 + b / B) in
        # all, and b / B < 32: six bits more than asked for keep them below 2^-bits.
        return self.scale * math.log(2) * (bits + 6)

    def exponent(self, magnitudes: Integers) -> Floats:
        return magnitudes / self.scale

    def exact_exponent(self, magnitude: int) -> tuple[int, int]:
        numerator, denominator = self.scale.as_integer_ratio()
        return magnitude * denominator, numerator


class _Table:
    """The slots of a law in float64, scaled so that all of them together have length one."""

    def __init__(self, law: _Law) -> None:
        self.law = law
        weights = law.weights(np.arange(law.blocks(_UNIFORM_BITS), dtype=np.int64) << law.shift)
        weights[0] = law.first_weight
        edges = np.concatenate(([0.0], np.cumsum(weights)))
        self._total = edges[-1]
        self._edges = edges / self._total
        self._exact: dict[int, _ExactTable] = {}

    def look_up(
        self, uniforms: Words, offsets: Integers
    ) -> tuple[Integers, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return magnitudes, which of them are kept, and which of these answers are in doubt."""
        x = uniforms * 2.0**-_UNIFORM_BITS
        blocks = np.searchsorted(self._edges, x, side="right") - 1
        magnitudes = (blocks << self.law.shift) + offsets
        weights = self.law.weights(magnitudes)
        weights[magnitudes == 0] = 0.5
        left = self._edges[blocks]
        threshold = left + weights / self._total
        room = np.minimum(x - left, self._edges[blocks + 1] - x)
        doubtful = np.minimum(room, np.abs(threshold - x)) < _TOLERANCE
        return magnitudes, x < threshold, doubtful

    def resolve(self, x: _LazyUniform, offset: int) -> tuple[int, bool]:
        """Return the magnitude and whether it is kept, beyond doubt."""
        while True:
            x.extend()
            if x.length not in self._exact:
                self._exact[x.length] = _ExactTable(self.law, x.length)
            answer = self._exact[x.length].look_up(x, offset)
            if answer is not None:
                return answer


class _LazyUniform:
    """A uniform real whose first ``length`` bits are known: it lies in [value, value + 1] 2^-length."""

    def __init__(self, value: int, further_bits: Bits) -> None:
        self.value = value
        self.length = _UNIFORM_BITS
        self._further_bits = further_bits

    def extend(self) -> None:
        """Draw 64 more bits."""
        self.value = (self.value << 64) | int(self._further_bits.words(1)[0])
        self.length += 64


class _ExactTable:
    """The slots of a law as integers in units of 10^-digits, with a bound on what was rounded off."""

    def __init__(self, law: _Law, bits: int) -> None:
        self._law = law
        # 10^-digits is finer than 2^-bits. Two more digits make each weight right to one unit: the quotient
        # and its exponential each err by less than half a unit in their own last place, and y exp(-y) < 1.
        self._digits = bits // 3
        self._unit: int = 10**self._digits
        self._context = Context(prec=self._digits + 2, Emin=MIN_EMIN, Emax=MAX_EMAX)
        blocks = law.blocks(self._digits * math.log2(10))
        self._edges: list[int] = [0, int(law.first_weight * 2) * self._unit // 2]
        for block in range(1, blocks):
            self._edges.append(self._edges[-1] + self._weight(block << law.shift))
        # Each weight is off by two units at most, a threshold by one weight more, the tail by one unit.
        self._slack = 2 * blocks + 3

    def look_up(self, x: _LazyUniform, offset: int) -> tuple[int, bool] | None:
        """Return the magnitude and whether it is kept, or None if more bits are needed to tell."""
        lowest = x.value * (self._edges[-1] - self._slack)
        highest = (x.value + 1) * (self._edges[-1] + self._slack)

        def above(number: int) -> bool:
            return lowest >= (number + self._slack) << x.length

        def below(number: int) -> bool:
            return highest <= (number - self._slack) << x.length

        block = bisect_right(self._edges, lowest >> x.length) - 1
        if block == len(self._edges) - 1:
            return None
        left, right = self._edges[block], self._edges[block + 1]
        magnitude = (block << self._law.shift) + offset
        threshold = left + self._weight(magnitude)
        in_slot = (block == 0 or above(left)) and below(right)
        if not in_slot or not (above(threshold) or below(threshold)):
            return None
        return magnitude, below(threshold)

    def _weight(self, magnitude: int) -> int:
        if magnitude == 0:
            return self._unit // 2
        numerator, denominator = self._law.exact_exponent(magnitude)
        exponent = self._context.divide(Decimal(-numerator), Decimal(denominator))
        return int(self._context.scaleb(self._context.exp(exponent), self._digits))


def _checked_scale(name: str, value: float) -> float:
    if not (isinstance(value, Real) and 0 < value <= MAX_SCALE):
        raise ParameterError(
            f"{name} must be a finite number above 0 and at most 2^45, got {value!r}; use other units"
        )
    return float(value)


def _checked_size(value: int) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        size = -1
    if size < 0:
        raise ParameterError(
            f"size must be a whole number, 0 or more, got {value!r}; pass the count of values needed"
        )
    return size

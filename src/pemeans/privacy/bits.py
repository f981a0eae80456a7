"""Where randomness comes from: the operating system, or a seed."""

from __future__ import annotations

import hashlib
import operator
import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pemeans.errors import ParameterError

Words = npt.NDArray[np.uint64]


class Bits(Protocol):
    """A source of independent uniform 64-bit words."""

    @property
    def seeded(self) -> bool:
        """Whether somebody who knows a seed can reproduce the words."""

    def words(self, count: int) -> Words:
        """Return the next ``count`` words."""

    def spawn(self) -> Bits:
        """Return a new source, independent of this one and of all others."""


class SystemBits:
    """Words from the operating system's cryptographic generator.

    Nothing is kept between calls, so two processes after a fork never share a word.

    Examples
    --------
    >>> SystemBits().words(3).shape
    (3,)
    """

    seeded = False

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words."""
        return _as_words(os.urandom(8 * count))

    def spawn(self) -> SystemBits:
        """Return another source; all of them are independent."""
        return SystemBits()


class SeededBits:
    """Words expanded from a seed by SHAKE-128: reproducible, hence not private to whoever knows the seed.

    SHAKE-128 costs about as much as the operating system's generator. Philox would be four times faster, but
    words are a fifth to a third of the price of a draw, and a cryptographic stream stays noise to whoever
    does not know the seed. It is also the same on every machine and under every version of NumPy.

    Parameters
    ----------
    seed
        A non-negative integer, or a `numpy.random.SeedSequence`, which is read and left as it is.

    Examples
    --------
    >>> bool((SeededBits(7).words(4) == SeededBits(7).words(4)).all())
    True
    """

    seeded = True

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self._key = _key_of(seed)
        self._calls = 0

    def words(self, count: int) -> Words:
        """Return the next ``count`` words."""
        return _as_words(self._expand(b"words", 8 * count))

    def spawn(self) -> SeededBits:
        """Return a source with a key of its own, derived from this one."""
        return SeededBits(int.from_bytes(self._expand(b"spawn", 16), "little"))

    def _expand(self, purpose: bytes, length: int) -> bytes:
        """Hash key, purpose and a counter, each of fixed length, into ``length`` bytes not used before."""
        self._calls += 1
        return hashlib.shake_128(self._key + purpose + self._calls.to_bytes(8, "little")).digest(length)


def _as_words(data: bytes) -> Words:
    # Little-endian everywhere, so that a seed gives the same draws on every machine.
    return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False)


def _key_of(seed: int | np.random.SeedSequence) -> bytes:
    if not isinstance(seed, np.random.SeedSequence):
        try:
            seed = np.random.SeedSequence(operator.index(seed))
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"seed must be a non-negative integer or a SeedSequence, got {seed!r}"
            ) from error
    return seed.generate_state(4, np.uint64).astype("<u8").tobytes()

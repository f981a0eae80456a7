"""The two sources of randomness; what becomes of their bits is tested in test_noise.py."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np

from pemeans.privacy.bits import Bits, SeededBits, SystemBits


def test_each_bit_is_a_fair_coin() -> None:
    for bits in (SeededBits(19), SeededBits(19).spawn(), SystemBits()):
        words = bits.words(50_000)
        assert words.dtype == np.uint64
        ones = [int(((words >> np.uint64(i)) & np.uint64(1)).sum()) for i in range(64)]
        assert max(abs(count - 25_000) for count in ones) < 8 * math.sqrt(50_000 / 4)


def test_streams_share_no_word() -> None:
    parent = SeededBits(20)
    child, sibling = parent.spawn(), parent.spawn()
    streams: list[Bits] = [
        parent,
        child,
        sibling,
        child.spawn(),
        SeededBits(21),
        SeededBits(21).spawn(),
        SystemBits(),
    ]
    words = np.concatenate([stream.words(10_000) for stream in streams for _ in range(2)])
    assert len(np.unique(words)) == len(words)


def test_seed_sequence_is_left_as_it_is() -> None:
    sequence = np.random.SeedSequence(28)
    SeededBits(sequence).spawn().words(10)
    assert sequence.n_children_spawned == 0
    other = sequence.spawn(1)[0]
    assert not np.array_equal(SeededBits(sequence).words(4), SeededBits(other).words(4))


def test_system_bits_keep_nothing_between_calls() -> None:
    # So that a forked child never draws the words of its parent.
    with mock.patch("os.urandom", side_effect=bytes) as urandom:
        bits = SystemBits()
        bits.words(3)
        bits.words(1)
        bits.spawn().words(2)
    assert [call.args for call in urandom.call_args_list] == [(24,), (8,), (16,)]

"""Choosing privately: the number of a choice with nearly the least loss, and nothing else.

The *exponential mechanism* picks choice i with a probability proportional to ``exp(-e loss_i / s)``. Here
geometric noise of the same rate is added to every loss, and the least noisy loss wins. But for ties that is
*permute and flip* (Ding, Kifer, Steinke, Wang & Zhang 2021), whose loss never exceeds that of the exponential
mechanism, be it on average or with any given probability, and down to half of it (McKenna & Sheldon 2020).
"""

from __future__ import annotations

import numpy as np

from pemeans.kernels.grid import IntArray
from pemeans.privacy.noise import NoiseSampler


def noisy_minimum(losses: IntArray, scale: float, noise: NoiseSampler) -> int:
    r"""The number of the least loss, each less geometric noise of this scale; the lowest among equal ones.

    With a scale of ``s / e`` it is e-DP, where one row changes the difference of any two losses by at most s.

    Notes
    -----
    Fix choice i and the noise of all others. Then i wins exactly when its own noise z reaches some whole
    number t, which depends on the differences between losses; so a row moves t by at most s. The noise has
    ``P(z >= t) = min(1, exp(-t e / s))``, and s steps change that by a factor of at most ``exp(e)``. This
    holds whatever the others' noise, hence for the probability that i wins. No factor of 2 is needed,
    even where one row may raise one loss and lower another: s bounds what it does to their difference.

    Examples
    --------
    >>> from pemeans.privacy.bits import SystemBits
    >>> noisy_minimum(np.array([[90, 9], [70, 80]]), scale=0.1, noise=NoiseSampler(SystemBits()))
    1
    """
    flat = losses.ravel()
    return int((flat if scale == 0 else flat - geometric(scale, flat.size, noise)).argmin())


def geometric(scale: float, size: int, noise: NoiseSampler) -> IntArray:
    """Whole numbers z from 0 up with a probability proportional to ``exp(-z / scale)``, exactly.

    It is the law of Laplace noise given that it is not negative.
    """
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        drawn = noise.laplace(scale, 2 * (size - kept.size) + 16)
        kept = np.concatenate([kept, drawn[drawn >= 0]])
    return kept[:size]

"""The fit that every engine must give to the last bit, and the data for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans
from pemeans.estimators import PrivateKMeans
from pemeans.progress import Progress

N, D = 1501, 18
NAMES = [f"c{j}" for j in range(D)]
SECRET = 123456.789
"""A value that no log and no message may show."""
METHODS: dict[str, Callable[..., PrivateKMeans]] = {
    "DPKMeans": lambda **options: DPKMeans(3, epsilon=0.5, **options),
    "PEMeans": lambda **options: PEMeans(3, n_iterations=3, n_samples=1000, **options),  # in public, 1000
    "HDPEMeans": lambda **options: HDPEMeans(3, n_iterations=4, **options),
}


@cache
def as_array() -> npt.NDArray[np.float64]:
    """Three clumps, some rows twice and some far outside of the domain."""
    rng = np.random.default_rng(5)
    rows = rng.normal(rng.integers(-1, 2, size=(N, 1)) * 2.0, 1.0, size=(N, D))
    rows[100:140] = rows[7]
    rows[::97] *= 1e9
    return rows


def as_frame() -> pd.DataFrame:
    return pd.DataFrame(as_array(), columns=NAMES)


def fitted(
    method: str, data: Any, progress: Callable[[Progress], None] | bool = False
) -> tuple[bytes, list[int], dict[str, Any]]:
    """All that a fit under one seed gives: centers to the bit, sizes, receipt."""
    model = METHODS[method](domain=Domain.box(-8, 8), random_state=11, progress=progress).fit(data)
    return model.cluster_centers_.tobytes(), model.cluster_sizes_.tolist(), model.receipt_.to_dict()


@cache
def wanted(method: str, named: bool) -> tuple[bytes, list[int], dict[str, Any]]:
    """What the fit gives in memory; the receipt names the columns where they have names."""
    return fitted(method, as_frame() if named else as_array())

"""Points are accepted in order, while they keep their distance; C and NumPy agree to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from pemeans.kernels.grid import FloatArray
from pemeans.kernels.native import native
from pemeans.kernels.packing import LANES, Packing

HOW = [
    pytest.param("_offer_in_numpy", id="numpy"),
    pytest.param(
        "_offer_in_c",
        id="c",
        marks=pytest.mark.skipif(native is None, reason="without a C compiler there is only the NumPy twin"),
    ),
]


def packed(how: str, candidates: FloatArray, most: int, distance: float, patience: int = 100) -> Packing:
    packing = Packing(most, candidates.shape[1], distance, patience)
    getattr(packing, how)(candidates)
    return packing


def by_definition(candidates: FloatArray, most: int, distance: float, patience: int) -> list[list[float]]:
    accepted: list[list[float]] = []
    rejected = 0
    for candidate in candidates.tolist():
        if len(accepted) == most or rejected == patience:
            break
        if all(np.hypot.reduce(np.subtract(candidate, other)) >= distance for other in accepted):
            accepted.append(candidate)
            rejected = 0
        else:
            rejected += 1
    return accepted


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("d", [1, 2, 5, 30])
@pytest.mark.parametrize("most", [1, LANES - 1, LANES, LANES + 1, 60])
def test_packing_does_what_it_says(how: str, d: int, most: int) -> None:
    candidates = np.random.default_rng(d + most).uniform(-1, 1, size=(300, d))
    distance = 0.3 * np.sqrt(d)
    packing = packed(how, candidates, most, distance, patience=20)
    wanted = by_definition(candidates, most, distance, 20)
    assert packing.points.tolist() == wanted
    assert packing.full == (len(wanted) == most)
    assert packing.full != packing.stuck or len(wanted) < most


@pytest.mark.parametrize("how", HOW)
def test_exact_distance_is_far_enough(how: str) -> None:
    steps = np.arange(10.0)[:, np.newaxis] / 4
    assert packed(how, steps, most=20, distance=0.5).points.ravel().tolist() == [0, 0.5, 1, 1.5, 2]


@pytest.mark.parametrize("how", HOW)
def test_duplicates_exhaust_patience(how: str) -> None:
    packing = packed(how, np.zeros((200, 3)), most=5, distance=0.1, patience=100)
    assert packing.stuck
    assert not packing.full
    assert packing.points.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("how", HOW)
def test_offers_add_up(how: str) -> None:
    candidates = np.random.default_rng(3).uniform(-1, 1, size=(200, 2))
    at_once = packed(how, candidates, most=50, distance=0.2)
    in_parts = Packing(50, 2, 0.2, patience=100)
    for part in np.array_split(candidates, 7):
        getattr(in_parts, how)(part)
    assert (in_parts.points == at_once.points).all()


@pytest.mark.skipif(native is None, reason="without a C compiler there is only the NumPy twin")
@pytest.mark.parametrize("seed", range(40))
def test_twins_agree_where_rounding_decides(seed: int) -> None:
    """Candidates a hair within or beyond the distance: a fused multiplication would tell the twins apart."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 40))
    distance = float(rng.uniform(0.1, 1))
    base = rng.standard_normal((5, d))
    directions = rng.standard_normal((200, d))
    directions *= distance / np.linalg.norm(directions, axis=1, keepdims=True)
    candidates = np.concatenate([base, base[rng.integers(0, 5, 200)] + directions])
    one, other = (packed(how, candidates, 150, distance, 10**6) for how in ("_offer_in_c", "_offer_in_numpy"))
    assert one.points.shape == other.points.shape
    assert (one.points == other.points).all()

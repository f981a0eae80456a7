"""Ten thousand malformed inputs: each works, or raises an error of pemeans; none hangs."""

from __future__ import annotations

import json
import math
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans, PemeansError, load
from pemeans.model import _checksum

CASES = 2500
"""Of each of the four kinds."""
SLOWEST = 5.0
"""Seconds that one case may take; a thousandth of that is usual."""

QUICK: dict[str, Any] = {"n_clusters": 2, "n_jobs": 1, "random_state": 1}
BRIEF: dict[str, Any] = {"n_iterations": 1, "n_variations": 4}
BOX = Domain.box(-3, 3)
ROWS = np.random.default_rng(0).normal(size=(12, 3))


class Odd:
    """An object that nobody thought of."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("SECRET")


JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 13, 10**6, 2**63, -(2**63), 10**400, 0.0, -0.0, 0.5, -1.5,
    1e-320, 1e308, math.nan, math.inf, -math.inf, 1j, "", "1", "nan", "SECRET", "from-data", "k-means",
    "top-k", b"1", [], [1], [1, 2, 3], [[1]], ["a"], (), (0.0, 1.0), {}, {"a": 1}, {1}, ..., int, len,
    Odd(), object(), range(3), slice(3), np.int8(3), np.uint8(255), np.float16(0.5), np.float32("nan"),
    np.float64(1e4), np.longdouble(2), np.bool_(True), np.complex64(1), np.str_("x"),
    np.datetime64("2020"), np.timedelta64(3, "s"), np.array(3), np.array([]), np.zeros(3), np.ones((1,
    1)), np.array(["a"]), np.array([None]), np.ma.masked, ROWS, pd.NA, pd.NaT, pd.Series([1.0, 2.0, 3.0]),
    pd.DataFrame({"a": [1]}), pl.Series([1.0]), pa.array([1]), BOX, Domain.ball(1), Domain.box([0, 0], 1),
    Domain, np.random.default_rng(0), np.random.RandomState(0), np.random, lambda *_: None,
]  # fmt: skip
CELLS: list[Any] = [
    0, 1, -1, 0.5, 1e308, -1e308, 5e-324, 1e150, math.nan, math.inf, -math.inf, None, "", "1", "SECRET",
    b"x", 1j, True, 10**400, 2**64, [], [1], {}, {"SECRET": 1}, Odd(), ..., pd.NA, pd.NaT, np.float32(1),
    np.complex128(2), np.datetime64("NaT"), np.timedelta64(1, "s"), np.ma.masked,
]  # fmt: skip
DTYPES: list[Any] = [
    "f2", "f4", "f8", ">f8", "g", "i1", "u1", "i8", "u8", ">i4", "?", "c8", "O", "S3", "U3", "M8[s]", "m8[D]",
    "V5", [("a", "f8"), ("b", "f8")],
]  # fmt: skip
COLUMNS: dict[str, Callable[[random.Random], Any]] = {
    "float": lambda dice: dice.gauss(0, 1),
    "int": lambda dice: dice.randrange(-9, 9),
    "null": lambda dice: dice.choice([None, 1.0]),
    "text": lambda dice: "SECRET",
    "bool": lambda dice: dice.choice([True, False]),
    "huge": lambda dice: 2**60 + dice.randrange(9),
    "mixed": lambda dice: one_of(dice, CELLS),
    "list": lambda dice: [1],
}
FRAMES: list[Callable[[Any], Any]] = [
    pd.DataFrame,
    pl.DataFrame,
    pl.LazyFrame,
    pa.table,
    sparse.csr_matrix,
    lambda columns: columns,
    lambda columns: pa.table(columns).to_batches()[0],
    lambda columns: pd.DataFrame(columns).convert_dtypes(),
    lambda columns: pd.DataFrame(list(columns.values())),
    lambda columns: pd.concat([pd.DataFrame(columns)] * 2, axis=1),
    lambda columns: pd.DataFrame(columns).to_records(),
    lambda columns: pd.Series(next(iter(columns.values()))),
    lambda columns: pl.Series(next(iter(columns.values()))),
]
LAYOUTS: list[Callable[[Any], Any]] = [
    np.asfortranarray,
    np.transpose,
    np.ma.asarray,
    list,
    lambda array: array[::-1],
    lambda array: array[::2],
    lambda array: array.tolist(),
]
VALUES: list[Any] = [
    None, True, 0, -1, 1, 1.5, 10**30, 1e308, math.nan, math.inf, "", "x", "1", [], [1], [[1.0]], {}
]  # fmt: skip


def one_of(dice: random.Random, things: Any) -> Any:
    return things[dice.randrange(len(things))]


# --- Inputs -----------------------------------------------------------------------------------------------


def some_array(dice: random.Random) -> Any:
    """An array of a random type, shape and layout, with some values that are none."""
    shape = tuple(
        dice.choice([0, 1, 2, 3, 5, 12, 17]) for _ in range(dice.choice([0, 1, 2, 2, 2, 2, 2, 3, 4]))
    )
    values = np.random.default_rng(dice.randrange(2**32)).normal(size=shape) * 10.0 ** dice.randrange(-3, 4)
    array: Any = np.asarray(values)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            array = array.astype(one_of(dice, DTYPES) if dice.random() < 0.6 else "f8")
            for _ in range(dice.choice([0, 0, 0, 1, 2]) if array.size else 0):
                array.reshape(-1)[dice.randrange(array.size)] = one_of(dice, CELLS)
        except Exception:  # not every type holds every value
            return array
    return one_of(dice, LAYOUTS)(array) if array.ndim and dice.random() < 0.5 else array


def some_lists(dice: random.Random) -> Any:
    """Nested lists of anything, often ragged."""
    width = dice.randrange(4)
    return [
        [
            one_of(dice, CELLS) if dice.random() < 0.1 else dice.gauss(0, 1)
            for _ in range(width + dice.choice([0, 0, 0, 1]))
        ]
        for _ in range(dice.randrange(6))
    ]


def some_frame(dice: random.Random) -> Any:
    """A frame of any library, with columns of any kind."""
    length = dice.choice([0, 1, 3, 12])
    columns = {}
    for j in range(dice.randrange(4)):
        kind = dice.choice([*COLUMNS, "float", "float", "float", "float"])
        columns[dice.choice(["a", "b", "", f"c{j}"])] = [COLUMNS[kind](dice) for _ in range(length)]
    try:
        return one_of(dice, FRAMES)(columns)
    except Exception:  # not every library takes every column
        return columns


def some_model(dice: random.Random, domain: Any) -> Any:
    """Any of the methods, made quick where that is possible."""
    method = one_of(dice, [PEMeans, PEMeans, HDPEMeans, HDPEMeans, DPKMeans])
    return method(**QUICK, domain=domain) if method is DPKMeans else method(**QUICK, **BRIEF, domain=domain)


def some_junk(dice: random.Random) -> Any:
    return one_of(dice, JUNK)


def data_case(dice: random.Random, folder: Path) -> Any:
    """Fit, and predict, on rows of all kinds."""
    data = one_of(dice, [some_array, some_array, some_lists, some_frame, some_junk])(dice)
    domain = one_of(
        dice, [BOX, Domain.ball(1e-150), Domain.ball(1e150), "from-data", Domain.box([0, 0, 0], 1)]
    )
    model = some_model(dice, domain)
    if dice.random() < 0.3:
        return model.fit(ROWS).score(data)
    return model.fit(data).transform(data)


def parameter_case(dice: random.Random, folder: Path) -> Any:
    """Fit with parameters that are anything."""
    model = some_model(dice, BOX)
    for name in dice.sample(sorted(set(model.get_params()) - {"progress"}), dice.choice([1, 1, 2])):
        model.set_params(**{name: one_of(dice, JUNK)})
    model.fit(ROWS)
    model.save(folder / "model.json")
    return load(folder / "model.json").predict(ROWS)


def domain_case(dice: random.Random, folder: Path) -> Any:
    """Domains of anything, used if they can be made."""

    def bound() -> Any:
        magnitude = 10.0 ** dice.choice([-320, -150, -3, 0, 0, 0, 3, 150, 151])
        plain = [dice.gauss(0, 1) * magnitude for _ in range(3)]
        return dice.choice([plain, plain[0], np.array(plain), one_of(dice, JUNK)])

    if dice.random() < 0.5:
        domain = Domain.ball(abs(dice.gauss(0, 1)) if dice.random() < 0.5 else bound(), bound())
    else:
        scale = dice.choice([True, False, False, one_of(dice, JUNK)])
        domain = Domain.box(dice.choice([-3, bound()]), dice.choice([3, bound()]), scale=scale)
    model = some_model(dice, domain).fit(ROWS * 10.0 ** dice.randrange(-9, 9))
    assert np.isfinite(model.cluster_centers_).all()
    return model.transform(ROWS)


def file_case(dice: random.Random, folder: Path) -> Any:
    """Load a file that was cut, flipped, or changed by somebody who knows about checksums."""
    whole = (folder / "whole.json").read_bytes()
    damaged = dice.choice([cut, flipped, shuffled, forged, forged, forged])(dice, whole)
    path = folder / "damaged.json"
    path.unlink(missing_ok=True)  # some file systems are slow to write a file anew
    path.write_bytes(damaged)
    model = load(path)
    assert damaged.rstrip() == whole.rstrip() or damaged.startswith(b"{"), "what loads is a model file"
    str(model.receipt_), repr(model), model.receipt_.to_json()
    model.save(folder / "again.json")
    return model.predict(ROWS)


def cut(dice: random.Random, whole: bytes) -> bytes:
    start, stop = sorted(dice.choices(range(len(whole) + 1), k=2))
    return dice.choice([whole[:stop], whole[start:], whole[:start] + whole[stop:], whole[start:stop]])


def flipped(dice: random.Random, whole: bytes) -> bytes:
    damaged = bytearray(whole)
    for _ in range(dice.choice([1, 1, 1, 5, 100])):
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def shuffled(dice: random.Random, whole: bytes) -> bytes:
    lines = whole.splitlines(keepends=True)
    dice.shuffle(lines)
    return b"".join(dice.choice([lines, lines[:3], lines * 2]))


def forged(dice: random.Random, whole: bytes) -> bytes:
    """A field anywhere deleted or replaced, and a checksum that fits."""
    document = json.loads(whole)
    parent, key = document, dice.choice(sorted(document))
    while isinstance(parent[key], dict | list) and parent[key] and dice.random() < 0.75:
        parent = parent[key]
        key = dice.choice(sorted(parent)) if isinstance(parent, dict) else dice.randrange(len(parent))
    if dice.random() < 0.3:
        del parent[key]
    else:
        parent[key] = one_of(dice, VALUES)
    text = json.dumps(document)
    if isinstance(document, dict) and dice.random() < 0.9:
        text = json.dumps(document | {"checksum": _checksum(text)})
    return text.encode()


# --- What becomes of them -----------------------------------------------------------------------------------


def outcome(case: Callable[[random.Random, Path], Any], seed: int, folder: Path) -> str | Exception:
    """That it worked or was refused in the proper way, or else the error."""
    try:
        case(random.Random(seed), folder)
    except PemeansError as error:
        # A parameter that is text is quoted; no text of a row is.
        proper = error.__context__ is None and "SECRET" not in str(error).replace("='SECRET'", "")
        return "refused" if proper else error
    except Exception as error:
        return error
    return "worked"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:X has feature names")
@pytest.mark.filterwarnings("ignore::pemeans.errors.PrivacyLeakWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("case", [data_case, parameter_case, domain_case, file_case])
def test_malformed_input_works_or_is_refused(
    case: Callable[[random.Random, Path], Any], tmp_path: Path
) -> None:
    PEMeans(**QUICK, **BRIEF, domain=BOX).fit(pl.DataFrame(ROWS, schema=["a", "b", "c"])).save(
        tmp_path / "whole.json"
    )
    became: Counter[str | Exception] = Counter()
    for seed in range(CASES):
        started = time.process_time()
        found = outcome(case, seed, tmp_path)
        assert isinstance(found, str), f"seed {seed}: {found!r}"
        assert time.process_time() - started < SLOWEST, f"seed {seed} took too long"
        became[found] += 1
    assert min(became["worked"], became["refused"]) > CASES / 50, f"the generator is one-sided: {became}"

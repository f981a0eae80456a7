"""A fitted model as a JSON document: centers, domain, receipt; save and load.

The document is plain JSON that a person can read, holds public and released values only, and is loaded
without executing anything. A checksum tells a damaged file from a good one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pemeans.domain import Domain, shown
from pemeans.errors import ModelFileError, PemeansError
from pemeans.kernels.grid import FloatArray, IntArray
from pemeans.privacy.ledger import Receipt

FORMAT = "pemeans-model"
VERSION = 1
"""Goes up when a file of the new kind can't be read by older code."""
DERIVED = ("epsilon_spent", "epsilon_so_far", "neighbors")
"""What a receipt shows but works out anew when it is read."""


@dataclass(frozen=True, eq=False)
class Model:
    """All that is known of a fitted model, in the user's units."""

    method: str
    parameters: dict[str, Any]
    feature_names: tuple[str, ...] | None
    domain: Domain
    cluster_centers: FloatArray
    cluster_sizes: IntArray
    receipt: Receipt

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document.

        Raises
        ------
        ModelFileError
            The file can't be written.
        """
        document = self.to_dict()
        text = _written(document | {"checksum": _checksum(_written(document))})
        try:
            # What UTF-8 can't hold, half a surrogate pair in a name, stands there as JSON's own escape.
            Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
            return
        except (OSError, TypeError, ValueError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        raise ModelFileError(
            f"{_name(path)} can't be written: {problem}; check that its folder exists and may be written to"
        )

    def to_dict(self) -> dict[str, Any]:
        """The document, but for its checksum."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "parameters": self.parameters,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "domain": self.domain.to_dict(),
            "cluster_centers": self.cluster_centers.tolist(),
            "cluster_sizes": self.cluster_sizes.tolist(),
            "receipt": self.receipt.to_dict(),
        }


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a document back, or say why it can't be.

    Raises
    ------
    ModelFileError
        The file is missing, damaged, of a newer version, or something else altogether.
    """
    document = _read_document(path)
    try:
        names = document["feature_names"]
        model = Model(
            method=str(document["method"]),
            parameters=dict(document["parameters"]),
            feature_names=None if names is None else tuple(map(str, names)),
            domain=Domain.from_dict(document["domain"]),
            cluster_centers=np.array(document["cluster_centers"], dtype=np.float64),
            cluster_sizes=np.array(document["cluster_sizes"], dtype=np.int64),
            receipt=Receipt.from_dict(document["receipt"]),
        )
        # Written again it must be the same: no number as text, no fraction cut off, nothing extra.
        sound = _fits_together(model) and _essence(model.to_dict()) == _essence(document)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, PemeansError):
        sound = False
    if not sound:
        raise ModelFileError(_damaged(path, "a field is missing, or not what it should be"))
    return model


def _fits_together(model: Model) -> bool:
    """Whether all parts speak of as many clusters, features and rows."""
    k, d = len(model.cluster_sizes), model.domain.n_features
    named = model.feature_names is None or len(model.feature_names) == d
    counted = model.domain.n_rows == model.receipt.n_rows
    shaped = model.cluster_sizes.shape == (k,) and model.cluster_centers.shape == (k, d)
    words = [word for release in model.receipt.releases for word in (release.name, release.statistic)]
    return named and counted and shaped and k > 0 and all(isinstance(word, str) for word in words)


def _essence(document: dict[str, Any]) -> str:
    """What a document states, without what is derived from that."""
    receipt = {name: value for name, value in document["receipt"].items() if name not in DERIVED}
    releases = [
        {name: value for name, value in release.items() if name not in DERIVED}
        for release in receipt["releases"]
    ]
    stated = document | {"receipt": receipt | {"releases": releases}}
    return json.dumps(stated, sort_keys=True, allow_nan=False)


def _read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON of a model file, its format, version and checksum checked."""
    text = _read_text(path)
    try:
        document, problem = json.loads(text, object_pairs_hook=_distinct), ""
    except (ValueError, RecursionError):
        document, problem = None, _damaged(path, "it is not JSON, or names a field twice")
    if problem:
        raise ModelFileError(problem)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(
            f"{_name(path)} is not a pemeans model file; pass one written by model.save(...)"
        )
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(_damaged(path, "its version is not a whole number"))
    if version > VERSION:
        raise ModelFileError(
            f"{_name(path)} has version {shown(version)}, but this pemeans reads versions up to {VERSION}; "
            "upgrade pemeans"
        )
    if document.pop("checksum", None) != _checksum(text):
        raise ModelFileError(_damaged(path, "its checksum does not match its content"))
    return document


def _distinct(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a field that is there twice would mean one thing to a reader and another to us."""
    document = dict(fields)
    if len(document) < len(fields):
        raise ValueError("a field twice")
    return document


def _read_text(path: str | os.PathLike[str]) -> str:
    """The file as text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "it is not text; pass a file written by model.save(...)"
    except (OSError, TypeError, ValueError) as error:
        problem = f"{getattr(error, 'strerror', None) or type(error).__name__}; check the path"
    raise ModelFileError(f"{_name(path)} can't be read: {problem}")


def _name(path: Any) -> str:
    return str(path) if isinstance(path, str | os.PathLike) else f"path={shown(path)}"


def _damaged(path: Any, why: str) -> str:
    return f"{_name(path)} is damaged: {why}; save the model again"


def _written(document: dict[str, Any]) -> str:
    """Indented JSON, with every list of plain numbers on one line."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return re.sub(r'\[\n([^][{}"]*)\]', lambda numbers: f"[{' '.join(numbers[1].split())}]", text)


def _checksum(text: str) -> str:
    """A hash of all but the checksum itself, over numbers as they are written and not as they are rounded."""

    def literal(digits: str) -> str:
        return f"number {digits}"

    document = json.loads(text, parse_float=literal, parse_int=literal, parse_constant=literal)
    document.pop("checksum", None)
    canonical = json.dumps(document, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()

"""A fitted model as a JSON document: centers, domain, receipt; save and load.

The document is plain JSON that a person can read, holds public and released values only, and is loaded
without executing anything. A checksum tells a damaged file from a good one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pemeans.domain import Domain
from pemeans.errors import ModelFileError
from pemeans.kernels.grid import FloatArray, IntArray
from pemeans.privacy.ledger import Receipt

FORMAT = "pemeans-model"
VERSION = 1
"""Goes up when a file of the new kind can't be read by older code."""


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

    def save(self, path: str | Path) -> None:
        """Write the document."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """The document, checksum included."""
        document = {
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
        return document | {"checksum": _checksum(document)}


def read_model(path: str | Path) -> Model:
    """Read a document back, or say why it can't be.

    Raises
    ------
    ModelFileError
        The file is missing, damaged, of a newer version, or something else altogether.
    """
    document = _read_document(path)
    try:
        model = Model(
            method=str(document["method"]),
            parameters=dict(document["parameters"]),
            feature_names=None if document["feature_names"] is None else tuple(document["feature_names"]),
            domain=Domain.from_dict(document["domain"]),
            cluster_centers=np.array(document["cluster_centers"], dtype=np.float64),
            cluster_sizes=np.array(document["cluster_sizes"], dtype=np.int64),
            receipt=Receipt.from_dict(document["receipt"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise ModelFileError(_damaged(path, "a field is missing or of the wrong kind")) from None
    if model.cluster_centers.shape != (len(model.cluster_sizes), model.domain.n_features):
        raise ModelFileError(_damaged(path, "the centers, sizes and domain do not fit together"))
    return model


def _read_document(path: str | Path) -> dict[str, Any]:
    """The JSON of a model file, its format, version and checksum checked."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelFileError(f"{path} can't be read: {error.strerror or error}; check the path") from None
    except (ValueError, RecursionError):
        raise ModelFileError(_damaged(path, "it is not JSON")) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a pemeans model file; pass a file written by model.save(...)")
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ModelFileError(
            f"{path} has version {version}, but this pemeans reads versions up to {VERSION}; upgrade pemeans"
        )
    if version != VERSION:
        raise ModelFileError(_damaged(path, f"its version is {str(version)[:20]!r}"))
    stated = document.pop("checksum", None)
    if stated != _checksum(document):
        raise ModelFileError(_damaged(path, "its checksum does not match its content"))
    return document


def _damaged(path: str | Path, why: str) -> str:
    return f"{path} is damaged: {why}; save the model again"


def _checksum(document: dict[str, Any]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()

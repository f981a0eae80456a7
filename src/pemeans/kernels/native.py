"""The C module, or None where it could not be built: then the NumPy twins do the work."""

from __future__ import annotations

from typing import Any

native: Any
try:
    from pemeans.kernels import _native as native  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError:
    native = None

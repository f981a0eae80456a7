"""The C modules, or None where they could not be built: then the NumPy twins do the work."""

from __future__ import annotations

from typing import Any

native: Any
try:
    from pemeans.kernels import _native as native  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError:
    native = None

native_rows: Any
try:
    from pemeans.kernels import _rows as native_rows  # type: ignore[attr-defined,no-redef,unused-ignore]
except ImportError:
    native_rows = None

"""k-means clustering of private data with differential privacy, by Private Evolution.

>>> from pemeans import Domain, DPKMeans
>>> DPKMeans(n_clusters=3, epsilon=1.0, domain=Domain.box(lower=[0, 10], upper=[120, 60]))
DPKMeans(domain=Domain(...), n_clusters=3)
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pemeans.domain import Domain
    from pemeans.errors import (
        BudgetError,
        DataError,
        DomainError,
        ModelFileError,
        ParameterError,
        PemeansError,
        PrivacyLeakWarning,
        SeededNoiseWarning,
    )
    from pemeans.estimators import DPKMeans, HDPEMeans, PEMeans, load
    from pemeans.privacy.ledger import Receipt
    from pemeans.progress import Progress

__version__ = _version("pemeans")

__all__ = [
    "BudgetError",
    "DPKMeans",
    "DataError",
    "Domain",
    "DomainError",
    "HDPEMeans",
    "ModelFileError",
    "PEMeans",
    "ParameterError",
    "PemeansError",
    "PrivacyLeakWarning",
    "Progress",
    "Receipt",
    "SeededNoiseWarning",
    "load",
]

_MODULES = ("errors", "domain", "progress", "privacy.ledger", "estimators")
"""Where the names live, quickest first: imported when asked for, so that `pemeans --help` need not wait."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, (f"pemeans.{module}" for module in _MODULES)):
            if name in vars(module):
                return getattr(module, name)
    raise AttributeError(f"module 'pemeans' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

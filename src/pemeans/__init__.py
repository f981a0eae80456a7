"""k-means clustering of private data with differential privacy, by Private Evolution.

>>> from pemeans import Domain, PEMeans
>>> PEMeans(n_clusters=3, epsilon=1.0, domain=Domain.box(lower=[0, 10], upper=[120, 60]))
PEMeans(domain=Domain(...), n_clusters=3)
"""

from importlib.metadata import version as _version

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

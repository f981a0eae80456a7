"""Every error and warning that pemeans raises on purpose.

Each message names the parameter, the value it had, and the fix. No message ever holds a private row's value.
"""

from __future__ import annotations


class PemeansError(Exception):
    """The common ancestor, so that ``except PemeansError`` catches everything pemeans raises on purpose."""


class ParameterError(PemeansError, ValueError):
    """A parameter has a value that makes no sense, or that does not fit the others."""


class DomainError(ParameterError):
    """The public domain is missing, or does not describe a box or a ball that fits the data."""


class DataError(PemeansError, ValueError):
    """The rows can't be used: NaN, infinity, text, wrong width, or none at all."""


class DataTypeError(DataError, TypeError):
    """A column holds something that is not a number."""


class BudgetError(PemeansError, RuntimeError):
    """A release was asked for that the privacy budget can't pay."""


class ClusterError(PemeansError, RuntimeError):
    """A cluster can't be reached, or has failed."""


class ModelFileError(PemeansError, ValueError):
    """A model file is damaged, newer than this version of pemeans, or not a model file."""


class PrivacyLeakWarning(UserWarning):
    """Something was done at the user's wish that the privacy guarantee does not cover."""


class SeededNoiseWarning(PrivacyLeakWarning):
    """The noise came from a seed: whoever knows the seed can subtract it, so the result is not private."""

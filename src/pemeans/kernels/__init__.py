"""Arithmetic that knows nothing of privacy."""

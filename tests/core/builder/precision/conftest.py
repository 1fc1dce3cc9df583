"""Targets that are installed for one test."""

from tests.core.testing.conftest import install

__all__ = ["install"]

"""Converters of the fields that hold a set: a declaration may give any iterable."""

from __future__ import annotations

from collections.abc import Iterable

from dryfit.network.data_types import DataType


def names(values: Iterable[str]) -> frozenset[str]:
    """A set of names. One that is frozen already stays what it is, so that a set with rules of its own is kept."""
    return values if isinstance(values, frozenset) else frozenset(values)


def data_types(values: Iterable[DataType]) -> frozenset[DataType]:
    """A set of data types."""
    return frozenset(values)

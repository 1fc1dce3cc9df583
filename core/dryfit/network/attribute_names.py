"""Which attributes of an object may be set: a misspelt one must not be taken silently and then be ignored."""

from __future__ import annotations

import functools


@functools.cache
def has_setter(cls: type, name: str) -> bool:
    """Whether the class has a property of this name that can be set."""
    found = getattr(cls, name, None)
    return isinstance(found, property) and found.fset is not None


def settable_properties(cls: type) -> frozenset[str]:
    """The names of the class's properties that can be set."""
    return frozenset(name for name in dir(cls) if has_setter(cls, name))

"""Which kind of object each declaration of a target names, so that another one is told where it is declared."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.network.data_types import DataType

Walk = Callable[[Any], Iterator[Any]]


def _itself(loaded: Any) -> Iterator[Any]:
    yield loaded


def _sequence(loaded: Any) -> Iterator[Any]:
    if isinstance(loaded, str) or not isinstance(loaded, Sequence):
        raise TypeError(type(loaded).__name__)
    yield from loaded


def _by_data_type(loaded: Any) -> Iterator[Any]:
    if not isinstance(loaded, Mapping):
        raise TypeError(type(loaded).__name__)
    for key, value in loaded.items():
        if not isinstance(key, DataType):
            raise TypeError(f"the key {key!r}")
        yield value


def _sequences_by_data_type(loaded: Any) -> Iterator[Any]:
    for value in _by_data_type(loaded):
        yield from _sequence(value)


_FORMATS = (
    _sequences_by_data_type,
    "dryfit.target.formats:TensorFormat",
    "a mapping from DataType to sequences of TensorFormat",
)
_DECLARATIONS: Mapping[str, tuple[Walk, str, str]] = {
    "limits_at": (_itself, "dryfit.target.limits:LimitTable", "a LimitTable"),
    "input_formats_at": _FORMATS,
    "output_formats_at": _FORMATS,
    "memory_pools_at": (_sequence, "dryfit.target.memory_pools:MemoryPool", "a sequence of MemoryPool"),
    "arithmetic_at": (_by_data_type, "dryfit.target.arithmetic:Arithmetic", "a mapping from DataType to Arithmetic"),
    "fusions_at": (_sequence, "dryfit.target.fusions:Fusion", "a sequence of Fusion"),
    "sparsity_at": (_itself, "dryfit.target.sparsity:Sparsity", "a Sparsity"),
    "kernels_at": (_sequence, "dryfit.target.kernels:Kernel", "a sequence of Kernel"),
}
"""Field to how its parts are reached, their class, and the whole in words. What other fields name is a function."""


def mistaken(field: str, loaded: Any) -> tuple[str, str]:
    """(what was found, what is allowed) where a declaration is of another type than its field says; "" where not.

    Args:
        field: of `Target`, one that ends in `_at`.
        loaded: what it names.
    """
    if field not in _DECLARATIONS:
        return ("", "") if callable(loaded) else (type(loaded).__name__, "a function")
    walk, place, words = _DECLARATIONS[field]
    module, _, name = place.partition(":")
    kind = getattr(importlib.import_module(module), name)
    try:
        strangers = [type(part).__name__ for part in walk(loaded) if not isinstance(part, kind)]
    except TypeError as error:
        return str(error), words
    return (f"{strangers[0]} among them" if walk is not _itself else strangers[0], words) if strangers else ("", "")

"""Objects that a target declares by name: imported when they are needed, and told where they are declared if wrong.

And converters of the fields that hold a set: a declaration may give any iterable.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.errors import PluginError, described_failure
from dryfit.network.data_types import DataType
from dryfit.target.first_import import first_import


def names(values: Iterable[str]) -> frozenset[str]:
    """Return a frozen set of names. A frozen set, including a subclass with its own rules, is kept as it is."""
    return values if isinstance(values, frozenset) else frozenset(values)


def data_types(values: Iterable[DataType]) -> frozenset[DataType]:
    """Return a set of data types."""
    return frozenset(values)


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
    """Return (found, allowed) if a declaration has another type than its field requires; "" otherwise.

    Args:
        field: field of `Target` that ends in `_at`.
        loaded: the object that it names.
    """
    if field == "cost_parameters_at":  # the records are of the target's own classes
        named = isinstance(loaded, Mapping) and all(isinstance(key, str) for key in loaded)
        return ("", "") if named else (type(loaded).__name__, "a mapping from platforms to records")
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


_examined: dict[tuple[str, str], tuple[str, str, Any]] = {}
"""Place and field to module, attribute and the object that was found to be of the right type. A declaration is asked
for thousands of times in one build, and looking through a device's formats or kernels each time took a tenth of it."""


def declared_object(place: str, device: str, field: str) -> Any:
    """Return the object that `module:attribute` names.

    Args:
        place: `module:attribute`.
        device: device of the target, used in error messages.
        field: field of the target, which defines the type of the object.

    Raises:
        PluginError: The module cannot be imported, or has no such attribute, or the attribute has another type.
    """
    known = _examined.get((place, field))
    if known is not None and getattr(sys.modules.get(known[0]), known[1], None) is known[2]:
        return known[2]
    module, _, attribute = place.partition(":")
    where = f"target {device}, {field} = {place!r}"
    try:
        with contextlib.nullcontext() if module in sys.modules else first_import(module):
            loaded = getattr(importlib.import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's module may raise anything, even SystemExit
        raise PluginError(
            "A declaration of the target could not be loaded",
            where=where,
            found=described_failure(error),
            allowed=None if module and attribute else "`module:attribute`",
            remedy="`dryfit plugins doctor` shows the traceback",
        ) from error
    found, allowed = mistaken(field, loaded)
    if found:
        raise PluginError(
            "A declaration of the target has the wrong type",
            where=where,
            found=found,
            allowed=allowed,
            remedy="Report it to the maintainers of the target; `dryfit plugins list` names its package",
        )
    _examined[place, field] = (module, attribute, loaded)
    return loaded

"""Conversion of records to plain data, and back from untrusted data.

cattrs would convert implicitly ("7" to 7, a string to the list of its letters); for untrusted files, a reader that
compares types and converts nothing is safer.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import types
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import attrs

from dryfit.network.parameter_values import parts_of

RecordT = TypeVar("RecordT")


class RecordError(ValueError):
    """Plain data does not describe the record; the message states where and why."""


def fields_of(kind: type[Any], record: Any) -> dict[str, Any]:
    """Return the fields that a record shares with a kind of record, by name, to create another record of that kind.

    Example:
        >>> attrs.evolve(plan, **fields_of(Decisions, assessment))
    """
    return {field.name: getattr(record, field.name) for field in attrs.fields(kind)}


def record_to_plain(value: Any) -> Any:
    """Convert a record to dicts, lists, strings and numbers. Enum members become their names."""
    if attrs.has(type(value)):
        return {field.name: record_to_plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Mapping):
        return {key: record_to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [record_to_plain(item) for item in value]
    return value


def record_from_plain(kind: type[RecordT], data: Any, path: str) -> RecordT:
    """Create a record from plain data: every field must be present, with exactly its type, and no others.

    Args:
        kind: attrs class whose fields are records, enums, int, float, str, bool, Any, sequences, tuples and mappings
            from str of those, or one of those or None.
        data: plain data.
        path: name of the data, for errors.

    Raises:
        RecordError: The data does not describe such a record.
    """
    return _structure(kind, data, path)  # type: ignore[no-any-return]


_SCALARS = frozenset({str, int, float, bool})


def _structure(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return data
    if kind in _SCALARS:
        return _exactly(kind, data, path)
    origin, arguments = parts_of(kind)
    if origin is types.UnionType:
        (some,) = set(arguments) - {type(None)}
        return None if data is None else _structure(some, data, path)
    if origin is collections.abc.Mapping:
        fields = _exactly(dict, data, path)
        return {key: _structure(arguments[1], item, f"{path}[{key!r}]") for key, item in fields.items()}
    if origin in (collections.abc.Sequence, tuple):
        items = _exactly(list, data, path)
        kinds = [arguments[0]] * len(items) if origin is not tuple or arguments[1:] == (...,) else arguments
        if len(kinds) != len(items):
            raise RecordError(f"{path}: {len(kinds)} items expected, {len(items)} found")
        return tuple(_structure(k, item, f"{path}[{i}]") for i, (k, item) in enumerate(zip(kinds, items, strict=True)))
    if attrs.has(kind):
        return _record(kind, _exactly(dict, data, path), path)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        name = _exactly(str, data, path)
        if name not in kind.__members__:
            raise RecordError(f"{path}: {name[:100]!r} is not one of {', '.join(kind.__members__)}")
        return kind[name]
    return _exactly(kind, data, path)


def _record(kind: Any, data: dict[str, Any], path: str) -> Any:
    hints = _hints(kind)
    missing, superfluous = sorted(hints.keys() - data.keys()), sorted(data.keys() - hints.keys())
    if missing or superfluous:
        found = f"without {', '.join(missing)}" if missing else f"with {', '.join(superfluous)[:200]}"
        raise RecordError(f"{path}: {kind.__name__} {found}")
    return kind(**{name: _structure(hint, data[name], f"{path}.{name}") for name, hint in hints.items()})


@functools.cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return types.MappingProxyType({field.name: hints[field.name] for field in attrs.fields(kind)})


def _exactly(kind: type[Any], data: Any, path: str) -> Any:
    if type(data) is not kind:  # a bool is no int here
        raise RecordError(f"{path}: {kind.__name__} expected, {type(data).__name__} found")
    return data

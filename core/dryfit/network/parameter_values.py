"""Conversion of layer parameters to plain data, and back from untrusted data.

Types are compared, never converted: "7" is not a number, and true is not 1. Arrays are stored separately under names,
to which the plain data refers.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.tensor import Array

_LARGEST_INT = 2**64
_DEEPEST_TUPLE = 16


class ArrayNames:
    """Arrays of a network by name; an array that several layers share has one name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}

    def name_of(self, array: Array, wish: str) -> str:
        """Return the array's name: the requested one, its existing one, or the requested one with a number."""
        if id(array) in self._names:
            return self._names[id(array)]
        name, number = wish, 1
        while name in self.arrays:
            name, number = f"{wish}_{number}", number + 1
        self.arrays[name] = array
        self._names[id(array)] = name
        return name


def to_plain(value: Any, arrays: ArrayNames, name: str) -> Any:
    """Return a parameter as JSON data; values that JSON cannot represent, bytes and arrays become small objects.

    Args:
        value: an enum member, number, text, bytes, array, None, or a tuple, list or dict of these.
        arrays: collects the arrays.
        name: name of the parameter, used for array names and error messages.

    Raises:
        NetworkError: The parameter has another type.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -_LARGEST_INT < value < _LARGEST_INT:
        return {"int": hex(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return {"array": arrays.name_of(value, name)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item, arrays, f"{name}.{index}") for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {str(key): to_plain(item, arrays, f"{name}.{key}") for key, item in value.items()}
    raise NetworkError(
        "The parameter has a value that cannot be stored in a file",
        where=name,
        found=type(value).__name__,
        allowed="enum members, numbers, strings, bytes, arrays, None, and tuples of these",
        remedy="Convert the value",
    )


def parts_of(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """(origin, arguments) of a declared type: `typing.get_origin` and `get_args`, which an engine file asks for often.

    The origin is `types.UnionType` for every union, and None for a class.
    """
    if type(kind) is type or isinstance(kind, enum.EnumMeta):
        return None, ()
    if isinstance(kind, types.UnionType):
        return types.UnionType, kind.__args__
    origin = getattr(kind, "__origin__", None)
    return types.UnionType if origin is typing.Union else origin, getattr(kind, "__args__", ())


def from_plain(data: Any, kind: Any, arrays: Mapping[str, Array], where: str, depth: int = 0) -> Any:
    """Return the parameter that plain data describes, of exactly its declared type.

    Args:
        data: output of `to_plain`, or untrusted data.
        kind: declared type of the parameter.
        arrays: arrays by name.
        where: location used in error messages.
        depth: number of enclosing tuples.

    Raises:
        NetworkError: The data does not describe a value of the type, or names a missing array.
    """
    if depth > _DEEPEST_TUPLE:
        raise NetworkError(
            "The parameter is nested too deeply",
            where=where,
            allowed=f"{_DEEPEST_TUPLE} levels",
            remedy="Flatten the tuples",
        )
    if type(data) is kind and (kind is str or kind is bool):
        return data
    origin, arguments = parts_of(kind)
    if kind is Any or origin is types.UnionType:
        return _one_of(data, kind, arguments, arrays, where, depth)
    if origin is np.ndarray:
        name = data.get("array") if isinstance(data, dict) and len(data) == 1 else None
        if not isinstance(name, str):
            raise _wrong(where, data, "an array's name")
        if name not in arrays:
            raise NetworkError(
                "The file has no array with this name", where=where, found=name[:100], remedy="Build the engine again"
            )
        return arrays[name]
    if origin is tuple:
        if not isinstance(data, list):
            raise _wrong(where, data, "a list")
        items = [arguments[0]] * len(data) if arguments[1:] == (...,) else list(arguments)
        if len(items) != len(data):
            raise _wrong(where, data, f"{len(items)} items")
        return tuple(
            from_plain(item, item_kind, arrays, f"{where}[{index}]", depth + 1)
            for index, (item, item_kind) in enumerate(zip(data, items, strict=True))
        )
    if origin is dict:
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            raise _wrong(where, data, "an object")
        return {
            key: from_plain(item, arguments[1], arrays, f"{where}.{key[:100]}", depth + 1) for key, item in data.items()
        }
    return _scalar(data, kind, where)


def _scalar(data: Any, kind: Any, where: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        if not isinstance(data, str) or data not in kind.__members__:
            raise _wrong(where, data, ", ".join(kind.__members__))
        return kind[data]
    if kind is float and isinstance(data, dict):
        if len(data) != 1 or data.get("float") not in ("inf", "-inf", "nan"):
            raise _wrong(where, data, "inf, -inf or nan")
        return float(data["float"])
    # A parameter that is a float may be given as an integer, and stays one; a bool is no number.
    allowed = (int, float) if kind is float else (kind,)
    if type(data) not in allowed or (type(data) is int and not -_LARGEST_INT < data < _LARGEST_INT):
        raise _wrong(where, data, "None" if kind is type(None) else getattr(kind, "__name__", str(kind)))
    return data


def _from_hexadecimal(data: Mapping[str, Any], kind: type[int | bytes], where: str) -> int | bytes:
    """Bytes, or an integer that plain JSON readers would not keep."""
    text = data.get(kind.__name__) if len(data) == 1 else None
    try:
        if isinstance(text, str):
            return bytes.fromhex(text) if kind is bytes else int(text, 16)
    except ValueError:
        pass
    raise _wrong(where, data, f"{kind.__name__} in hexadecimal digits")


def _one_of(
    data: Any, kind: Any, arguments: tuple[Any, ...], arrays: Mapping[str, Array], where: str, depth: int
) -> Any:
    """A value of a union (or of any type): what the data looks like decides which of its types is meant."""
    # `Any` stands inside the tuples of plugin fields, which hold what a field itself can hold.
    members = arguments or (type(None), bool, int, float, str, bytes, np.ndarray[Any, Any], tuple[Any, ...])
    for member in members:
        origin = parts_of(member)[0] or member
        fits = (
            (origin is np.ndarray and isinstance(data, dict) and "array" in data)
            or (origin in (int, float, bytes) and isinstance(data, dict) and origin.__name__ in data)
            or (origin is tuple and isinstance(data, list))
            or (origin in (type(None), types.NoneType) and data is None)
            or (isinstance(origin, type) and issubclass(origin, enum.Enum) and isinstance(data, str))
            or type(data) is origin
        )
        if fits and origin in (int, bytes) and isinstance(data, dict):
            return _from_hexadecimal(data, origin, where)
        if fits:
            return from_plain(data, member, arrays, where, depth)
    if float in members and type(data) is int:
        return _scalar(data, float, where)
    raise _wrong(where, data, str(kind))


def _wrong(where: str, data: Any, allowed: str) -> NetworkError:
    shown = data if data is None or isinstance(data, (bool, float)) else str(data)[:100]
    return NetworkError(
        "The value has the wrong type",
        where=where,
        found=f"{type(data).__name__} {shown}",
        allowed=allowed,
        remedy="Build the engine again",
    )

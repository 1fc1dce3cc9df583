"""Validation of layer parameters against their declared types.

Equivalent representations of the same value (a numpy integer, an int for a float, a list for a tuple) are converted;
enumeration members are never guessed from names or numbers.
"""

from __future__ import annotations

import enum
import math
import numbers
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dryfit.attrs_classes import define
from dryfit.errors import UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.weights import Weights

Check = Callable[[Any], Any]
"""Takes a value, returns it in its declared type, or raises `WrongTypeError`."""

_TENSORRT_DATA_TYPES = (
    *("FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8"),
    *("FP8", "BF16", "INT64", "INT4", "FP4", "E8M0"),
)
"""TensorRT's `DataType` by number; the other enumerations have their members in TensorRT's order."""

_LONGEST_TEXT = 100


@define(eq=False)
class WrongTypeError(Exception):
    """A value is not of its declared type.

    Attributes:
        found: description of the value.
        allowed: description of the allowed values.
        remedy: suggested correction, or None.
    """

    found: str
    allowed: str
    remedy: str | None = None


def check_for(kind: Any) -> Check:
    """Return the check of a declared type: a class, an enumeration, a tuple, a dict, an array, or a union of these."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (typing.Union, types.UnionType):
        return _union_check(arguments)
    if origin is np.ndarray or kind is np.ndarray:
        return _array
    if origin is tuple:
        return _tuple_check(arguments)
    if origin is dict:
        return _dict_check(*arguments)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enumeration_check(kind)
    named: dict[Any, Check] = {int: _int, float: _float, bool: _bool, str: _str, types.NoneType: _none}
    return named.get(kind) or _class_check(origin or kind, getattr(kind, "__name__", str(kind)))


def described(value: Any) -> str:
    """Return a description of a value with its type; long values are truncated."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + '...'}"


def _int(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, (bool, enum.Enum)):
        return int(value)
    whole = isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value)
    raise WrongTypeError(described(value), "an integer", f"Write {int(value)}" if whole else None)


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, (numbers.Real, np.floating)) and not isinstance(value, (bool, enum.Enum)):
        try:
            return float(value)
        except OverflowError:
            raise WrongTypeError(described(value), "a number that a float can hold") from None
    raise WrongTypeError(described(value), "a number")


def _bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise WrongTypeError(described(value), "True or False")


def _str(value: Any) -> str:
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return str(value)
    raise WrongTypeError(described(value), "a string")


def _array(value: Any) -> np.ndarray[Any, Any]:
    return _AN_ARRAY(value.numpy() if isinstance(value, Weights) else value)  # type: ignore[no-any-return]


def _none(value: Any) -> None:
    if value is not None:
        raise WrongTypeError(described(value), "None")


def _class_check(cls: Any, words: str) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, cls):
            is_array_like = cls is np.ndarray and isinstance(value, (list, tuple, int, float))
            remedy = "Make it an array with numpy.asarray" if is_array_like else None
            raise WrongTypeError(described(value), words, remedy)
        return value

    return check


_AN_ARRAY = _class_check(np.ndarray, "an array")


def _enumeration_check(kind: type[enum.Enum]) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            meant = _meant(kind, value)
            raise WrongTypeError(
                described(value),
                ", ".join(f"{kind.__name__}.{name}" for name in kind.__members__),
                f"Did you mean {kind.__name__}.{meant}?" if meant else None,
            )
        return value

    return check


def _meant(kind: type[enum.Enum], value: Any) -> str | None:
    """The name of the member that a text, a number of TensorRT's or a member of another enumeration stands for."""
    if isinstance(value, int) and not isinstance(value, (bool, enum.Enum)):
        names = _TENSORRT_DATA_TYPES if kind is DataType else tuple(kind.__members__)
        return names[value] if 0 <= value < len(names) else None
    text = value if isinstance(value, str) else getattr(value, "name", None)
    if isinstance(text, str):
        by_name = {name.upper(): name for name in kind.__members__}
        if text.upper() in by_name:
            return by_name[text.upper()]
    if kind is DataType and isinstance(value, (str, type, np.dtype)):
        try:
            return (DataType.parse(value) if isinstance(value, str) else DataType.from_numpy(value)).name
        except (UnknownNameError, TypeError):
            return None
    return None


def _tuple_check(arguments: tuple[Any, ...]) -> Check:
    if arguments[1:] != (...,):
        checks = [check_for(argument) for argument in arguments]

        def check_items(value: Any) -> Any:
            if not isinstance(value, (tuple, list)) or len(value) != len(checks):
                raise WrongTypeError(described(value), f"a tuple of {len(checks)} values")
            return tuple(check(item) for check, item in zip(checks, value, strict=True))

        return check_items
    each, words = check_for(arguments[0]), _WORDS.get(arguments[0], str(arguments[0]))
    is_number = arguments[0] in (int, float)

    def check_all(value: Any) -> Any:
        if is_number and (isinstance(value, numbers.Number) or (isinstance(value, np.ndarray) and value.ndim == 0)):
            value = (value[()],) if isinstance(value, np.ndarray) else (value,)
        is_scalar = isinstance(value, np.ndarray) and value.ndim == 0
        if isinstance(value, (str, bytes, dict)) or is_scalar or not isinstance(value, Iterable):
            raise WrongTypeError(described(value), f"a tuple of {words}")
        items = tuple(value)
        try:
            return tuple(map(each, items))
        except WrongTypeError as error:
            raise WrongTypeError(described(items), f"a tuple of {words}", error.remedy) from None

    return check_all


_WORDS = {int: "integers", float: "numbers", str: "texts"}


def _dict_check(key: Any, value: Any) -> Check:
    check_key, check_value = check_for(key), check_for(value)

    def check(found: Any) -> Any:
        if not isinstance(found, dict):
            raise WrongTypeError(described(found), "a dict")
        # The same dict, so that who holds it still sees what is added; its values are refused, never converted.
        for name, item in found.items():
            check_key(name)
            try:
                check_value(item)
            except WrongTypeError as error:
                raise WrongTypeError(f"{name!r}: {error.found}", error.allowed, error.remedy) from None
        return found

    return check


def _union_check(arguments: tuple[Any, ...]) -> Check:
    checks = [check_for(argument) for argument in arguments]
    exact = frozenset(argument for argument in arguments if isinstance(argument, type))

    def check(value: Any) -> Any:
        if type(value) in exact:
            return value
        errors = []
        for one in checks:
            try:
                return one(value)
            except WrongTypeError as error:
                errors.append(error)
        remedy = next((error.remedy for error in errors if error.remedy), None)
        raise WrongTypeError(errors[0].found, ", or ".join(error.allowed for error in errors), remedy)

    return check

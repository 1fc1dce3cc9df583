"""JSON that strangers wrote: read with the place of what is wrong, and with keys that occur twice."""

from __future__ import annotations

import json
import math
from typing import Any

from dryfit.errors import CalibrationError


class JsonObject(dict[str, Any]):
    """An object, and its members as they stand in the text.

    Attributes:
        members: every (key, value), repeated keys included.
    """

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.members = members


def parse_json(data: bytes, name: str) -> Any:
    """What a JSON text says; objects are `JsonObject`.

    Args:
        data: the text, in UTF-8.
        name: what errors call it.

    Raises:
        CalibrationError: it is no JSON, with the line; or is nested deeper than can be read.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=JsonObject)
    except json.JSONDecodeError as error:
        where = f"{name}, line {error.lineno}"
        raise CalibrationError("This is no JSON", where=where, found=f"{error.msg} at column {error.colno}") from None
    except RecursionError:
        raise CalibrationError("This JSON is nested too deeply", where=name) from None
    except ValueError as error:  # no UTF-8, or a whole number of thousands of digits
        raise CalibrationError("This is no JSON", where=name, found=str(error)) from None


def json_number(value: Any) -> float | None:
    """A JSON number as binary64, infinite where it is too large; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_plain(value: Any) -> bool:
    """Whether a JSON value is an object of texts, finite numbers, truth values and nulls."""
    return isinstance(value, JsonObject) and all(map(_is_plain_member, value.values()))


def _is_plain_member(value: Any) -> bool:
    number = json_number(value)
    return math.isfinite(number) if number is not None else value is None or isinstance(value, (str, bool))


def is_text(value: Any) -> bool:
    """Whether a JSON value is a string that can be written again: JSON may hold halves of characters, files cannot."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)

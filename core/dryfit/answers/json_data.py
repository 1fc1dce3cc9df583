"""Conversion of records to JSON, and the JSON Schema derived from their types.

Each field of a record becomes a member of the JSON object, in order. Fields made by `hidden`, or whose names start with
an underscore, are omitted. `JSON_NAMES` maps attributes to members, for records whose JSON has other members or names.
Members listed in `JSON_OPTIONAL` are omitted if they are None. `JSON_BESIDE` names an
attribute that holds a record, a mapping or None; its members are added next to those of the record. Descriptions come
from `Attributes:` sections.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union

import attrs

from dryfit.attrs_classes import frozen

Count = Annotated[int, ("minimum", 0)]
"""A number of things, or of bytes."""
Amount = Annotated[float, ("minimum", 0)]
"""A time, a rate or an energy."""
Share = Annotated[float, ("minimum", 0), ("maximum", 1)]
"""A part of a whole."""

_HIDDEN = "hidden from JSON"


def hidden(default: Any = attrs.NOTHING, **settings: Any) -> Any:
    """Define an attrs field that is omitted from JSON; `settings` are those of `attrs.field`."""
    return attrs.field(default=default, metadata={_HIDDEN: True}, **settings)


_ENTRY = re.compile(r"^ {4}(?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {5,}.*)*)", re.MULTILINE)
_SIMPLE = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def plain(value: object) -> Any:
    """Convert a record, or its contents, to dictionaries, lists, strings and numbers."""
    if isinstance(value, enum.StrEnum):
        return value.value
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, int | float):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if attrs.has(type(value)):
        found = ((one, getattr(value, one.attribute)) for one in members(type(value)))
        own = {one.name: plain(held) for one, held in found if held is not None or one.is_required}
        beside = getattr(value, "JSON_BESIDE", None)
        return {**own, **(plain(getattr(value, beside)) or {})} if beside else own
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, collections.abc.Iterable):
        return [plain(held) for held in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def json_text(data: object) -> str:
    """Return one JSON document, deterministic for the same data; control characters in names are escaped."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if not text.isprintable():
        # Only strings hold such characters, besides the lines of the document.
        text = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)
    return text


@frozen
class Member:
    """A member of a record's JSON object.

    Attributes:
        attribute: field or property of the record.
        name: name in JSON.
        is_required: whether the member is always present.
    """

    attribute: str
    name: str
    is_required: bool


_members: dict[type, tuple[Member, ...]] = {}


def members(record: type) -> tuple[Member, ...]:
    """Return the members of a record's JSON object."""
    if record not in _members:
        own = (field.name for field in attrs.fields(record) if _HIDDEN not in field.metadata)
        beside = getattr(record, "JSON_BESIDE", None)
        names = getattr(record, "JSON_NAMES", None) or {one: one for one in own if one[0] != "_" and one != beside}
        optional = getattr(record, "JSON_OPTIONAL", ())
        _members[record] = tuple(Member(one, name, one not in optional) for one, name in names.items())
    return _members[record]


def json_schema(record: type | types.UnionType, title: str) -> dict[str, Any]:
    """Return the JSON Schema of a record's JSON."""
    definitions: dict[str, Any] = {}
    body = _object_schema(record, definitions) if isinstance(record, type) else _schema(record, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **body,
        **({"$defs": dict(sorted(definitions.items()))} if definitions else {}),
    }


def descriptions(record: type) -> dict[str, str]:
    """Return descriptions by attribute, from the `Attributes:` sections of a record and its base classes."""
    found: dict[str, str] = {}
    for one in reversed(record.__mro__):
        section = re.search(r"^Attributes:\n((?: {4}.*\n?|\n)*)", inspect.cleandoc(one.__doc__ or ""), re.MULTILINE)
        for entry in _ENTRY.finditer(section[1] if section else ""):
            text = re.sub(r"\bNone\b", "null", " ".join(entry["text"].split()))
            found |= dict.fromkeys(entry["names"].split(", "), f"{text[:1].upper()}{text[1:]}")
    return found


def _object_schema(record: type, definitions: dict[str, Any]) -> dict[str, Any]:
    told, hints = descriptions(record), typing.get_type_hints(record, include_extras=True)
    properties, required = {}, []
    for one in members(record):
        own = inspect.getattr_static(record, one.attribute, None)
        if isinstance(own, property):
            hint = typing.get_type_hints(own.fget, include_extras=True)["return"]
            told.setdefault(one.attribute, (own.__doc__ or "").partition("\n")[0])
        else:
            hint = hints[one.attribute]
        described = {"description": told[one.attribute]} if told.get(one.attribute) else {}
        properties[one.name] = {**described, **_schema(hint, definitions, is_optional=not one.is_required)}
        required += [one.name] * one.is_required
    for kind in typing.get_args(hints.get(getattr(record, "JSON_BESIDE", ""))):
        if attrs.has(kind):  # of a mapping the names are not known
            properties |= _object_schema(kind, definitions)["properties"]
    return {"type": "object", "properties": properties, "required": required}


def _schema(hint: Any, definitions: dict[str, Any], *, is_optional: bool = False) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return {**_schema(arguments[0], definitions, is_optional=is_optional), **dict(arguments[1:])}
    if origin in (Union, types.UnionType):
        kept = [one for one in arguments if not (is_optional and one is type(None))]
        return _any_of([_schema(one, definitions) for one in kept])
    if origin is Literal:
        return {"enum": list(arguments)}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if hint is Any or hint is object:
        return {}
    kind = origin or hint
    if attrs.has(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a record may hold itself
            definitions[kind.__name__] = _object_schema(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if issubclass(kind, enum.StrEnum):
        return {"enum": [one.value for one in kind]}
    if issubclass(kind, str | PurePath):
        return {"type": "string"}
    if issubclass(kind, enum.Enum):
        return {"enum": [one.name for one in kind]}
    if issubclass(kind, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if issubclass(kind, Sequence | collections.abc.Set):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    raise TypeError(f"{hint} has no form in JSON Schema")


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    if len(schemas) == 1:
        return schemas[0]
    nulls = [one for one in schemas if one == {"type": "null"}]
    others = [one for one in schemas if one not in nulls]
    if len(others) == 1 and isinstance(others[0].get("type"), str):
        return {**others[0], "type": [others[0]["type"], *(["null"] if nulls else [])]}
    return {"anyOf": list(_unique([*others, *nulls]))}


def _unique(schemas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for index, one in enumerate(schemas):
        if one not in schemas[:index]:
            yield one

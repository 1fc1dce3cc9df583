"""The tables of TensorRT's Python surface, read: enumerations and classes of one version."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from dryfit.attrs_classes import frozen
from dryfit_tensorrt.surface.class_tables import CLASSES
from dryfit_tensorrt.surface.enum_tables import ENUMERATIONS

MAJORS = (8, 10, 11)
"""Major versions in the order of the tables' columns."""


@frozen
class Parameter:
    """One parameter of a method.

    Attributes:
        name: name, as a caller may write it.
        default: default value as the binding spells it; "" for a parameter that must be passed; "?" for one whose
            default the binding does not print.
    """

    name: str
    default: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether a call may leave the parameter out."""
        return bool(self.default)


@frozen
class Member:
    """One member of a class.

    Attributes:
        name: name of the member.
        is_method: whether it is called.
        is_read_only: whether it is a property that cannot be set.
        overloads: parameters of each overload of a method, without `self`.
    """

    name: str
    is_method: bool
    is_read_only: bool = False
    overloads: tuple[tuple[Parameter, ...], ...] = ()


@functools.cache
def enumerations(major: int) -> Mapping[str, Mapping[str, int]]:
    """Return the members and values of every enumeration of a major version, in TensorRT's order."""
    column = MAJORS.index(major)
    found: dict[str, Mapping[str, int]] = {}
    for name, lines in _paragraphs(ENUMERATIONS):
        members: dict[str, int] = {}
        for item in _items(" ".join(lines)):
            member, _, value = item.partition(" ")
            values = value.split("/")
            own = values[column] if len(values) > 1 else values[0]
            if own != "-":
                members[member] = int(own)
        if members:
            found[name] = MappingProxyType(members)
    return MappingProxyType(found)


@functools.cache
def classes(major: int) -> Mapping[str, Mapping[str, Member]]:
    """Return the members of every class of a major version, by class and name."""
    found: dict[str, Mapping[str, Member]] = {}
    for name, lines in _paragraphs(CLASSES):
        levels, *rest = lines
        if major in map(int, levels.split()):
            found[name] = MappingProxyType(_members(rest, major))
    return MappingProxyType(found)


def _members(lines: Sequence[str], major: int) -> dict[str, Member]:
    members: dict[str, Member] = {}
    for group in _groups(lines):
        levels, _, items = group.partition(":")
        if levels != "all" and major not in map(int, levels.split()):
            continue
        for item in _items(items):
            member = _member(item)
            before = members.get(member.name)
            if before is not None and member.is_method:
                member = attrs.evolve(member, overloads=before.overloads + member.overloads)
            members[member.name] = member
    return members


_CALL = re.compile(r"(\w+)\((.*)\)")


def _member(item: str) -> Member:
    call = _CALL.fullmatch(item)
    if call is None:
        name = item.removesuffix(" ro")
        return Member(name, is_method=False, is_read_only=name != item)
    parameters = tuple(_parameter(text) for text in call[2].split(", ") if text)
    return Member(call[1], is_method=True, overloads=(parameters,))


def _parameter(text: str) -> Parameter:
    name, _, default = text.partition(" = ")
    return Parameter(name.removesuffix("?"), default or ("?" if name.endswith("?") else ""))


def _paragraphs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the head of each paragraph and its lines; the first is the rest of the head's line."""
    head, lines = "", list[str]()
    for line in text.strip().splitlines():
        if line.startswith(" "):
            lines.append(line)
            continue
        if head:
            yield head, lines
        head, _, rest = line.partition(":")
        lines = [rest.strip()]
    yield head, lines


def _groups(lines: Sequence[str]) -> Iterator[str]:
    """Yield `VERSIONS: members`, each with the lines that continue it."""
    group = ""
    for line in lines:
        if line.startswith("        "):
            group += " " + line.strip()
            continue
        if group:
            yield group
        group = line.strip()
    if group:
        yield group


def paragraph_items(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the head of each paragraph of a table, and its items."""
    for head, lines in _paragraphs(text):
        yield head, list(_items(" ".join(lines)))


def _items(text: str) -> Iterator[str]:
    return (item.strip() for item in " ".join(text.split()).split(";") if item.strip())

"""Enumerations as TensorRT's bindings make them.

Members have a number but are not one: `int(member)`, `1 << int(member)`, `str(member) == "LayerType.CONVOLUTION"`,
construction from the number, and `__members__`. Only those that TensorRT declares arithmetic are ordered and equal to
their number.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from dryfit_tensorrt.surface.changes import removal_text
from dryfit_tensorrt.surface.enum_tables import ARITHMETIC


class _Named:
    """How a member prints."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self}: {int(self)}>"  # type: ignore[call-overload]


class _Advising(enum.EnumType):
    """Enumerations that say what a newer version has in place of a member that it lacks."""

    def __getattr__(cls, name: str) -> Any:
        members: Mapping[str, Any] = cls.__dict__.get("_member_map_", {})
        if name in members:
            return members[name]
        text = f"type object {cls.__name__!r} has no attribute {name!r}"
        found = "" if name.startswith("_") else removal_text(f"{cls.__name__}.{name}", cls.__dict__.get("_major", 0))
        raise AttributeError(f"{text}: {found}" if found else text, name=name, obj=cls)


class Enumeration(_Named, enum.Enum, metaclass=_Advising):
    """Members that are no numbers, and equal only to themselves."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


class ArithmeticEnumeration(_Named, enum.IntEnum, metaclass=_Advising):
    """Members that are ordered, equal to their number, and can be combined with numbers."""

    __str__ = _Named.__str__
    __repr__ = _Named.__repr__


def make_enumeration(name: str, members: Mapping[str, int], module: str, major: int) -> Any:
    """Return the class of an enumeration.

    Args:
        name: name of the enumeration.
        members: number by member name; of members with the same number, the first one names it.
        module: name of the module that shows it.
        major: major version of the module.
    """
    base: Any = ArithmeticEnumeration if name in ARITHMETIC else Enumeration
    made = base(name, list(members.items()), module=module)
    type.__setattr__(made, "_major", major)
    # Programs recognize an enumeration of pybind11 by this attribute: name to (member, its docstring).
    setattr(made, "__entries", {key: (member, None) for key, member in made.__members__.items()})
    return made

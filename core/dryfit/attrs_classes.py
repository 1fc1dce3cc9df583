"""attrs classes whose methods are generated at their first use.

attrs writes and compiles the methods of a class when it is defined, which takes 0.2 to 0.4 ms. dryfit has hundreds of
classes, and a command uses half of those that it imports: generating the rest would be an eighth of its start.

The classes have no slots: attrs adds those by making another class, which cannot be done later. Classes with
objects for each layer, tensor or block of code are attrs' own, with slots: they are always used, and slots make objects
smaller.
"""

from __future__ import annotations

import functools
import os
import reprlib
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

__all__ = ["AnyClass", "define", "frozen", "generate_later"]

AnyClass = TypeVar("AnyClass", bound=type)

_ALWAYS = ("__attrs_attrs__", "__match_args__", "__setattr__", "__delattr__")
_IF_CHOSEN = {
    "init": ("__init__",),
    "repr": ("__repr__",),
    "eq": ("__eq__", "__ne__"),
    "unsafe_hash": ("__hash__",),
    "order": ("__lt__", "__le__", "__gt__", "__ge__"),
}
"""Option of attrs to the methods that it is about."""


def _attrs_class(of_attrs: Callable[..., Any], cls: AnyClass | None = None, /, **options: Any) -> Any:
    def decorated(cls: AnyClass) -> AnyClass:
        # What attrs detects itself, where stand-ins would be taken for a class's own methods.
        own = {option: False for option, names in _IF_CHOSEN.items() if not vars(cls).keys().isdisjoint(names)}
        chosen = {"order": False, **options, **own}
        if chosen.get("repr", True):
            chosen["repr"] = False
            type.__setattr__(cls, "__repr__", _representation)
        names = [*_ALWAYS, *(n for option, names in _IF_CHOSEN.items() if chosen.get(option, True) for n in names)]

        def generate(cls: Any) -> None:
            of_attrs(**chosen, slots=False, auto_detect=False, match_args=False)(cls)
            positional = [field.name for field in attrs.fields(cls) if field.init and not field.kw_only]
            type.__setattr__(cls, "__match_args__", tuple(positional))  # attrs leaves it to a stand-in

        return generate_later(cls, names, generate)

    return decorated if cls is None else decorated(cls)


@reprlib.recursive_repr()
def _representation(self: Any) -> str:
    """What attrs would generate, which takes a third of the time of all methods and is rarely used."""
    shown = ((field, getattr(self, field.name)) for field in attrs.fields(type(self)) if field.repr)
    texts = (f"{field.name}={repr(value) if field.repr is True else field.repr(value)}" for field, value in shown)
    return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(texts)})"


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define = functools.partial(_attrs_class, attrs.define)
    frozen = functools.partial(_attrs_class, attrs.frozen)


def generate_later(cls: AnyClass, names: Iterable[str], generate: Callable[[Any], object]) -> AnyClass:
    """Let members of a class be generated when the first of them is used.

    Args:
        cls: a class; it is returned.
        names: of the members. Those that `generate` does not define are looked up in the base classes.
        generate: defines them in the class.
    """
    _GENERATORS[cls] = generate
    for name in names:
        setattr(cls, name, _Later(cls, name))
    return cls


class _Later:
    """What stands for a member of a class that is not generated yet."""

    def __init__(self, cls: type, name: str) -> None:
        self._class = cls
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        with _GENERATING:
            generate = _GENERATORS.pop(self._class, None)
            if generate is not None:
                generate(self._class)
                for name in [name for name, member in vars(self._class).items() if isinstance(member, _Later)]:
                    delattr(self._class, name)
        line = owner.__mro__ if self._class in owner.__mro__ else self._class.__mro__  # `inspect` passes a metaclass
        for cls in line[line.index(self._class) :]:
            member = vars(cls).get(self._name, self)
            if member is not self:
                bind = getattr(type(member), "__get__", None)
                return member if bind is None else bind(member, instance, owner)
        raise AttributeError(self._name)


_GENERATORS: dict[type, Callable[[Any], object]] = {}
"""What generates the members of a class that has stand-ins."""
_GENERATING = threading.RLock()
"""Held by the thread that generates the members of a class; its base classes come first."""

if hasattr(os, "register_at_fork"):
    # A fork waits: its child would have a class that is generated in part, and no thread that goes on.
    os.register_at_fork(
        before=_GENERATING.acquire, after_in_parent=_GENERATING.release, after_in_child=_GENERATING.release
    )

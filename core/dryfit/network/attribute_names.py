"""Attributes that exist: any other is refused, read or set, so that a misspelt one is not taken silently and ignored.

One mechanism for every class that users hold; `dryfit.front_door` does the same for the module `dryfit`. A name of
TensorRT's that has another place here is refused with that place (`dryfit.network.tensorrt_names`), any other with the
closest name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from dryfit.errors import MissingAttributeError, UnknownAttributeError, UnknownSettingError
from dryfit.network.tensorrt_names import INSTEAD


class KnownAttributes:
    """Refuses to read an attribute that does not exist, and to set one that is not declared.

    Declared are the names annotated in the body of a class, and properties with a setter. Names that begin with an
    underscore are the object's own business. A subclass outside dryfit may set what it likes, unless attrs declares its
    fields.
    """

    _not_for_users: ClassVar[frozenset[str]] = frozenset()
    """Names that are set by their owner, and therefore not offered in messages."""

    if not TYPE_CHECKING:  # a type checker finds misspelt names by itself, unless it sees these

        def __getattr__(self, name: str) -> Any:
            cls = type(self)
            watch = vars(self).get("_watch")
            if watch is not None:
                watch.lacks(name)  # a stand-in of `dryfit.network.equal_layers`
            if name.startswith("_"):
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=self)
            if hasattr(cls, name):
                return object.__getattribute__(self, name)  # a property failed: its own error is the one to show
            raise UnknownAttributeError(
                name, lambda: MissingAttributeError(cls.__name__, name, dir_of(cls), remedy=instead(cls, name))
            )

        def __setattr__(self, name: str, value: Any) -> None:
            if name[:1] != "_":
                require_settable(self, name)
            super().__setattr__(name, value)


def require_settable(holder: KnownAttributes, name: str) -> None:
    """Refuse to set an attribute that is not declared.

    Raises:
        UnknownSettingError: it is not.
    """
    cls: type = type(holder)
    if name.startswith("_") or name in settable_names(cls) or _is_open(cls):
        return
    known = settable_names(cls) - holder._not_for_users  # noqa: SLF001  the mixin's own
    raise UnknownSettingError(
        cls.__name__, name, known, is_set=True, remedy=instead(cls, name), where=getattr(holder, "where", None)
    )


def refusing_unknown(
    set_known: Callable[[Any, str, Any], None], plain: frozenset[str]
) -> Callable[[Any, str, Any], None]:
    """A `__setattr__` that attrs made, which asks no base class, after the question whether there is such a name.

    Args:
        set_known: what attrs made.
        plain: declared names that have no hook: no type to check, and nothing follows from them.
    """

    def set_attribute(holder: KnownAttributes, name: str, value: Any) -> None:
        if name in plain:
            object.__setattr__(holder, name, value)
            return
        cls: type = type(holder)
        if name not in settable_names(cls):
            require_settable(holder, name)
        set_known(holder, name, value)

    return set_attribute


@functools.cache
def settable_names(cls: type) -> frozenset[str]:
    """The public names that a class declares, and its properties that can be set."""
    declared = {
        name
        for one in cls.__mro__
        for name, kind in vars(one).get("__annotations__", {}).items()
        if not (name.startswith("_") or str(kind).startswith(("ClassVar", "typing.ClassVar")))
    }
    found = {name: getattr(cls, name, None) for name in {*declared, *dir(cls)} if not name.startswith("_")}
    return frozenset(
        name
        for name, member in found.items()
        if (member.fset is not None if isinstance(member, property) else name in declared)
    )


@functools.cache
def dir_of(cls: type) -> frozenset[str]:
    """The public names of a class and of what it declares."""
    return frozenset(name for name in dir(cls) if not name.startswith("_")) | settable_names(cls)


def instead(cls: type, name: str) -> str | None:
    """What serves here in the place of a name that TensorRT's class has; None where TensorRT has none either."""
    return next((INSTEAD[one.__name__][name] for one in cls.__mro__ if name in INSTEAD.get(one.__name__, ())), None)


@functools.cache
def _is_open(cls: type) -> bool:
    return cls.__module__.partition(".")[0] != __name__.partition(".")[0] and "__attrs_attrs__" not in vars(cls)

"""One version of TensorRT's module: its enumerations and classes, made from the tables and from `behaviour`.

A class has exactly the members that the tables name for its version. Where each comes from, in this order: the class of
the same name in `dryfit_tensorrt.behaviour`; the object of dryfit behind it, whose member of that name is forwarded to;
a setting that is stored and changes nothing (`surface.without_effect`); an error that says why the member is not
supported (`surface.unsupported`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from dryfit_tensorrt.behaviour.algorithms import parse_key
from dryfit_tensorrt.behaviour.forwarding import RENAMED, forwarded
from dryfit_tensorrt.behaviour.objects import Base
from dryfit_tensorrt.behaviour.plugin_fields import PluginFieldCollection
from dryfit_tensorrt.behaviour.values import itemsize
from dryfit_tensorrt.enumeration import make_enumeration
from dryfit_tensorrt.settings import ApiLevel
from dryfit_tensorrt.surface.class_parents import PARENTS
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import MAJORS, Member, classes, enumerations
from dryfit_tensorrt.surface.unsupported import refused
from dryfit_tensorrt.surface.without_effect import stored

_WITH_CACHE_KEYS = 10
"""The first major version whose timing caches have entries that programs can edit."""


class Namespace:
    """The names of one version.

    Attributes:
        level: the version.
        major: its major number, a column of the tables.
        names: everything that the module shows, by name.
        origins: (class, member) to where its behaviour comes from.
        state: what is one per process in TensorRT: the plugin registry, by name.
    """

    def __init__(self, level: ApiLevel) -> None:
        self.level = level
        self.major = int(level.version.partition(".")[0])
        self.names: dict[str, Any] = {}
        self.origins: dict[tuple[str, str], Origin] = {}
        self.state: dict[str, Any] = {}
        module = level.module
        for name, members in enumerations(self.major).items():
            self.names[name] = make_enumeration(name, members, module, self.major)
        self._module = module
        for name in ("ILogger", *classes(self.major)):
            self._class(name)
        self._add_what_no_table_says()

    def __getattr__(self, name: str) -> Any:
        try:
            return self.names[name]
        except KeyError:
            raise AttributeError(f"TensorRT {self.level.version} has no {name!r}", name=name, obj=self) from None

    def has(self, name: str) -> bool:
        """Return whether the version has a name."""
        return name in self.names

    def get_plugin_registry(self) -> Any:
        """Return the plugin registry, of which a process has one."""
        if "registry" not in self.state:
            self.state["registry"] = object.__new__(self.names["IPluginRegistry"])
        return self.state["registry"]

    def _add_what_no_table_says(self) -> None:
        """Severities at the loggers, sizes at data types."""
        severity = self.names["Severity"]
        self.names["ILogger"].Severity = severity
        for name, member in severity.__members__.items():
            setattr(self.names["Logger"], name, member)
        self.names["DataType"].itemsize = property(itemsize)
        self.names["PluginFieldCollection"] = PluginFieldCollection
        if self.major >= _WITH_CACHE_KEYS:
            self.names["TimingCacheKey"].parse = staticmethod(functools.partial(parse_key, self))

    def _class(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        from dryfit_tensorrt import behaviour

        members = classes(self.major).get(name, {})
        own: Any = behaviour.class_of(name)
        parent_name = PARENTS.get(name)
        parent = self._parent(parent_name) if parent_name else None
        contents = _copied(own, members) if own is not None else {}
        for member in members.values():
            if member.name in contents:
                found: Any = contents[member.name]
            else:
                found = None if (name, member.name) in RENAMED else _inherited(member.name, own, parent)
                if found is None:
                    found = contents[member.name] = _made(name, member)
            self.origins[name, member.name] = _origin(found)
        contents.update(__module__=self._module, __doc__=getattr(own, "__doc__", None), _api=self)
        bases = tuple(
            base for base in getattr(own, "__bases__", ()) if not issubclass(base, Base) and base is not object
        )
        made: Any = type(name, (*((parent,) if parent else (Base,)), *bases), contents)
        self.names[name] = made
        return made

    def _parent(self, name: str) -> Any:
        """The base class of a name in this version; a base that the version lacks is skipped."""
        if name in classes(self.major) or name == "ILogger":
            return self._class(name)
        above = PARENTS.get(name)
        return self._parent(above) if above else None


def _made(owner: str, member: Member) -> Any:
    found: Any = forwarded(owner, member)
    if found is None:
        found = stored(owner, member)
    return refused(owner, member) if found is None else found


def _inherited(name: str, own: Any, parent: Any) -> Any:
    """What a class gets from its bases: from list, from the base of its version, or the constructor of any object."""
    if own is not None and hasattr(own, name) and (name == "__init__" or not hasattr(object, name)):
        return getattr(own, name)
    if parent is not None and hasattr(parent, name) and (name == "__init__" or not hasattr(object, name)):
        return inspect.getattr_static(parent, name)
    return object.__init__ if name == "__init__" else None


_PLAIN = frozenset({"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__firstlineno__"})


def _copied(own: type, members: Mapping[str, Member]) -> dict[str, Any]:
    """The contents of a class of `behaviour`, without the members that a version lacks."""
    always: frozenset[str] = getattr(own, "_beyond_tables", frozenset())
    elsewhere = {name for major in MAJORS for name in classes(major).get(own.__name__, {})}
    return {
        name: value
        for name, value in vars(own).items()
        if name not in _PLAIN
        and (name in members or name in always or (name.startswith("_") and name not in elsewhere))
    }


def _origin(value: Any) -> Origin:
    return getattr(value, "origin", None) or getattr(getattr(value, "fget", None), "origin", None) or Origin.OWN


@functools.cache
def namespace(level: ApiLevel) -> Namespace:
    """Return the namespace of a version; made once."""
    return Namespace(level)

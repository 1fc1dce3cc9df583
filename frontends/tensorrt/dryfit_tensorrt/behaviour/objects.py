"""What every object of these modules has, and how a member says where its behaviour comes from."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from dryfit_tensorrt.surface.changes import removal_text

if TYPE_CHECKING:
    from dryfit_tensorrt.namespace import Namespace


class Base:
    """An object of one version.

    `_core` is the object of dryfit behind it. Private names stay out of `dir()`, since programs print what an object
    has.
    """

    _api: ClassVar[Namespace]

    if TYPE_CHECKING:  # what an object holds is given by the function that makes it

        def __getattr__(self, name: str) -> Any: ...

    else:

        def __getattr__(self, name: str) -> Any:
            raise _lacks(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name[:1] != "_" and _is_of_ours(type(self)) and not hasattr(type(self), name):
                raise _lacks(self, name)
            object.__setattr__(self, name, value)

    @classmethod
    def _blank(cls) -> Any:
        """An object without what its constructor would do: most classes have none that a program may call."""
        return object.__new__(cls)

    def _for_core(self) -> Any:
        """What dryfit takes for this object."""
        return self._core

    def __dir__(self) -> Iterable[str]:
        return [name for name in object.__dir__(self) if not name.startswith("_") or name.startswith("__")]


def _is_of_ours(cls: type) -> bool:
    """Whether a class is TensorRT's own. A class that a program derives may hold what the program likes."""
    return cls.__module__.startswith("dryfit_tensorrt.")


def _lacks(holder: Any, name: str) -> AttributeError:
    """The error of a member that a version lacks, with what a newer version has in its place."""
    cls = type(holder)
    text = f"{cls.__name__!r} object has no attribute {name!r}"
    if _is_of_ours(cls) and not name.startswith("_"):
        named = (removal_text(f"{base.__name__}.{name}", cls._api.major) for base in cls.__mro__)
        found = next(filter(None, named), "")
        text = f"{text}: {found}" if found else text
    return AttributeError(text, name=name, obj=holder)


class Scoped:
    """Objects that older programs use in a `with` statement."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def called_back(method: Any, *arguments: Any, otherwise: Any) -> Any:
    """Call a method that the program overrides; an exception in it is printed and stands for a failure value.

    Args:
        method: the method.
        arguments: its arguments.
        otherwise: what TensorRT takes for the result when the method raises.
    """
    try:
        return method(*arguments)
    except Exception:  # noqa: BLE001  what a program's own code raises
        name = getattr(method, "__qualname__", repr(method))
        sys.stderr.write(f"dryfit: exception in {name}:\n{traceback.format_exc()}")
        return otherwise

"""What every object of these modules has, and how a member says where its behaviour comes from."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

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

    @classmethod
    def _blank(cls) -> Any:
        """An object without what its constructor would do: most classes have none that a program may call."""
        return object.__new__(cls)

    def _for_core(self) -> Any:
        """What dryfit takes for this object."""
        return self._core

    def __dir__(self) -> Iterable[str]:
        return [name for name in object.__dir__(self) if not name.startswith("_") or name.startswith("__")]


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

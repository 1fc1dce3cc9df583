"""Quantize methods of installed packages, found by name and loaded when they are asked for.

An entry point in the group `dryfit.quantize_methods` names a `dryfit.quantization.methods.method.QuantizeMethod`. The
entry point's name is the method's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.discovery import QUANTIZE_METHODS, owner_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

    from dryfit.quantization.methods.method import QuantizeMethod


def quantize_method(name: str, *, where: str | None = None) -> QuantizeMethod:
    """The method of a name. No other is loaded.

    Args:
        name: the entry point's name.
        where: who asks for it, for messages.

    Raises:
        UnknownNameError: no installed package brings it.
        PluginError: two packages do, or the one that does is switched off or broken.
    """
    # Kept, since each layer asks in each run.
    kept = (QUANTIZE_METHODS, name)
    if kept not in registry.answers:
        entry = registry.entry(QUANTIZE_METHODS, name)
        if entry is None:
            known = {one.name for one in registry.entries(QUANTIZE_METHODS)}
            raise UnknownNameError("quantize method", name, known, where=where)
        what = f"The quantize method {name!r} could not be loaded"
        registry.answers[kept] = registry.require(entry, _prepare(entry), what)
    found: QuantizeMethod = registry.answers[kept]
    return found


def quantize_method_package(name: str) -> str:
    """`distribution version` of the package that brings a method; "" where none does."""
    entry = registry.entry(QUANTIZE_METHODS, name)
    return "" if entry is None else owner_of(entry).package


def quantize_methods() -> dict[str, QuantizeMethod]:
    """Every method that can be loaded, by name, sorted. What fails or lost its name is recorded and left out."""
    return registry.load_all(QUANTIZE_METHODS, _prepare)


def _prepare(entry: EntryPoint) -> Callable[[Any], QuantizeMethod]:
    """The function that checks what an entry point names."""

    def prepare(loaded: Any) -> QuantizeMethod:
        from dryfit.quantization.methods.method import QuantizeMethod

        if not isinstance(loaded, QuantizeMethod):
            raise PluginError(
                "The entry point must name a quantize method",
                found=type(loaded).__name__,
                allowed="a QuantizeMethod",
                remedy="Let the entry point name a QuantizeMethod",
            )
        if loaded.name != entry.name:
            raise PluginError(
                "A quantize method must have the name of its entry point",
                found=f"{loaded.name!r}",
                allowed=f"{entry.name!r}",
                remedy="Rename the entry point or the quantize method",
            )
        return loaded

    return prepare

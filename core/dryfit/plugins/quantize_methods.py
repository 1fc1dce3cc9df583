"""Quantize methods of installed packages, found by name and loaded when they are asked for.

An entry point in the group `dryfit.quantize_methods` names a `dryfit.quantization.methods.method.QuantizeMethod`. The
entry point's name is the method's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError
from dryfit.network.layers import quantized_operator
from dryfit.plugins import registry
from dryfit.plugins.discovery import QUANTIZE_METHODS, owner_of
from dryfit.plugins.switches import CHOOSE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

    from dryfit.quantization.methods.method import QuantizeMethod


def connect() -> None:
    """Let quantized operators find the methods of installed packages."""
    quantized_operator.find_method = quantize_method


def quantize_method(
    name: str, *, where: str | None = None, plugins: registry.PluginRegistry | None = None
) -> QuantizeMethod:
    """The method of a name. No other is loaded.

    Args:
        name: the entry point's name.
        where: who asks for it, for messages.
        plugins: where entry points are read; the installed packages by default.

    Raises:
        UnknownNameError: no installed package brings it.
        PluginError: two packages do, or the one that does is switched off or broken.
    """
    plugins = plugins or registry.installed()
    found = _loaded(plugins, name)
    if found is None:
        known = {one.name for one in plugins.entries(QUANTIZE_METHODS)}
        raise UnknownNameError("quantize method", name, known, where=where)
    return found


@functools.lru_cache(maxsize=64)
def _loaded(plugins: registry.PluginRegistry, name: str) -> QuantizeMethod | None:
    """The method; None where there is none. Kept, since each layer asks in each run."""
    entry = plugins.entry(QUANTIZE_METHODS, name)
    if entry is None:
        return None
    found: QuantizeMethod = plugins.require(entry, _prepare(entry), f"The quantize method {name!r} could not be loaded")
    return found


def quantize_method_package(name: str) -> str:
    """`distribution version` of the package that brings a method; "" where none does."""
    entry = registry.installed().entry(QUANTIZE_METHODS, name)
    return "" if entry is None else owner_of(entry).package


def quantize_methods(*, plugins: registry.PluginRegistry | None = None) -> dict[str, QuantizeMethod]:
    """Every method that can be loaded, by name, sorted. What fails or lost its name is recorded and left out."""
    plugins = plugins or registry.installed()
    lost = plugins.duplicates(QUANTIZE_METHODS)
    found = {}
    for entry in plugins.entries(QUANTIZE_METHODS):
        if owner_of(entry) in lost:
            plugins.fail(entry, lost[owner_of(entry)], remedy=CHOOSE_ONE)
            continue
        loaded = plugins.load(entry, _prepare(entry))
        if loaded is not None:
            found[entry.name] = loaded
    return found


def _prepare(entry: EntryPoint) -> Callable[[Any], QuantizeMethod]:
    """The function that checks what an entry point names."""

    def prepare(loaded: Any) -> QuantizeMethod:
        from dryfit.quantization.methods.method import QuantizeMethod

        if not isinstance(loaded, QuantizeMethod):
            raise PluginError(
                "The entry point names no quantize method", found=type(loaded).__name__, allowed="a QuantizeMethod"
            )
        if loaded.name != entry.name:
            raise PluginError(
                "A quantize method has its entry point's name", found=f"{loaded.name!r}", allowed=f"{entry.name!r}"
            )
        return loaded

    return prepare

"""What networks ask of installed packages, which they do not know themselves.

Networks, layers and formats of tensors lie below the part of dryfit that discovers packages. `dryfit.front_door`, which
every program comes through, hands on whom they ask: the one place where the two are tied together. It is a named tuple,
since `import dryfit` loads nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dryfit.network.layer_plugin import LayerPlugin, PluginKey
    from dryfit.network.layers.quantized_operator import OperatorMethod


class InstalledPackages(NamedTuple):
    """Functions that answer for installed packages; by default there are none.

    Attributes:
        layer_plugin: the layer plugin of this name, version and namespace, loaded; None where no package brings it.
            Raises `PluginError` where it is broken, or two packages bring it.
        layer_plugin_titles: the layer plugins that could be asked for, in words.
        why_no_layer_plugin: why one is not found though a package brings one of its name; "" where none does.
        quantize_method: the quantize method of a name. Raises `UnknownNameError` or `PluginError`.
        format_names: the names of the formats of installed devices.
        copy_array: the host's copy of an array into another; None where there is no host, or it has none.
    """

    layer_plugin: Callable[[PluginKey], LayerPlugin | None] = lambda key: None
    layer_plugin_titles: Callable[[], Sequence[str]] = tuple
    why_no_layer_plugin: Callable[[PluginKey], str] = lambda key: ""
    quantize_method: Callable[[str], OperatorMethod] | None = None
    format_names: Callable[[], Collection[str]] = tuple
    copy_array: Callable[[], Callable[[Any, Any], bool] | None] = lambda: None


_find: Callable[[], InstalledPackages] = InstalledPackages


def find_installed_by(find: Callable[[], InstalledPackages]) -> None:
    """Let networks ask what this function returns; it is called at their first question."""
    global _find  # noqa: PLW0603  what is installed is a property of the process
    _find = find


def installed_packages() -> InstalledPackages:
    """Whom to ask."""
    return _find()

"""Public names of a package such as `dryfit`: a table of modules, each imported at first use of a name.

For type checkers, editors and packagers, `docs/generate.py` writes the same names as imports into the `__init__.pyi`
next to the table. No file is read at run time, so zipped and frozen installations also work.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dryfit.errors import MissingAttributeError, PluginError, UnknownAttributeError, UnknownSettingError
from dryfit.network.installed_packages import InstalledPackages, find_installed_by
from dryfit.network.tensorrt_names import INSTEAD

if TYPE_CHECKING:
    from dryfit.target.copying import CopyArray


class FrontDoor(ModuleType):
    """The class of such a package, whose attributes are public names, submodules or private names."""

    __all__: Sequence[str]
    _places: Mapping[str, str]

    if not TYPE_CHECKING:  # a type checker finds misspelt names by itself, unless it sees these

        def __getattr__(self, name: str) -> Any:
            if name not in self._places:
                raise _unknown(self, name)
            return getattr(importlib.import_module(self._places[name]), name)

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name.startswith("_") or name in self.__all__ or isinstance(value, ModuleType)):
                raise _unknown(self, name, is_set=True)
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*self.__all__]


FrontDoor.__name__ = ModuleType.__name__  # messages that tell a value's type say what it is, a module


def public_names(module_name: str, names_of: Mapping[str, str]) -> None:
    """Define the public names of a package, each imported at first use.

    Args:
        module_name: name of the package that is being imported.
        names_of: public names separated by spaces, by module.
    """
    module = sys.modules[module_name]
    places = {name: place for place, names in names_of.items() for name in names.split()}
    vars(module).update(_places=places, __all__=sorted(name for name in places if name[0] != "_"))
    module.__class__ = FrontDoor


def _unknown(module: FrontDoor, name: str, *, is_set: bool = False) -> AttributeError:
    """Return the error for a name that the module does not have."""
    if name.startswith("_"):
        return AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    owner, remedy, known = f"module {module.__name__!r}", INSTEAD.get(module.__name__, {}).get(name), module.__all__
    if is_set:
        return UnknownSettingError(owner, name, known, is_set=True, remedy=remedy)
    return UnknownAttributeError(name, lambda: MissingAttributeError(owner, name, known, remedy=remedy))


@functools.cache
def _installed() -> InstalledPackages:
    """Return the lookups for networks, which must not import plugin packages."""
    from dryfit.plugins import registry
    from dryfit.plugins.layer_plugins import find_layer_plugin, layer_plugin_titles, why_no_layer_plugin
    from dryfit.plugins.quantize_methods import quantize_method

    def copy_array() -> CopyArray | None:
        try:
            return registry.host().copy_array
        except PluginError:
            return None

    return InstalledPackages(
        layer_plugin=find_layer_plugin,
        layer_plugin_titles=layer_plugin_titles,
        why_no_layer_plugin=why_no_layer_plugin,
        quantize_method=quantize_method,
        format_names=registry.format_names,
        copy_array=copy_array,
    )


find_installed_by(_installed)

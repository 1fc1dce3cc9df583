"""Make `import tensorrt`, `cuda` and `pycuda` give dryfit's modules, in one process.

An object on `sys.meta_path` finds the names; nothing is written into site-packages, and `uninstall` removes them. This
file imports only the standard library, and the modules behind the names are imported at first use, because every Python
process of a shell that `dryfit tensorrt env` set up installs the names when it starts.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # not typing's: importing `typing` takes half the time of this file
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.metadata import Distribution, DistributionFinder
    from types import ModuleType
    from typing import Any

    from dryfit_tensorrt.settings import ApiLevel, Settings

_CUDA = "dryfit_tensorrt.cuda"

CUDA_MODULES = {
    "cuda": "",
    "cuda.bindings": "",
    "cuda.bindings.runtime": f"{_CUDA}.runtime",
    "cuda.bindings.driver": f"{_CUDA}.driver",
    "cuda.bindings.nvrtc": f"{_CUDA}.nvrtc",
    "cuda.cudart": f"{_CUDA}.runtime",
    "cuda.cuda": f"{_CUDA}.driver",
    "cuda.nvrtc": f"{_CUDA}.nvrtc",
    "pycuda": "",
    "pycuda.driver": f"{_CUDA}.pycuda_driver",
    "pycuda.autoinit": f"{_CUDA}.pycuda_context",
    "pycuda.autoprimaryctx": f"{_CUDA}.pycuda_context",
    "pycuda.gpuarray": f"{_CUDA}.pycuda_gpuarray",
    "pycuda.tools": f"{_CUDA}.pycuda_context",
    "pycuda.compiler": f"{_CUDA}.pycuda_kernels",
    "pycuda.cumath": f"{_CUDA}.pycuda_kernels",
    "pycuda.curandom": f"{_CUDA}.pycuda_kernels",
    "pycuda.elementwise": f"{_CUDA}.pycuda_kernels",
    "pycuda.reduction": f"{_CUDA}.pycuda_kernels",
    "pycuda.scan": f"{_CUDA}.pycuda_kernels",
}
"""Name that programs import to the module of dryfit that they get; "" for a package with nothing but submodules."""

CUDA_VERSIONS = {"cuda": "12.9.0", "cuda.bindings": "12.9.0", "pycuda": "2025.1"}
"""`__version__` of the packages, whose functions dryfit's modules have."""

CUDA_DISTRIBUTIONS = {"cuda-python": "12.9.0", "cuda-bindings": "12.9.0", "pycuda": "2025.1"}
"""Distribution of these packages to its version."""

RUNTIME_ONLY = ("tensorrt_lean", "tensorrt_dispatch")
"""TensorRT's packages that load and run engines and cannot build them."""

TENSORRT_MODULES = ("tensorrt", "tensorrt.tensorrt", "tensorrt.plugin", "tensorrt_bindings", *RUNTIME_ONLY)
"""TensorRT's own packages; the API level chooses the module behind them."""

_PACKAGES = {"tensorrt", "cuda", "cuda.bindings", "pycuda"}
_REPLACED = {name.partition(".")[0] for name in (*CUDA_MODULES, *TENSORRT_MODULES)}

_BUILDER_NAMES = (
    "Builder",
    "IBuilder",
    "INetwork",
    "Onnx",
    "ParserError",
    "SubGraph",
    "IAlgorithm",
    "IInt8",
)
_LAYER_NAMES = ("ILayer", "ILoop", "IIfConditional", "IAttention", "Layer")
"""Beginnings and ends of names that the runtime-only packages do not have."""


def install(settings: Settings | None = None) -> Names:
    """Install the names in this process; returns the object on `sys.meta_path`, the same one for every call.

    Args:
        settings: what to simulate, for this process and those that it starts; None for what the environment says.
    """
    if settings is not None:
        os.environ.update(settings.environment())
    for found in sys.meta_path:
        if isinstance(found, Names):
            return found
    names = Names()
    sys.meta_path.insert(0, names)
    for name, patch in _PATCHED.items():
        if name in sys.modules:
            patch(sys.modules[name])
    return names


def uninstall() -> None:
    """Remove the names, and the modules that were imported by them, from this process."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Names)]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _REPLACED and isinstance(getattr(module, "__loader__", None), OwnModule):
            del sys.modules[name]


class Names:
    """Finds the modules, and the distribution `tensorrt` for `importlib.metadata`.

    Submodules that dryfit does not have, such as `cuda.core`, are not found, also if a distribution is installed that
    has them.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return a spec for a name that dryfit has a module for; None for all others."""
        if fullname in CUDA_MODULES or fullname in TENSORRT_MODULES:
            # Loaders by form: the abstract class would load more modules at the start of each Python.
            own: Any = OwnModule()
            return ModuleSpec(fullname, own, origin="dryfit", is_package=fullname in _PACKAGES)
        if fullname in _PATCHED:
            spec = PathFinder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                patched: Any = PatchedModule(spec.loader, _PATCHED[fullname])
                spec.loader = patched
            return spec
        return None

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """Return the distribution `tensorrt` and those of CUDA's modules; see `distribution.py`."""
        from dryfit_tensorrt.distribution import simulated_distributions

        own = dict.fromkeys(("tensorrt", *RUNTIME_ONLY), _level().version)
        yield from simulated_distributions(own | CUDA_DISTRIBUTIONS, context)


class OwnModule:
    """Loads dryfit's module for a name into a module of that name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a new module, so that dryfit's own module keeps its name and its spec."""
        return type(sys)(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with what dryfit's module has.

        Raises:
            ImportError: the chosen API level has no such module.
        """
        name = module.__name__
        if name in CUDA_MODULES:
            place = CUDA_MODULES[name]
            found = vars(importlib.import_module(place)) if place else {}
            if name in CUDA_VERSIONS:
                version = CUDA_VERSIONS[name]
                numbers = tuple(map(int, version.split(".")))
                vars(module).update(__version__=version, VERSION=numbers, VERSION_TEXT=version)
        else:
            found = _tensorrt_names(name)
        of_imports = {*vars(module), "__file__", "__cached__", "__builtins__", "__annotations__"} - {"__doc__"}
        vars(module).update({key: value for key, value in found.items() if key not in of_imports})


def _tensorrt_names(name: str) -> dict[str, Any]:
    """Return what the module of a name has at the chosen API level."""
    level = _level()
    _note_installed(name, level)
    found = vars(importlib.import_module(level.module))
    if name == "tensorrt.plugin":
        if "plugin" not in found:
            whose = "TensorRT" if level.name == "8.6" else "dryfit's TensorRT"
            raise ModuleNotFoundError(f"{whose} {level.name} has no module 'tensorrt.plugin'", name=name)
        names: dict[str, Any] = vars(found["plugin"])
        return names
    if name in RUNTIME_ONLY:
        return {key: value for key, value in found.items() if not key.startswith(_BUILDER_NAMES) and not _is_layer(key)}
    return found


def _is_layer(name: str) -> bool:
    return name in _LAYER_NAMES or (name.startswith("I") and name.endswith("Layer"))


def _level() -> ApiLevel:
    from dryfit_tensorrt.settings import Settings

    return Settings.from_environment().api


def _note_installed(name: str, level: ApiLevel) -> None:
    """Report on stderr if an installed package of the same name is not used."""
    real = PathFinder.find_spec(name) if "." not in name else None
    if real is not None and real.origin:
        text = f"dryfit: `import {name}` uses dryfit's module for TensorRT {level.version}, not {real.origin}"
        sys.stderr.write(f"{text}\n")


class PatchedModule:
    """Loads another package's module from its own file, and then changes it in memory.

    Args:
        loader: the module's own.
        patch: what changes it.
    """

    def __init__(self, loader: Any, patch: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module's own code, and change it."""
        self._loader.exec_module(module)
        self._patch(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # source, resources and file names are the module's own


def _patch_polygraphy(module: ModuleType) -> None:
    from dryfit_tensorrt.cuda.libraries import use_in_polygraphy

    use_in_polygraphy(module)


def _patch_ctypes(module: ModuleType) -> None:
    # It stays when the names are removed, and then does nothing: a class whose `__new__` is deleted takes no arguments.
    def made(kind: type, name: Any = None, *arguments: Any, **named: Any) -> Any:  # noqa: ARG001  what CDLL takes
        if not isinstance(name, str) or not ("cudart" in name or "nvinfer" in name) or not _is_installed():
            return object.__new__(kind)
        from dryfit_tensorrt.cuda.libraries import library_for

        return library_for(name) or object.__new__(kind)

    module.CDLL.__new__ = staticmethod(made)


def _patch_find_library(module: ModuleType) -> None:
    own = module.find_library
    if own.__module__ == __name__:  # it stays as well
        return

    def find_library(name: str) -> str | None:
        """Return the name of a library's file; dryfit's libraries are found by any."""
        if name in {"cudart", "nvinfer", "nvinfer_plugin"} and _is_installed():
            return f"lib{name}.so"
        found: str | None = own(name)
        return found

    module.find_library = find_library  # type: ignore[attr-defined]


def _is_installed() -> bool:
    return any(isinstance(finder, Names) for finder in sys.meta_path)


_PATCHED: dict[str, Callable[[ModuleType], None]] = {
    "ctypes": _patch_ctypes,
    "ctypes.util": _patch_find_library,
    "polygraphy.cuda.cuda": _patch_polygraphy,
}
"""Modules of others that load CUDA's libraries by file name, to what replaces the libraries."""

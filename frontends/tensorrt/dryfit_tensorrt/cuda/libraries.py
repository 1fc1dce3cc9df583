"""CUDA's and TensorRT's libraries for programs that load them by file name through ctypes, as Polygraphy does."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import PurePath
from types import ModuleType
from typing import Any

from dryfit_tensorrt.cuda import runtime

CUDA_RUNTIME = re.compile(r"(lib)?cudart(64_\d+)?([-.].*)?$")
TENSORRT = re.compile(r"(lib)?nvinfer\w*(\..*)?$")
"""Names of files, such as `libcudart.so.12`, `cudart64_12.dll` and `libnvinfer_plugin.so.10`."""

_TEXT_FUNCTIONS = ("cudaGetErrorName", "cudaGetErrorString")


class LibraryFunction:
    """A function of a library, called with ctypes values.

    Args:
        name: of the function.
        function: returns `(code, values...)`; the values are stored through the first arguments, as C does.
    """

    def __init__(self, name: str, function: Callable[..., tuple[Any, ...]]) -> None:
        self.__name__ = name
        self._function = function
        self._returns_text = name in _TEXT_FUNCTIONS
        self._results = 0 if self._returns_text else getattr(function, "value_count", 0)
        self.argtypes: Any = None
        self.restype: Any = ctypes.c_int
        self.errcheck: Any = None

    def __call__(self, *arguments: Any) -> int | bytes:
        """Call the function; returns the code, or a string if the C function does."""
        if len(arguments) < self._results:
            raise TypeError(f"{self.__name__} needs {self._results} or more arguments (found {len(arguments)})")
        code, *values = self._function(*map(_plain, arguments[self._results :]))
        if self._returns_text:
            return bytes(values[0])
        if code == 0:
            for pointer, value in zip(arguments, values, strict=False):
                _pointee(pointer).value = value if isinstance(value, float) else int(value)
        return int(code)


def _plain(given: Any) -> Any:
    """Return what a ctypes value is as an argument of the functions of `runtime`."""
    if isinstance(given, ctypes.c_void_p):
        return given.value or 0
    if isinstance(given, ctypes._Pointer):  # noqa: SLF001  ctypes has no other name for the class of pointers
        return ctypes.cast(given, ctypes.c_void_p).value or 0
    if isinstance(given, ctypes._SimpleCData):  # noqa: SLF001
        return given.value
    return given


def _pointee(pointer: Any) -> Any:
    """Return the value that `byref` or `pointer` refers to."""
    return pointer._obj if hasattr(pointer, "_obj") else pointer.contents  # noqa: SLF001  the argument of `byref`


class CudaRuntimeLibrary:
    """`libcudart`: the functions of `runtime` by their names.

    Example:
        >>> library = CudaRuntimeLibrary()
        >>> address = ctypes.c_void_p()
        >>> library.cudaMalloc(ctypes.byref(address), 64)
        0
        >>> library.cudaFree(address)
        0
    """

    _name = "libcudart (dryfit)"
    _handle = 0

    def __getattr__(self, name: str) -> Any:
        found = LibraryFunction(name, getattr(runtime, name))
        setattr(self, name, found)
        return found

    __getitem__ = __getattr__


class TensorRTLibrary:
    """`libnvinfer` and `libnvinfer_plugin`, which scripts load for what loading does; their C++ functions are refused.

    Args:
        name: as the program gave it.
    """

    _handle = 0

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "initLibNvInferPlugins":
            return lambda *_: 1  # dryfit's plugins are registered from the start
        raise AttributeError(f"dryfit has no C++ function {name!r} of {self._name}; use the Python module", name=name)


def library_for(name: Any) -> Any:
    """Return dryfit's library for a file name; None for other libraries."""
    if not isinstance(name, str):
        return None
    file = PurePath(name).name
    if CUDA_RUNTIME.match(file):
        return CudaRuntimeLibrary()
    return TensorRTLibrary(name) if TENSORRT.match(file) else None


def use_in_polygraphy(module: ModuleType) -> None:
    """Give Polygraphy's wrapper of CUDA dryfit's library, so that it searches for none.

    Args:
        module: `polygraphy.cuda.cuda`.
    """

    def use_library(wrapper: Any) -> None:
        wrapper.handle = CudaRuntimeLibrary()

    module.Cuda.__init__ = use_library

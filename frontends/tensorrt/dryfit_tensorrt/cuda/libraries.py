"""CUDA's runtime library as programs see it that load it by ctypes, such as Polygraphy."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class CudaRuntimeLibrary:
    """A stand-in."""


def use_in_polygraphy(module: ModuleType) -> None:
    """Give Polygraphy's wrapper of CUDA the library, so that it loads none by file name.

    Args:
        module: `polygraphy.cuda.cuda`.
    """

    def use_library(wrapper: Any) -> None:
        wrapper.handle = CudaRuntimeLibrary()

    module.Cuda.__init__ = use_library

"""`pycuda.compiler` and PyCUDA's other modules that compile kernels: every name exists and is refused when called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dryfit_tensorrt.cuda.results import KernelRequiredError


class SourceModule:
    """Source code of kernels, which is refused."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise KernelRequiredError("SourceModule")


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)

    def refused(*arguments: Any, **named: Any) -> Any:
        raise KernelRequiredError(name)

    return refused

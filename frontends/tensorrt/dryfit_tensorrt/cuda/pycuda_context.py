"""`pycuda.autoinit`, `pycuda.autoprimaryctx` and `pycuda.tools`: the context that exists from the start."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from typing import Any

from dryfit_tensorrt.cuda.pycuda_driver import Context, Device, DeviceAllocation, mem_alloc, pagelocked_empty

__all__ = ["atexit", "context", "device"]

device = Device(0)
context = device.make_context()


def make_default_context(ctx_maker: Callable[[Device], Context] | None = None) -> Context:
    """Return the context."""
    return context if ctx_maker is None else ctx_maker(device)


def clear_context_caches() -> None:
    """Do nothing: nothing is kept per context."""


def context_dependent_memoize(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the results of a function."""
    return functools.cache(function)


class DeviceMemoryPool:
    """An allocator; memory is freed with the last reference to it, and not kept."""

    def allocate(self, size: int) -> DeviceAllocation:
        """Allocate device memory."""
        return mem_alloc(size)

    def free_held(self) -> None:
        """Do nothing: nothing is kept."""

    def stop_holding(self) -> None:
        """Do nothing: nothing is kept."""


class PageLockedMemoryPool(DeviceMemoryPool):
    """An allocator of arrays in pinned host memory."""

    def allocate(self, shape: Any, dtype: Any, order: str = "C") -> Any:  # type: ignore[override]  # PyCUDA's
        """Return an array in pinned host memory."""
        return pagelocked_empty(shape, dtype, order)

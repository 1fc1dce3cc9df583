"""`pycuda.gpuarray`: arrays in device memory that are made, copied, reshaped and read; arithmetic is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import pycuda_driver as driver
from dryfit_tensorrt.cuda.driver import CUdeviceptr
from dryfit_tensorrt.cuda.results import KernelRequiredError, refusing

Array = npt.NDArray[Any]

ARITHMETIC = (
    "abs", "add", "and", "ceil", "contains", "divmod", "eq", "floor", "floordiv", "ge", "gt", "iadd", "imul", "invert",
    "ipow", "isub", "itruediv", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "neg", "or", "pos", "pow", "radd",
    "rmul", "round", "rpow", "rshift", "rsub", "rtruediv", "sub", "truediv", "xor",
)  # fmt: skip
"""Operators of Python that PyCUDA computes by kernels."""

METHODS = ("astype", "conj", "mul_add", "dot", "sum", "min", "max", "any", "all", "reverse")
"""Methods that PyCUDA computes by kernels."""


class GPUArray:
    """An array in device memory.

    Args:
        shape: extents.
        dtype: type of the values.
        allocator: makes the memory from a number of bytes.
        base: array whose memory this one shares.
        gpudata: memory to use; None allocates it.
        strides: bytes between values per axis; None for C order.
        order: C or F.
    """

    __array_priority__ = 100

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike,
        allocator: Callable[[int], Any] = driver.mem_alloc,
        base: Any = None,
        gpudata: Any = None,
        strides: Sequence[int] | None = None,
        order: str = "C",
    ) -> None:
        dims = driver.dims_of(shape)
        self.shape = dims
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.order = order
        self.strides = driver.strides_of(dims, self.dtype.itemsize, order) if strides is None else tuple(strides)
        self.size = self.mem_size = math.prod(dims)
        self.nbytes = self.size * self.dtype.itemsize
        self.ndim = len(dims)
        self.itemsize = self.dtype.itemsize
        self.allocator = allocator
        self.base = base
        self.gpudata = (allocator(self.nbytes) if self.size else None) if gpudata is None else gpudata

    @property
    def ptr(self) -> int:
        """The address of the first value."""
        return 0 if self.gpudata is None else int(self.gpudata)

    @property
    def flags(self) -> Any:
        """Flags as numpy's of an array with these strides."""
        return self._values().flags

    def _values(self) -> Array:
        """Return the values as an array that shares the memory."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        found = memory.view(self.ptr, self.nbytes).view(self.dtype)
        return np.lib.stride_tricks.as_strided(found, self.shape, self.strides)

    @driver.raising("cuMemcpyHtoD")
    def set(self, ary: Any, async_: bool = False, stream: Any = None, **named: Any) -> None:
        """Copy an array of the same shape and type to the device."""
        found = np.asarray(ary)
        if found.size != self.size:
            raise ValueError("ary and self must be the same size")
        if found.dtype != self.dtype:
            raise TypeError("ary and self must have the same dtype")
        self._values()[...] = found.reshape(self.shape)

    def set_async(self, ary: Any, stream: Any = None) -> None:
        """Copy an array to the device in the order of a stream."""
        self.set(ary)

    @driver.raising("cuMemcpyDtoH")
    def get(self, ary: Array | None = None, pagelocked: bool = False, async_: bool = False, **named: Any) -> Array:
        """Return a copy of the values, in `ary` if it is given."""
        make = driver.pagelocked_empty if pagelocked else np.empty
        found: Array = make(self.shape, self.dtype) if ary is None else ary
        if found.size != self.size or found.dtype != self.dtype:
            raise ValueError("ary and self must have the same size and dtype")
        found.reshape(self.shape)[...] = self._values()
        return found

    def get_async(self, stream: Any = None, ary: Array | None = None) -> Array:
        """Return a copy of the values in the order of a stream."""
        return self.get(ary)

    def copy(self) -> GPUArray:
        """Return a copy in device memory."""
        made = GPUArray(self.shape, self.dtype, self.allocator, order=self.order)
        made.set(self._values())
        return made

    def fill(self, value: Any, stream: Any = None) -> GPUArray:
        """Set all values."""
        self._values()[...] = value
        return self

    def reshape(self, *shape: Any, order: str = "C") -> GPUArray:
        """Return an array of another shape that shares the memory."""
        dims = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        made = self._values().reshape(dims)
        return GPUArray(made.shape, self.dtype, self.allocator, self, self.gpudata, order=self.order)

    def ravel(self) -> GPUArray:
        """Return an array of one axis that shares the memory."""
        return self.reshape(self.size)

    def squeeze(self) -> GPUArray:
        """Return an array without the axes of extent 1 that shares the memory."""
        return self.reshape(tuple(extent for extent in self.shape if extent != 1))

    def view(self, dtype: npt.DTypeLike | None = None) -> GPUArray:
        """Return an array of another type that shares the memory."""
        made = self._values().view(dtype or self.dtype)
        return GPUArray(made.shape, made.dtype, self.allocator, self, self.gpudata)

    def __getitem__(self, index: Any) -> GPUArray:
        found = self._values()[index]
        made = np.asarray(found)
        address = CUdeviceptr(self.ptr + made.ctypes.data - self._values().ctypes.data)
        return GPUArray(made.shape, self.dtype, self.allocator, self, address, made.strides)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._values()[index] = value.get() if isinstance(value, GPUArray) else value

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __int__(self) -> int:
        return self.ptr

    def __str__(self) -> str:
        return str(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __hash__(self) -> int:
        raise TypeError("GPUArrays are not hashable.")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in METHODS:
            return _refused(f"GPUArray.{name}")
        raise AttributeError(f"dryfit's pycuda.gpuarray.GPUArray does not have {name!r}", name=name)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise KernelRequiredError(name)

    return refuse


for _name in ARITHMETIC:
    setattr(GPUArray, f"__{_name}__", _refused(f"GPUArray.__{_name}__"))


def empty(shape: Any, dtype: npt.DTypeLike, allocator: Any = driver.mem_alloc, order: str = "C") -> GPUArray:
    """Return an array in device memory."""
    return GPUArray(shape, dtype, allocator, order=order)


def zeros(
    shape: Any, dtype: npt.DTypeLike = np.float64, allocator: Any = driver.mem_alloc, order: str = "C"
) -> GPUArray:
    """Return an array of zeros in device memory."""
    return GPUArray(shape, dtype, allocator, order=order).fill(0)


def ones(
    shape: Any, dtype: npt.DTypeLike = np.float64, allocator: Any = driver.mem_alloc, order: str = "C"
) -> GPUArray:
    """Return an array of ones in device memory."""
    return GPUArray(shape, dtype, allocator, order=order).fill(1)


def empty_like(other_ary: Any, dtype: npt.DTypeLike | None = None, order: str = "K") -> GPUArray:
    """Return an array in device memory with the shape and type of another."""
    return empty(other_ary.shape, dtype or other_ary.dtype)


def zeros_like(other_ary: Any, dtype: npt.DTypeLike | None = None, order: str = "K") -> GPUArray:
    """Return an array of zeros in device memory with the shape and type of another."""
    return zeros(other_ary.shape, dtype or other_ary.dtype)


def to_gpu(ary: Array, allocator: Any = driver.mem_alloc) -> GPUArray:
    """Return a copy of an array in device memory."""
    found = np.asarray(ary)
    made = GPUArray(found.shape, found.dtype, allocator, order=driver.order_of(found))
    made.set(found)
    return made


def to_gpu_async(ary: Array, allocator: Any = driver.mem_alloc, stream: Any = None) -> GPUArray:
    """Return a copy of an array in device memory, made in the order of a stream."""
    return to_gpu(ary, allocator)


KERNEL_NAMES = ("arange", "take", "sum", "dot", "min", "max", "if_positive", "where", "multi", "concatenate", "stack")
"""How names begin of functions that PyCUDA computes by kernels."""

__getattr__ = refusing("pycuda.gpuarray", KERNEL_NAMES)

"""Bound arrays as native functions see them: an address, strides and extents, checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit.target.memory import aligned_bytes
from dryfit_cpu.codes import ELEMENT_CODES, FP32
from dryfit_cpu.descriptors import Image, Pixels


@frozen(eq=False)
class ImageOperand:
    """A four-dimensional array in N, C, H, W order.

    Attributes:
        address: of element (0, 0, 0, 0).
        kind: element code.
        shape: (N, C, H, W).
        strides: bytes from one element to the next along each axis. Those of axes of extent 1 are made to look dense.
        array: what it is a view of; it has to be kept while the address is used.
    """

    address: int
    kind: int
    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]
    array: Array

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    @property
    def has_dense_channels(self) -> bool:
        """Whether a pixel's channels lie together."""
        return self.strides[1] == self.size

    @property
    def image(self) -> Image:
        """What native functions are told about it."""
        images, channels, rows, columns = self.shape
        image_stride, channel_stride, row_stride, pixel_stride = self.strides
        return Image(
            self.address, self.kind, image_stride, row_stride, pixel_stride, channel_stride, images, rows, columns,
            channels,
        )  # fmt: skip

    @classmethod
    def of(cls, array: Array) -> ImageOperand:
        """An FP32, FP16 or BF16 array of 3 axes (N, C, W) or 4."""
        if array.ndim == 3:
            array = array[:, :, None, :]
        N, C, H, W = array.shape
        size = array.itemsize
        n, c, h, w = array.strides
        c = size if C == 1 else c
        w = C * size if W == 1 else w
        h = W * w if H == 1 else h
        n = H * h if N == 1 else n
        return cls(array.ctypes.data, element_code(array), (N, C, H, W), (n, c, h, w), array)


def image_of(operand: ImageOperand | None, kind: int) -> Image:
    """What native functions are told about an operand that may be missing, of some element code then."""
    return operand.image if operand is not None else Image(0, kind, *[0] * 8)


def input_of(group: LayerGroup) -> Tensor:
    """The first input of a group's main layer."""
    return cast("Tensor", group.main.inputs[0])


def all_specs(group: LayerGroup, specs: Specs) -> dict[str, TensorSpec]:
    """Specs with those of a group that stands for another: its own tensors and the inner ones among them."""
    tensors = [tensor for layer in group.layers for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]
    return {**specs, **{tensor.name: tensor.spec for tensor in tensors}}


def pixels_at(operand: ImageOperand | Array | None, kind: int = FP32) -> Pixels:
    """What a matrix product is told about an operand but its stride; it may be missing, of some element code then."""
    if operand is None:
        return Pixels(0, 0, kind)
    if isinstance(operand, ImageOperand):
        return Pixels(operand.address, 0, operand.kind)
    return Pixels(operand.ctypes.data, 0, element_code(operand))


def element_code(array: Array) -> int:
    """The code of an array's element type."""
    return ELEMENT_CODES[DataType.from_numpy(array.dtype)]


def bound_array(binding: Binding, name: str) -> Array:
    """The array of a tensor, or the value of a constant one.

    Raises:
        ExecutionError: its shape or type is not what the group was bound for. A native function would read beyond it.
    """
    spec = binding.specs[name]
    array = binding.arrays.get(name)
    if array is None:
        array = spec.value
    if array is None or array.shape != spec.shape or array.dtype != spec.dtype.numpy:
        raise ExecutionError(
            "The bound array does not match the tensor's type and shape",
            where=f"layer {binding.group.name!r}, tensor {name!r}",
            found=None if array is None else f"{array.dtype} {array.shape}",
            allowed=f"{spec.dtype.numpy} {spec.shape}",
            remedy="Build the engine again; if that does not help, report a bug",
        )
    return array


def require_extents(found: Sequence[int], allowed: Sequence[int], where: str) -> None:
    """Refuse an array whose extents are not those that addresses are computed from.

    `where` says which array of which function.

    Raises:
        ExecutionError: they differ. A native function would read or write beyond the array.
    """
    if tuple(found) != tuple(allowed):
        raise ExecutionError(
            "An array's extents do not match those that its kernel was built for",
            where=where,
            found=tuple(found),
            allowed=tuple(allowed),
            remedy="Build the engine again",
        )


def aligned_in_order(array: Array, order: Sequence[int]) -> Array:
    """A new array like another one, which is row-major once its axes are in this order."""
    ordered = aligned_empty([array.shape[axis] for axis in order], array.dtype)
    return ordered.transpose(np.argsort(order))


def aligned_empty(shape: Sequence[int], dtype: np.dtype | type) -> Array:
    """A new array that begins at a cache line, with a cache line to spare behind it."""
    return aligned_bytes(math.prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


class Workspace:
    """Pieces of the workspace that a binding brings, one after the other.

    What does not fit, because an operand does not lie as the kernel asked, is memory of the step's own.
    """

    def __init__(self, binding: Binding) -> None:
        self._memory = binding.workspace
        self._used = 0

    def branch(self) -> Workspace:
        """What is left, for steps that run one after the other: each of them may take the same memory."""
        return copy.copy(self)

    def take(self, shape: Sequence[int]) -> Array:
        """An FP32 array that begins at a cache line; its contents are undefined."""
        count = fp32_bytes(shape)
        if self._used + count > self._memory.size:
            return aligned_empty(shape, np.float32)
        piece = self._memory[self._used : self._used + 4 * math.prod(shape)]
        self._used += count
        return piece.view(np.float32).reshape(shape)


def fp32_bytes(shape: Sequence[int]) -> int:
    """Bytes of workspace that an FP32 array of this shape takes, a cache line to spare included.

    Python integers: those of numpy wrap around silently, and shapes may come out of forged files.
    """
    return -(-4 * math.prod(map(int, shape)) // 64) * 64 + 64

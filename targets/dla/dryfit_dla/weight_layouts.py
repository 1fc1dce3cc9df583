"""How the DLA keeps weights in its global DRAM: the layouts, their sizes, and which weights lie in which.

Kernels of convolutions lie as NVDLA, the open ancestor, keeps them: kernels in groups, and in a group blocks of 64
channels of one position, kernel by kernel, position by position. Whether Xavier and Orin do the same is not published.
What other layers hold grows on Orin: to FP19 in a container of 4 bytes, with channels filled up. The bits of FP19 are
not published, and the emulation computes with the whole value: the container here has its FP32 bits.

Source: TensorRT 10 developer guide, Working with DLA: Inference on NVIDIA Orin (FP19, 4 bytes, multiples of 16 and 32);
NVDLA, In-memory data formats: weight for direct convolution (kernel groups).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.memory_pools import WeightsOfLayer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_BLOCK_CHANNELS = 64
_KERNELS_A_GROUP = {DataType.INT8: 32, DataType.HALF: 16}
_BIAS_INPUT = 2
"""Inputs of a convolution: data, kernel, bias."""
_IMAGE_AXES = 3
"""Channels, height, width."""
_END_BYTES = 128
"""All kernels of a convolution together end at a multiple of this."""
_CONTAINER_BYTES = 4


class WeightRole(enum.Enum):
    """What weights are to the layer that holds them."""

    KERNEL = "the kernel of a convolution"
    BIAS = "the bias of a convolution"
    CONSTANT = "a constant of a layer other than a convolution"
    SCALE = "the scale of a quantized tensor"


def weight_role(weights: WeightsOfLayer) -> WeightRole:
    """What weights are to their layer."""
    if weights.layer.kind in ("quantize", "dequantize"):
        return WeightRole.SCALE
    # All sums of products run in the convolution pipeline: there a matrix product with a constant is a convolution.
    if not weights.layer.sums_products:
        return WeightRole.CONSTANT
    is_bias = weights.parameter == "bias" or weights.input_index == _BIAS_INPUT
    return WeightRole.BIAS if is_bias else WeightRole.KERNEL


@frozen
class WeightLayout:
    """A way in which weights lie in memory.

    Attributes:
        name: as loadables have it.
        text: what it is, in one sentence.
        size_bytes: (shape, stored element type) to bytes, with padding.
        pack: (values of the stored element type) to `uint8[size_bytes]`.
        unpack: (`uint8[size_bytes]`, shape, stored element type) to values.
    """

    name: str
    text: str
    size_bytes: Callable[[tuple[int, ...], DataType], int]
    pack: Callable[[Array], Array]
    unpack: Callable[[Array, tuple[int, ...], DataType], Array]


def layout_of(weights: WeightsOfLayer) -> tuple[WeightLayout, DataType]:
    """The layout of weights on the device, and the type of an element there.

    A kernel has the computation type. What is no kernel keeps its own type, as the emulation computes with it.
    """
    role = weight_role(weights)
    if role is WeightRole.KERNEL and weights.precision in _KERNELS_A_GROUP:
        return KERNEL_GROUPS, weights.precision
    if role is WeightRole.CONSTANT and weights.family == "orin" and fits_containers(weights.dtype):
        return (FP19_OF_32 if weights.precision is DataType.INT8 else FP19_OF_16), weights.dtype
    return ROW_MAJOR, weights.dtype


def stored_bytes(weights: WeightsOfLayer) -> int:
    """Bytes that weights take in the global DRAM."""
    layout, dtype = layout_of(weights)
    return layout.size_bytes(stored_shape(weights), dtype)


def stored_shape(weights: WeightsOfLayer) -> tuple[int, ...]:
    """The extents with which weights lie in memory: of an elementwise scale `[C, H, W]`, however they were given."""
    layer: Any = weights.layer
    if layer.kind != "scale" or layer.mode.name != "ELEMENTWISE" or not weights.parameter:
        return weights.shape
    extents: tuple[int, ...] = layer.coefficient_shape(layer.inputs[0].shape)[layer.channel_axis :]
    return extents if math.prod(extents) == math.prod(weights.shape) else weights.shape


def fits_containers(dtype: DataType) -> bool:
    """Whether each value of a type is an FP32 number."""
    return dtype in (DataType.FLOAT, DataType.HALF, DataType.INT8)


# Row-major --------------------------------------------------------------------------------------------------------


def _plain_bytes(shape: tuple[int, ...], dtype: DataType) -> int:
    return dtype.bytes_of(math.prod(shape))


def _pack_plain(values: Array) -> Array:
    import numpy as np

    return np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)


def _unpack_plain(memory: Array, shape: tuple[int, ...], dtype: DataType) -> Array:
    return memory.view(dtype.numpy).reshape(shape)


# Kernels of convolutions ------------------------------------------------------------------------------------------


def _kernel_bytes(shape: tuple[int, ...], dtype: DataType) -> int:
    return _round_up(dtype.bytes_of(math.prod(shape)), _END_BYTES)


def _kernel_axes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(kernels, channels, positions): what a kernel `[K, C, R, S]` of any rank is to the layout."""
    kernels, channels, *window = (*shape, *([1] * (2 - len(shape))))
    return kernels, channels, math.prod(window)


def _blocks(shape: tuple[int, ...], dtype: DataType) -> list[tuple[slice, slice]]:
    """(kernels, channels) of each block, in the order of memory."""
    kernels, channels, _ = _kernel_axes(shape)
    step = _KERNELS_A_GROUP[dtype]
    return [
        (slice(kernel, min(kernel + step, kernels)), slice(channel, min(channel + _BLOCK_CHANNELS, channels)))
        for kernel in range(0, kernels, step)
        for channel in range(0, channels, _BLOCK_CHANNELS)
    ]


def _pack_kernels(values: Array) -> Array:
    import numpy as np

    dtype = DataType.from_numpy(values.dtype)
    memory = np.zeros(_kernel_bytes(values.shape, dtype) // values.itemsize, values.dtype)
    table = values.reshape(_kernel_axes(values.shape))
    position = 0
    for kernels, channels in _blocks(values.shape, dtype):
        # Positions outside, then the kernels of the group, then the channels of the block.
        block = table[kernels, channels].transpose(2, 0, 1)
        memory[position : position + block.size] = block.reshape(-1)
        position += block.size
    return memory.view(np.uint8)


def _unpack_kernels(memory: Array, shape: tuple[int, ...], dtype: DataType) -> Array:
    import numpy as np

    elements = memory.view(dtype.numpy)
    table = np.empty(_kernel_axes(shape), dtype.numpy)
    position = 0
    for kernels, channels in _blocks(shape, dtype):
        block = table[kernels, channels].transpose(2, 0, 1)
        block[...] = elements[position : position + block.size].reshape(block.shape)
        position += block.size
    return table.reshape(shape)


# Constants in containers of 4 bytes -------------------------------------------------------------------------------


def channel_axis(shape: tuple[int, ...]) -> int:
    """The axis of the channels: the third from the last, and the last in tensors of lower rank."""
    return len(shape) - _IMAGE_AXES if len(shape) >= _IMAGE_AXES else len(shape) - 1


def _filled_shape(shape: tuple[int, ...], unit: int) -> tuple[int, ...]:
    filled = list(shape) or [1]
    axis = channel_axis(tuple(filled))
    filled[axis] = _round_up(filled[axis], unit)
    return tuple(filled)


def _containers(unit: int) -> WeightLayout:
    def size_bytes(shape: tuple[int, ...], dtype: DataType) -> int:
        del dtype
        return _CONTAINER_BYTES * math.prod(_filled_shape(shape, unit))

    def pack(values: Array) -> Array:
        import numpy as np

        memory = np.zeros(_filled_shape(values.shape, unit), np.float32)
        memory[tuple(map(slice, values.shape or (1,)))] = values
        return memory.reshape(-1).view(np.uint8)

    def unpack(memory: Array, shape: tuple[int, ...], dtype: DataType) -> Array:
        import numpy as np

        filled = memory.view(np.float32).reshape(_filled_shape(shape, unit))
        return filled[tuple(map(slice, shape or (1,)))].reshape(shape).astype(dtype.numpy)

    text = f"FP19 in containers of {_CONTAINER_BYTES} bytes, channels padded to a multiple of {unit}"
    return WeightLayout(f"FP19_C{unit}", text, size_bytes, pack, unpack)


ROW_MAJOR = WeightLayout("ROW_MAJOR", "row-major, without padding", _plain_bytes, _pack_plain, _unpack_plain)
KERNEL_GROUPS = WeightLayout(
    "KERNEL_GROUPS",
    f"kernels in groups of 16 (FP16) or 32 (INT8), each group in blocks of {_BLOCK_CHANNELS} channels: position by "
    f"position, kernel by kernel; padded to {_END_BYTES} bytes at the end",
    _kernel_bytes,
    _pack_kernels,
    _unpack_kernels,
)
FP19_OF_16 = _containers(16)
FP19_OF_32 = _containers(32)

LAYOUTS: Mapping[str, WeightLayout] = {
    layout.name: layout for layout in (ROW_MAJOR, KERNEL_GROUPS, FP19_OF_16, FP19_OF_32)
}
"""Name to layout."""


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

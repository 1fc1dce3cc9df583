"""Tensor formats: how a tensor lies in a device's memory.

A format is a description, from which extents, strides, size, pack and unpack follow. Channels are the third axis from
the last (the fourth in the formats for volumes); what stands before them is the batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import ConfigError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.target.copying import copy_array
from dryfit.target.declared_object import data_types, names

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@attrs.frozen(cache_hash=True)
class TensorFormat:
    """A layout description.

    The memory of a tensor of shape `[*batch, C, *spatial]` is a C-contiguous array
    `[*batch, ceil(C / vector), *spatial, vector]` when channels lie together in vectors (CHW16, CHW32),
    `[*batch, *spatial, C']` when they are innermost (HWC, HWC8, DLA_HWC4), and `[*batch, C, *spatial]` otherwise
    (LINEAR, DLA_LINEAR), with the extent along W padded to whole multiples of `line_alignment_bytes`.

    Attributes:
        name: TensorRT's `TensorFormat` name.
        data_types: element types it is defined for; empty means all.
        channels_vector: channels that lie together; 1 for planar formats. Where channels are innermost, their count is
            padded to a multiple of it.
        channels_last: whether the channel is the innermost axis over the whole width (HWC family).
        channel_counts: channel counts it is defined for; empty means all. For DLA_HWC4: 1, 3, 4.
        padded_channels: channel count to channels in memory where that is not the next multiple of `channels_vector`.
        line_alignment_bytes: platform family to bytes; a line along W takes a multiple of them. "" for all families;
            and beside families that are named, where none is requested: another family is then an error.
        spatial_axes: 2, or 3 for the formats of volumes (DHWC8, CDHW32).
        reader_kinds: kinds of layer that can read it at the border of a segment; empty means all. For DLA_HWC4:
            convolution.
        source: document and section.

    Example:
        >>> chw16 = TensorFormat("CHW16", {DataType.HALF}, channels_vector=16)
        >>> chw16.array_shape((1, 20, 8, 8), DataType.HALF), chw16.size_bytes((1, 20, 8, 8), DataType.HALF)
        ((1, 2, 8, 8, 16), 4096)
    """

    name: str
    data_types: frozenset[DataType] = attrs.field(default=frozenset(), converter=data_types)
    channels_vector: int = 1
    channels_last: bool = False
    channel_counts: Sequence[int] = ()
    padded_channels: Mapping[int, int] = attrs.field(factory=dict, hash=False)
    line_alignment_bytes: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    spatial_axes: int = 2
    reader_kinds: frozenset[str] = attrs.field(default=frozenset(), converter=names)
    source: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is row-major without padding, for any rank."""
        return self.channels_vector == 1 and not self.channels_last and not self.line_alignment_bytes

    @property
    def has_vectors(self) -> bool:
        """Whether channels lie together in vectors (CHW16, CHW32), which strides then count."""
        return self.channels_vector > 1 and not self.channels_last

    def allows(self, shape: Sequence[int], dtype: DataType) -> bool:
        """Return whether the format is defined for tensors of this shape and type."""
        return self._mismatch(shape, dtype) is None

    def array_shape(self, shape: Sequence[int], dtype: DataType, family: str = "") -> tuple[int, ...]:
        """Return the extents of the C-contiguous array, in elements, that holds a tensor of this shape.

        Raises:
            ConfigError: the format is not defined for this shape and type.
            UnknownNameError: it is not the same for all platform families, and this is none of them.
        """
        self._require_family(family)
        mismatch = self._mismatch(shape, dtype)
        if mismatch is not None:
            raise ConfigError(
                f"The tensor format {self.name} is not supported for this tensor",
                found=mismatch[0],
                allowed=mismatch[1],
                source=self.source or None,
                remedy="Choose another tensor format, or change the tensor's type or shape",
            )
        if self.is_plain:
            return tuple(shape)
        axis = self._channel_axis(len(shape))
        batch, channels, spatial = tuple(shape[:axis]), shape[axis], tuple(shape[axis + 1 :])
        if self.channels_last:
            inner = self.padded_channels.get(channels, _round_up(channels, self.channels_vector))
            return (*batch, *self._padded_lines(spatial, inner * dtype.bits, family), inner)
        lines = self._padded_lines(spatial, self.channels_vector * dtype.bits, family)
        if self.has_vectors:
            return (*batch, -(-channels // self.channels_vector), *lines, self.channels_vector)
        return (*batch, channels, *lines)

    def strides(self, shape: Sequence[int], dtype: DataType, family: str = "") -> tuple[int, ...]:
        """Steps along each axis of the tensor, as TensorRT's `get_strides` counts them.

        In elements; in vectors of `channels_vector` elements for the formats whose channels lie in vectors, where the
        step along C is the one from vector to vector.

        Raises:
            ConfigError: the format is not defined for this shape and type.
        """
        extents = self.array_shape(shape, dtype, family)
        if self.has_vectors:
            extents = extents[:-1]
        steps = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        if self.channels_last:
            steps.insert(self._channel_axis(len(shape)), steps.pop())
        return tuple(steps)

    def size_bytes(self, shape: Sequence[int], dtype: DataType, family: str = "") -> int:
        """Return bytes that a tensor of this shape takes.

        Raises:
            ConfigError: the format is not defined for this shape and type.
        """
        return dtype.bytes_of(math.prod(self.array_shape(shape, dtype, family)))

    def pack(self, array: Array, family: str = "", *, out: Array | None = None) -> Array:
        """Return the memory of a tensor, as an array of `array_shape`; padding is zero.

        Each byte is written once, by native code where that is quicker.

        Args:
            array: the tensor, with any strides.
            family: of the platform.
            out: the memory that is written, of `array_shape` and the tensor's type; by default a new array.

        Raises:
            ConfigError: the format is not defined for this shape and type, or `out` is other memory.
        """
        plan = _packing().packing_plan(self, array.shape, array.dtype, family)
        memory = _packing().np.empty(plan.extents, array.dtype) if out is None else out
        self._require(memory, plan.extents, array)
        if array.size:  # else the memory is empty as well
            for in_memory, in_tensor in plan.pairs_to_pack(array, memory):
                copy_array(in_tensor, in_memory)
        return memory

    def unpack(self, memory: Array, shape: Sequence[int], family: str = "", *, out: Array | None = None) -> Array:
        """Return the tensor of this shape that a memory holds; a copy. Padding is not read.

        Args:
            memory: an array of `array_shape`.
            shape: of the tensor.
            family: of the platform.
            out: the tensor that is written, of this shape and the memory's type, with any strides; by default a new
                array.

        Raises:
            ConfigError: the format is not defined for this shape and type, the memory does not have the extents that
                it gives this shape, or `out` is another tensor.
        """
        plan = _packing().packing_plan(self, tuple(shape), memory.dtype, family)
        tensor = _packing().np.empty(tuple(shape), memory.dtype) if out is None else out
        self._require(memory, plan.extents, tensor)
        if tensor.shape != tuple(shape):
            raise ConfigError(
                "The array must have the shape of the tensor in memory",
                found=f"shape {tensor.shape}",
                allowed=f"shape {tuple(shape)}",
                remedy="Pass an array of this shape, or describe the tensor with the array's shape",
            )
        if tensor.size:
            for in_memory, in_tensor in plan.pairs_to_unpack(tensor, memory):
                copy_array(in_memory, in_tensor)
        return tensor

    def _require_family(self, family: str) -> None:
        """Refuse a family that is not among those which the format tells apart."""
        known = [one for one in self.line_alignment_bytes if one]
        if known and family and family not in known:
            raise UnknownNameError("platform family", family, known, where=f"tensor format {self.name}")

    def _require(self, memory: Array, extents: tuple[int, ...], tensor: Array) -> None:
        """Refuse a memory that does not hold the tensor."""
        if memory.shape != extents or memory.dtype != tensor.dtype:
            raise ConfigError(
                f"The memory must hold a {self.name} tensor of shape {tensor.shape}",
                found=f"{memory.dtype} of extents {memory.shape}",
                allowed=f"{tensor.dtype} of extents {extents}",
                source=self.source or None,
                remedy="Pass memory of this type and these extents, as `pack` returns it",
            )

    def _channel_axis(self, rank: int) -> int:
        return rank - 1 - self.spatial_axes

    def _padded_lines(self, spatial: tuple[int, ...], bits: int, family: str) -> tuple[int, ...]:
        """The spatial extents, the last padded so that a line of elements of this width has whole units."""
        alignment = self.line_alignment_bytes.get(family, self.line_alignment_bytes.get("", 1))
        unit = alignment * 8 // math.gcd(alignment * 8, bits)
        return (*spatial[:-1], _round_up(spatial[-1], unit))

    def _mismatch(self, shape: Sequence[int], dtype: DataType) -> tuple[object, str] | None:
        """(what was found, what is allowed) for a tensor that the format is not defined for; None for others."""
        if shape and min(shape) < 0:
            return tuple(shape), "extents that are known"
        if self.data_types and dtype not in self.data_types:
            return dtype.text, ", ".join(sorted(one.name for one in self.data_types))
        axis = self._channel_axis(len(shape))
        if not self.is_plain and axis < 0:
            return f"shape {tuple(shape)}", f"at least {self.spatial_axes + 1} axes"
        if self.channel_counts and shape[axis] not in self.channel_counts:
            return f"{shape[axis]} channels", ", ".join(map(str, self.channel_counts))
        return None


@functools.cache
def _packing() -> ModuleType:
    """What imports numpy, once it is needed: an import costs as much as copying a few kilobytes, each time."""
    from dryfit.target import packing

    return packing


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


LINEAR = TensorFormat("LINEAR", source="TensorRT TensorFormat.LINEAR: row-major, no padding")

"""Tensor formats: the memory layouts of tensors on a device.

A format is a description from which extents, strides, size, packing and unpacking are derived. Channels are the third
axis from the last (the fourth in the formats for volumes); all axes before them are batch axes.
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
    """Description of a memory layout.

    The memory of a tensor of shape `[*batch, C, *spatial]` is a C-contiguous array
    `[*batch, ceil(C / vector), *spatial, vector]` if channels are grouped into vectors (CHW16, CHW32), `[*batch,
    *spatial, C']` if they are innermost (HWC, HWC8, DLA_HWC4), and `[*batch, C, *spatial]` otherwise (LINEAR,
    DLA_LINEAR), with the extent along W padded to whole multiples of `line_alignment_bytes`. With `rows_first`, the
    vectors of a row lie together: `[*batch, H, ceil(C / vector), W, vector]` (NHCWB16 of Arm's Ethos-U).

    Attributes:
        name: TensorRT's `TensorFormat` name.
        data_types: supported element types. Empty: all.
        channels_vector: number of channels grouped together; 1 for planar formats. If channels are innermost, their
            number is padded to a multiple of it.
        channels_last: whether the channel is the innermost axis over the whole width (HWC family).
        channel_counts: supported channel counts. Empty: all. For DLA_HWC4: 1, 3, 4.
        padded_channels: channel count to channels in memory, if that is not the next multiple of `channels_vector`.
        line_alignment_bytes: platform family to the alignment in bytes of a line along W. The key "" alone applies to
            all families; next to named families, it applies if no family is requested, and any other family is an
            error.
        spatial_axes: 2, or 3 for the formats of volumes (DHWC8, CDHW32).
        rows_first: whether all vectors of a row precede those of the next row. For formats that group channels.
        reader_kinds: layer kinds that can read the format at a segment boundary. Empty: all. For DLA_HWC4: convolution.
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
    rows_first: bool = False
    reader_kinds: frozenset[str] = attrs.field(default=frozenset(), converter=names)
    source: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the format is row-major without padding, for any rank."""
        return self.channels_vector == 1 and not self.channels_last and not self.line_alignment_bytes

    @property
    def has_vectors(self) -> bool:
        """Whether channels are grouped into vectors (CHW16, CHW32), which strides then count."""
        return self.channels_vector > 1 and not self.channels_last

    def allows(self, shape: Sequence[int], dtype: DataType) -> bool:
        """Return whether the format is defined for tensors of this shape and type."""
        return self._mismatch(shape, dtype) is None

    def array_shape(self, shape: Sequence[int], dtype: DataType, family: str = "") -> tuple[int, ...]:
        """Return the extents of the C-contiguous array, in elements, that stores a tensor of this shape.

        Raises:
            ConfigError: The format is not defined for this shape and type.
            UnknownNameError: The format differs between platform families, and this family is not one of them.
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
            vectors = -(-channels // self.channels_vector)
            if self.rows_first:
                return (*batch, *lines[:-1], vectors, lines[-1], self.channels_vector)
            return (*batch, vectors, *lines, self.channels_vector)
        return (*batch, channels, *lines)

    def strides(self, shape: Sequence[int], dtype: DataType, family: str = "") -> tuple[int, ...]:
        """Return the strides along each axis of the tensor, counted as in TensorRT's `get_strides`.

        In elements; for formats that group channels into vectors, in vectors of `channels_vector` elements, where the
        stride along C is the stride from vector to vector.

        Raises:
            ConfigError: The format is not defined for this shape and type.
        """
        extents = self.array_shape(shape, dtype, family)
        if self.has_vectors:
            extents = extents[:-1]
        steps = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        if self.channels_last:
            steps.insert(self._channel_axis(len(shape)), steps.pop())
        elif self.has_vectors and self.rows_first:
            steps.insert(self._channel_axis(len(shape)), steps.pop(-2))
        return tuple(steps)

    def size_bytes(self, shape: Sequence[int], dtype: DataType, family: str = "") -> int:
        """Return the size in bytes of a tensor of this shape.

        Raises:
            ConfigError: The format is not defined for this shape and type.
        """
        return dtype.bytes_of(math.prod(self.array_shape(shape, dtype, family)))

    def pack(self, array: Array, family: str = "", *, out: Array | None = None) -> Array:
        """Return the memory of a tensor, as an array of `array_shape`; padding is zero.

        Each byte is written once, by native code if that is faster.

        Args:
            array: the tensor, with any strides.
            family: family of the platform.
            out: the memory to write, of `array_shape` and the tensor's type. Default: a new array.

        Raises:
            ConfigError: The format is not defined for this shape and type, or `out` has another shape or type.
        """
        plan = _packing().packing_plan(self, array.shape, array.dtype, family)
        memory = _packing().np.empty(plan.extents, array.dtype) if out is None else out
        self._require(memory, plan.extents, array)
        if array.size:  # else the memory is empty as well
            for in_memory, in_tensor in plan.pairs_to_pack(array, memory):
                copy_array(in_tensor, in_memory)
        return memory

    def unpack(self, memory: Array, shape: Sequence[int], family: str = "", *, out: Array | None = None) -> Array:
        """Return a copy of the tensor of this shape that a memory holds. Padding is not read.

        Args:
            memory: an array of `array_shape`.
            shape: shape of the tensor.
            family: family of the platform.
            out: the tensor to write, of this shape and the memory's type, with any strides. Default: a new array.

        Raises:
            ConfigError: The format is not defined for this shape and type, the memory does not have the extents of
                `array_shape`, or `out` has another shape or type.
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
            return dtype.text, ", ".join(sorted(one.text for one in self.data_types))
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

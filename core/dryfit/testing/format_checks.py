"""Checks of tensor formats: extents, strides, size, pack and unpack must agree with each other and with the tensor.

The oracle is counting: every element is looked up in the packed memory at the position that the strides give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.formats import TensorFormat
from dryfit.target.target import Target
from dryfit.testing.guarded_memory import Arrangement, guarded_array

Array = np.ndarray[Any, Any]


@frozen
class FormatUse:
    """An entry of a target's format tables.

    Attributes:
        direction: `input` or `output`.
        dtype: data type of the entry.
        format: the format.
    """

    direction: str
    dtype: DataType
    format: TensorFormat

    def __str__(self) -> str:
        return f"{self.direction}-{self.dtype.name}-{self.format.name}"


def format_uses(tables: Mapping[str, Mapping[DataType, Sequence[TensorFormat]]]) -> Iterator[FormatUse]:
    """Return every format in the tables of the directions, for each type."""
    for direction, table in tables.items():
        for dtype, formats in table.items():
            for one in formats:
                yield FormatUse(direction, dtype, one)


def declaration_problems(use: FormatUse, target: Target) -> list[str]:
    """Return what an entry lacks: its type in the format's types, a source, a unique name."""
    found = []
    one = use.format
    if one.data_types and use.dtype not in one.data_types:
        allowed = ", ".join(sorted(dtype.text for dtype in one.data_types))
        found.append(f"it is listed for {use.dtype.text}, and defined for {allowed}")
    if not one.source.strip():
        found.append("`source` is empty")
    if one.name != one.name.upper():
        found.append("its name is not in upper case, so that it cannot be found")
    tables = {"input": target.input_formats, "output": target.output_formats}
    if any(other.format.name == one.name and other.format != one for other in format_uses(tables)):
        found.append("another format of the target has its name")
    return [f"{use}: {problem}" for problem in found]


def memory_problems(use: FormatUse, family: str, shapes: Sequence[tuple[int, ...]] = ()) -> list[str]:
    """Pack tensors of many shapes on a platform family, and check the position of every element.

    Args:
        use: the format and the type.
        family: platform family.
        shapes: shapes of the tensors. Default: those of `allowed_shapes`.
    """
    found: list[str] = []
    for shape in shapes or allowed_shapes(use.format):
        where = f"{use}, shape {shape}" + (f", {family}" if family else "")
        try:
            found += [f"{where}: {problem}" for problem in _shape_problems(use, shape, family)]
        except Exception as error:  # noqa: BLE001  a format may be the target's own class
            found.append(f"{where}: {type(error).__name__}: {error}")
    return found


def allowed_shapes(one: TensorFormat) -> list[tuple[int, ...]]:
    """Return shapes with all allowed channel counts, or some around a vector; batches of 0 to 2 axes."""
    vector = one.channels_vector
    channels = one.channel_counts or sorted({1, 3, max(1, vector - 1), vector, vector + 1})
    spatial = [(3, 5), (2, 33)] if one.spatial_axes == 2 else [(2, 3, 5)]
    shapes = [(*batch, c, *s) for batch in ((), (2,), (2, 1)) for c in channels for s in spatial]
    return [*shapes, (), (7,)] if one.is_plain else shapes


def _shape_problems(use: FormatUse, shape: tuple[int, ...], family: str) -> Iterator[str]:
    one, dtype = use.format, use.dtype
    if not one.allows(shape, dtype):
        yield "the format says that it is not supported for this tensor"
        return
    extents, size = one.array_shape(shape, dtype, family), one.size_bytes(shape, dtype, family)
    if size != dtype.bytes_of(math.prod(extents)):
        yield f"size_bytes is {size}, but the array {extents} takes {dtype.bytes_of(math.prod(extents))}"
    array = _numbered(shape, dtype)
    memory = one.pack(array, family)
    if memory.shape != extents or memory.dtype != array.dtype:
        yield f"pack gives {memory.dtype} {memory.shape}, not {array.dtype} {extents}"
        return
    if not np.array_equal(one.unpack(memory, shape, family), array):
        yield "unpack does not give back what was packed"
    if np.count_nonzero(memory) != np.count_nonzero(array):
        yield "the memory has other elements than the tensor, or padding that is not zero"
    yield from _padding_problems(use, array, memory, family)
    yield from _stride_problems(use, array, memory, family)


def _padding_problems(use: FormatUse, array: Array, memory: Array, family: str) -> Iterator[str]:
    """Whether unpack reads padding, or pack reads what lies beside the tensor."""
    dirty = memory.copy()
    dirty[memory == 0] = array.flat[0] if array.size else 0
    if not np.array_equal(use.format.unpack(dirty, array.shape, family), array):
        yield "unpack reads padding: it gives other elements where the padding is not zero"
    spaced = guarded_array(array.shape, array.dtype, Arrangement(is_spaced=True))
    spaced.fill(array)
    if use.format.pack(spaced.array, family).tobytes() != memory.tobytes():
        yield "pack reads beside the tensor: a tensor that does not lie dense is packed as another"


def _stride_problems(use: FormatUse, array: Array, memory: Array, family: str) -> Iterator[str]:
    one, shape = use.format, array.shape
    strides = one.strides(shape, use.dtype, family)
    if len(strides) != len(shape):
        yield f"there are {len(strides)} strides for {len(shape)} axes"
        return
    flat = np.ascontiguousarray(memory).reshape(-1)
    vector = one.channels_vector if not one.channels_last else 1
    axis = len(shape) - 1 - one.spatial_axes
    outer, inner = list(np.indices(shape)), np.zeros(shape, np.int64)
    if vector > 1:
        outer[axis], inner = np.divmod(outer[axis], vector)
    offsets = inner + vector * sum(index * stride for index, stride in zip(outer, strides, strict=True))
    outside = (offsets < 0) | (offsets >= flat.size)
    wrong = np.argwhere(outside | (flat[np.where(outside, 0, offsets)] != array))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        yield f"element {place} does not lie at {offsets[place]}, where the strides {strides} say"


def _numbered(shape: tuple[int, ...], dtype: DataType) -> Array:
    """Elements that differ from their neighbours and from zero, of any type."""
    largest = 1 if dtype is DataType.BOOL or dtype.bits == 2 else 5 if dtype.bits == 4 else 100
    values = np.arange(math.prod(shape)) % largest + 1
    if dtype is DataType.E8M0:
        values = 2 ** (values % 8)
    return np.asarray(values.astype(np.float32).astype(dtype.numpy)).reshape(shape)

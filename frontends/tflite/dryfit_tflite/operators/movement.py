"""Operators that move values: codes stay as they are, so that nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.indexing import Gather, GatherMode
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.slice import SampleMode, Shuffle, Slice
from dryfit.network.tensor import Tensor
from dryfit_tflite.operator_view import CHANNELS_FIRST, Operator
from dryfit_tflite.registry import operator


def _reshaped(op: Operator, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    return op.add(Shuffle(reshape_dims=tuple(shape), zero_is_placeholder=False), tensor)


@operator("RESHAPE")
def reshape(op: Operator) -> None:
    """Reshape to the shape of input 1, or that of the options."""
    stated = op.output().tensor.shape
    if op.has(1) and op.value(1).known is not None:
        shape = list(op.ints(1, "The shape"))
    elif op.option("NewShapeLength"):
        shape = [int(one) for one in op.option("NewShapeAsNumpy")]
    else:
        shape = list(stated)
    size = math.prod(op.shape(0))
    if shape.count(-1) == 1:
        shape[shape.index(-1)] = size // max(-math.prod(shape), 1)
    op.give_codes(_reshaped(op, op.codes(0), shape))


@operator("SQUEEZE", "EXPAND_DIMS")
def with_other_rank(op: Operator) -> None:
    """Reshape."""
    shape = list(op.shape(0))
    if op.record.name == "EXPAND_DIMS":
        axis = op.axis(op.ints(1, "The axis")[0], len(shape) + 1)
        shape.insert(axis, 1)
    else:
        given = op.option("SqueezeDimsAsNumpy") if op.option("SqueezeDimsLength") else []
        axes = {op.axis(int(axis), len(shape)) for axis in given}
        axes = axes or {index for index, extent in enumerate(shape) if extent == 1}
        shape = [extent for index, extent in enumerate(shape) if index not in axes]
    op.give_codes(_reshaped(op, op.codes(0), shape))


@operator("TRANSPOSE")
def transpose(op: Operator) -> None:
    """Transpose by the order of input 1."""
    order = tuple(op.axis(axis, op.rank(0)) for axis in op.ints(1, "The order of axes"))
    op.give_codes(op.add(Shuffle(first_transpose=order), op.codes(0)))


@operator("CONCATENATION")
def concatenation(op: Operator) -> None:
    """Concatenation, with a fused activation."""
    indices = range(op.input_count)
    rank = op.rank(0)
    axis = op.axis(op.option("Axis"), rank)
    first = rank == 4 and any(op.value(index).is_only_channels_first for index in indices)
    layer = Concatenation(axis=CHANNELS_FIRST.index(axis) if first else axis)
    result = op.add(layer, *(op.real(index, first=first) for index in indices))
    op.give(op.activated(result, op.option("FusedActivationFunction")), first=first)


@operator("PACK")
def pack(op: Operator) -> None:
    """Concatenation along a new axis."""
    shape = list(op.shape(0))
    axis = op.axis(op.option("Axis"), len(shape) + 1)
    shape.insert(axis, 1)
    op.give_codes(op.add(Concatenation(axis=axis), *(op.codes_of_shape(i, shape) for i in range(op.input_count))))


@operator("UNPACK")
def unpack(op: Operator) -> None:
    """A slice without its axis for each output."""
    shape = op.shape(0)
    axis = op.axis(op.option("Axis"), len(shape))
    rest = tuple(extent for index, extent in enumerate(shape) if index != axis)
    for index in range(op.output_count):
        part = _part(op, op.codes(0), axis, index, 1)
        op.give_codes(_reshaped(op, part, rest), index)


def _part(op: Operator, tensor: Tensor, axis: int, start: int, extent: int) -> Tensor:
    """Some elements of one axis."""
    starts, shape = [0] * len(tensor.shape), list(tensor.shape)
    starts[axis], shape[axis] = start, extent
    return op.add(Slice(start=tuple(starts), shape=tuple(shape), stride=(1,) * len(shape)), tensor)


@operator("SPLIT")
def split(op: Operator) -> None:
    """Equal slices along the axis of input 0."""
    axis = op.axis(op.ints(0, "The axis")[0], op.rank(1))
    extent = op.shape(1)[axis]
    if extent % max(op.output_count, 1):
        raise op.refusal(
            "The extent must be a multiple of the number of outputs",
            found=f"{extent} for {op.output_count} outputs",
            remedy="Convert the model again",
        )
    _give_parts(op, 1, axis, [extent // op.output_count] * op.output_count)


@operator("SPLIT_V")
def split_into(op: Operator) -> None:
    """Slices of the extents of input 1 along the axis of input 2."""
    axis = op.axis(op.ints(2, "The axis")[0], op.rank(0))
    extents = list(op.ints(1, "The extents"))
    if extents.count(-1) == 1:
        extents[extents.index(-1)] = op.shape(0)[axis] - sum(extents) - 1
    _give_parts(op, 0, axis, extents)


def _give_parts(op: Operator, data: int, axis: int, extents: Sequence[int]) -> None:
    first = op.works_channels_first(data)
    place, start = CHANNELS_FIRST.index(axis) if first else axis, 0
    for index, extent in enumerate(extents):
        op.give_codes(_part(op, op.codes(data, first=first), place, start, extent), index, first=first)
        start += extent


@operator("SLICE")
def slice_of(op: Operator) -> None:
    """Slice from the starts of input 1, of the extents of input 2."""
    starts, extents = op.ints(1, "The starts"), op.ints(2, "The extents")
    shape = tuple(
        whole - start if extent == -1 else extent
        for whole, start, extent in zip(op.shape(0), starts, extents, strict=True)
    )
    op.give_codes(op.add(Slice(start=starts, shape=shape, stride=(1,) * len(shape)), op.codes(0)))


@operator("STRIDED_SLICE")
def strided_slice(op: Operator) -> None:
    """Slice with strides; masks leave out a start or an end, or the axis itself. Ellipses are not supported."""
    if op.option("EllipsisMask") or op.option("NewAxisMask"):
        raise op.refusal(
            "Slices with an ellipsis or new axes are not supported", remedy="Convert the model with explicit slices"
        )
    starts, ends, strides = (op.ints(index, what) for index, what in ((1, "Starts"), (2, "Ends"), (3, "Strides")))
    begin_mask, end_mask, shrink = op.option("BeginMask"), op.option("EndMask"), op.option("ShrinkAxisMask")
    start, shape, stride, kept = [], [], [], []
    for axis, extent in enumerate(op.shape(0)):
        if axis >= len(starts):
            window = slice(None)
        elif shrink >> axis & 1:
            place = op.axis(starts[axis], extent)
            window = slice(place, place + 1, 1)
        else:
            window = slice(
                None if begin_mask >> axis & 1 else starts[axis],
                None if end_mask >> axis & 1 else (starts[axis] + ends[axis] if op.option("Offset") else ends[axis]),
                strides[axis],
            )
        places = range(extent)[window]
        start.append(places.start if len(places) else 0)
        shape.append(len(places))
        stride.append(places.step)
        if not shrink >> axis & 1:
            kept.append(len(places))
    part = op.add(Slice(start=tuple(start), shape=tuple(shape), stride=tuple(stride)), op.codes(0))
    op.give_codes(part if len(kept) == len(shape) else _reshaped(op, part, kept))


@operator("REVERSE_V2")
def reverse(op: Operator) -> None:
    """Slice backwards along the axes of input 1."""
    axes = {op.axis(axis, op.rank(0)) for axis in op.ints(1, "The axes")}
    shape = op.shape(0)
    start = tuple(extent - 1 if axis in axes else 0 for axis, extent in enumerate(shape))
    stride = tuple(-1 if axis in axes else 1 for axis in range(len(shape)))
    op.give_codes(op.add(Slice(start=start, shape=shape, stride=stride), op.codes(0)))


@operator("PAD", "PADV2", "MIRROR_PAD")
def pad(op: Operator) -> None:
    """Slice beyond the borders: filled with the zero point, with input 2, or mirrored."""
    counts = op.constant(1, "The padding").reshape(-1, 2).astype(np.int64)
    if len(counts) != op.rank(0):
        raise op.refusal("There must be two counts of padding for each axis", found=len(counts), remedy="Convert again")
    first = op.works_channels_first(0)
    order = CHANNELS_FIRST if first else range(op.rank(0))
    extents = op.shape(0)
    before = tuple(-int(counts[axis, 0]) for axis in order)
    shape = tuple(extents[axis] + int(counts[axis].sum()) for axis in order)
    if op.record.name == "MIRROR_PAD":
        if op.option("Mode"):
            raise op.refusal("Symmetric padding is not supported", allowed="REFLECT", remedy="Convert without it")
        layer = Slice(start=before, shape=shape, stride=(1,) * len(shape), mode=SampleMode.REFLECT)
        op.give_codes(op.add(layer, op.codes(0, first=first)), first=first)
        return
    value = op.value(0)
    dtype = op.codes(0, first=first).dtype.numpy
    if op.record.name == "PADV2" and op.has(2):
        fill = op.constant(2, "The value of padding").reshape(-1)[:1].astype(dtype)
    else:
        fill = np.asarray([value.grid.zero_point[0] if value.is_quantized else 0]).astype(dtype)
    layer = Slice(start=before, shape=shape, stride=(1,) * len(shape), mode=SampleMode.FILL)
    filled = op.constant_tensor(fill.reshape(()), f"{op.name} value")
    op.give_codes(op.add(layer, op.codes(0, first=first), None, None, None, filled), first=first)


@operator("TILE")
def tile(op: Operator) -> None:
    """Slice that repeats the input."""
    counts = op.ints(1, "The counts")
    shape = tuple(extent * count for extent, count in zip(op.shape(0), counts, strict=True))
    layer = Slice(start=(0,) * len(shape), shape=shape, stride=(1,) * len(shape), mode=SampleMode.WRAP)
    op.give_codes(op.add(layer, op.codes(0)))


@operator("BROADCAST_TO")
def broadcast_to(op: Operator) -> None:
    """Slice that repeats the only element of axes."""
    shape = op.ints(1, "The shape")
    x = op.codes_of_rank(0, len(shape))
    stride = tuple(int(have == want) for have, want in zip(x.shape, shape, strict=True))
    op.give_codes(op.add(Slice(start=(0,) * len(shape), shape=shape, stride=stride), x))


@operator("GATHER")
def gather(op: Operator) -> None:
    """Gather along an axis; the axes before it may be shared with the indices."""
    rank, shared = op.rank(0), op.option("BatchDims")
    shared = op.axis(shared, op.rank(1) + 1) if shared < 0 else shared
    layer = Gather(axis=op.axis(op.option("Axis"), rank), num_elementwise_dims=shared)
    op.give_codes(op.add(layer, op.codes(0), op.codes(1)))


@operator("GATHER_ND")
def gather_nd(op: Operator) -> None:
    """Gather of elements whose indices are the last axis of input 1."""
    op.give_codes(op.add(Gather(mode=GatherMode.ND), op.codes(0), op.codes(1)))


@operator("SHAPE")
def shape_of(op: Operator) -> None:
    """The extents, which are known."""
    dtype = op.output().tensor.dtype
    values = np.asarray(op.shape(0), np.int32 if dtype is None else dtype.numpy)
    op.give_codes(op.constant_tensor(values, op.name))


@operator("FILL")
def fill(op: Operator) -> None:
    """Slice that repeats one element."""
    shape = op.ints(0, "The shape")
    one = op.codes_of_shape(1, (1,) * len(shape))
    op.give_codes(op.add(Slice(start=(0,) * len(shape), shape=shape, stride=(0,) * len(shape)), one))


@operator("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")
def space_and_batch(op: Operator) -> None:
    """Reshape, transpose, reshape, with padding before or cropping after it."""
    blocks = op.ints(1, "The extents of a block")
    counts = op.constant(2, "The padding").reshape(-1, 2).astype(np.int64)
    batch, *rest = op.shape(0)
    spatial, others = rest[: len(blocks)], tuple(rest[len(blocks) :])
    area, axes = math.prod(blocks), len(blocks)
    if op.record.name == "SPACE_TO_BATCH_ND":
        value = op.value(0)
        start = (0, *(-int(pre) for pre, _ in counts), *(0 for _ in others))
        padded = [extent + int(pre) + int(post) for extent, (pre, post) in zip(spatial, counts, strict=True)]
        x = op.codes(0)
        zero = np.asarray(value.grid.zero_point[0] if value.is_quantized else 0).astype(x.dtype.numpy)
        layer = Slice(start=start, shape=(batch, *padded, *others), stride=(1,) * len(start), mode=SampleMode.FILL)
        x = op.add(layer, x, None, None, None, op.constant_tensor(zero, f"{op.name} value"))
        split_up = [batch]
        for extent, block in zip(padded, blocks, strict=True):
            split_up += [extent // block, block]
        order = (*(2 * axis + 2 for axis in range(axes)), 0, *(2 * axis + 1 for axis in range(axes)))
        tail = tuple(range(2 * axes + 1, 2 * axes + 1 + len(others)))
        x = op.add(
            Shuffle(reshape_dims=(*split_up, *others), second_transpose=(*order, *tail), zero_is_placeholder=False), x
        )
        shape = (batch * area, *(e // b for e, b in zip(padded, blocks, strict=True)), *others)
        op.give_codes(_reshaped(op, x, shape))
        return
    split_up = [*blocks, batch // area, *spatial]
    order = (axes, *(index for axis in range(axes) for index in (axes + 1 + axis, axis)))
    tail = tuple(range(2 * axes + 1, 2 * axes + 1 + len(others)))
    x = op.add(
        Shuffle(reshape_dims=(*split_up, *others), second_transpose=(*order, *tail), zero_is_placeholder=False),
        op.codes(0),
    )
    whole = [extent * block for extent, block in zip(spatial, blocks, strict=True)]
    x = _reshaped(op, x, (batch // area, *whole, *others))
    start = (0, *(int(pre) for pre, _ in counts), *(0 for _ in others))
    kept = [extent - int(pre) - int(post) for extent, (pre, post) in zip(whole, counts, strict=True)]
    op.give_codes(op.add(Slice(start=start, shape=(batch // area, *kept, *others), stride=(1,) * len(start)), x))

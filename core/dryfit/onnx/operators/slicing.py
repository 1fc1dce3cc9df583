"""Operators that become slices: parts of a tensor, repetitions, and what reaches past its border."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.slice import SampleMode
from dryfit.onnx.composition import axes_of, positive_axes, positive_axis
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import Length, SliceBounds, combine, elements_of, expand, lengths_of, slice_axes
from dryfit.onnx.tensors import NodeInput


@operator("Split")
def split(node: Node) -> list[NodeInput]:
    """One slice for each output."""
    x = node[0]
    axis = positive_axis(node, node.get_int("axis", 0), x.rank)
    given, length = node.input(1), lengths_of(node, x)[axis]
    sizes: Sequence[Length] = node.get_ints("split") or ()
    if given is not None:
        sizes = elements_of(node, given)
    if not sizes:
        sizes = _equal_parts(node, length, node.get_int("num_outputs", len(node.proto.output)))
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes) and isinstance(length, int) and (sum(known) != length or min(known, default=0) < 0):
        raise node.refusal(
            "The parts must add up to the extent of the axis",
            code=ErrorCode.INVALID_VALUE,
            found=tuple(known),
            allowed=f"a sum of {length}",
            remedy="Fix the lengths of the parts",
        )
    parts: list[NodeInput] = []
    start: Length = 0
    for size in sizes:
        parts.append(slice_axes(node, x, {axis: (start, size, 1)}))
        start = combine(node, ElementWiseOperation.SUM, start, size)
    return parts


def _equal_parts(node: Node, length: Length, count: int) -> list[Length]:
    """The extents of `count` parts, the last ones smaller where the axis does not divide evenly."""
    op = ElementWiseOperation
    if count < 1:
        raise node.refusal(
            "There must be at least one part",
            code=ErrorCode.INVALID_VALUE,
            found=count,
            remedy="Fix the number of outputs",
        )
    part = combine(node, op.FLOOR_DIV, combine(node, op.SUM, length, count - 1), count)
    sizes: list[Length] = []
    for index in range(count):
        left = combine(node, op.SUB, length, combine(node, op.PROD, part, index))
        sizes.append(combine(node, op.MAX, combine(node, op.MIN, part, left), 0))
    return sizes


@operator("Slice")
def slice_operator(node: Node) -> NodeInput:
    """Slice; bounds of dynamic axes are computed at run time."""
    x = node[0]
    starts_given, ends_given = node.get_ints("starts"), node.get_ints("ends")
    starts: Sequence[Length] = starts_given if starts_given is not None else elements_of(node, node[1])
    ends: Sequence[Length] = ends_given if ends_given is not None else elements_of(node, node[2])
    axes = axes_of(node, 3)
    axes = positive_axes(node, axes if axes is not None else range(len(starts)), x.rank)
    steps_given = node.constant(4, "The steps")
    steps = [1] * len(axes) if steps_given is None else [int(step) for step in steps_given]
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.refusal(
            "Starts, ends, axes and steps must have the same length",
            code=ErrorCode.INVALID_VALUE,
            found=f"{len(starts)}, {len(ends)}, {len(axes)}, {steps}",
            remedy="Specify one value per axis in each",
        )
    lengths = lengths_of(node, x)
    bounds: dict[int, SliceBounds] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        bounds[axis] = _slice_bounds(node, lengths[axis], start, end, step)
        if bounds[axis] == (0, lengths[axis], 1) and not isinstance(lengths[axis], int):
            del bounds[axis]  # all of a dynamic axis
    return slice_axes(node, x, bounds) if bounds else x


def _slice_bounds(node: Node, length: Length, start: Length, end: Length, step: int) -> SliceBounds:
    """(start, elements, stride) of one axis, bounds clamped to the axis as ONNX's Slice has it."""
    if isinstance(length, int) and isinstance(start, int) and isinstance(end, int):
        window = range(*slice(start, None if step < 0 and end < -length else end, step).indices(length))
        return window.start, len(window), step
    if step == 1 and start == 0 and isinstance(end, int) and end >= 2**31 - 1:
        return 0, length, 1
    op = ElementWiseOperation
    lowest = 0 if step > 0 else -1
    highest: Length = length if step > 0 else combine(node, op.SUB, length, 1)
    first = _clamped(node, _from_front(node, start, length), 0, highest)
    last = _clamped(node, _from_front(node, end, length), lowest, highest)
    span = combine(node, op.SUB, last, first) if step > 0 else combine(node, op.SUB, first, last)
    count = combine(node, op.FLOOR_DIV, combine(node, op.SUM, span, abs(step) - 1), abs(step))
    return first, combine(node, op.MAX, count, 0), step


def _from_front(node: Node, bound: Length, length: Length) -> Length:
    """A bound that counts from the end where it is negative, counted from the front."""
    if isinstance(bound, int):
        return combine(node, ElementWiseOperation.SUM, length, bound) if bound < 0 else bound
    # min(bound, 0) is 0 unless negative: the sign of it, times the length, is what has to be added.
    negative = combine(node, ElementWiseOperation.MIN, combine(node, ElementWiseOperation.MAX, bound, -1), 0)
    return combine(node, ElementWiseOperation.SUB, bound, combine(node, ElementWiseOperation.PROD, negative, length))


def _clamped(node: Node, value: Length, lowest: Length, highest: Length) -> Length:
    smaller = combine(node, ElementWiseOperation.MIN, value, highest)
    return combine(node, ElementWiseOperation.MAX, smaller, lowest)


@operator("Expand")
def expand_operator(node: Node) -> NodeInput:
    """Slice with strides of 0."""
    return expand(node, node[0], elements_of(node, node[1]))


@operator("Tile")
def tile(node: Node) -> NodeInput:
    """Slice that wraps around."""
    x, repeats = node[0], elements_of(node, node[1])
    if len(repeats) != x.rank:
        raise node.refusal(
            "There must be one repeat per axis",
            code=ErrorCode.INVALID_VALUE,
            found=len(repeats),
            allowed=x.rank,
            remedy="Specify one value per axis",
        )
    bounds: dict[int, SliceBounds] = {
        axis: (0, combine(node, ElementWiseOperation.PROD, length, repeat), 1)
        for axis, (length, repeat) in enumerate(zip(lengths_of(node, x), repeats, strict=True))
        if repeat != 1
    }
    return slice_axes(node, x, bounds, mode=SampleMode.WRAP) if bounds else x


_PAD_MODES = {
    "constant": SampleMode.FILL,
    "reflect": SampleMode.REFLECT,
    "edge": SampleMode.CLAMP,
    "wrap": SampleMode.WRAP,
}


@operator("Pad")
def pad(node: Node) -> NodeInput:
    """Slice that reaches past the input."""
    x = node[0]
    mode = _PAD_MODES[node.choice("mode", "constant", tuple(_PAD_MODES))]
    given = node.get_ints("pads")
    pads: Sequence[Length] = given if given is not None else elements_of(node, node[1])
    value = node.array(node.get_float("value", 0.0), x.dtype.numpy) if given is not None else node.input(2)
    axes_given = node.constant(3, "The axes")
    axes = tuple(range(x.rank)) if axes_given is None else positive_axes(node, axes_given.reshape(-1).tolist(), x.rank)
    if len(pads) != 2 * len(axes):
        raise node.refusal(
            "There must be two pads per axis",
            code=ErrorCode.INVALID_VALUE,
            found=len(pads),
            allowed=2 * len(axes),
            remedy="Specify a begin and an end for each axis",
        )
    lengths = lengths_of(node, x)
    bounds: dict[int, SliceBounds] = {}
    op = ElementWiseOperation
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        if before == 0 and after == 0:
            continue
        start = combine(node, op.SUB, 0, before)
        bounds[axis] = (start, combine(node, op.SUM, lengths[axis], combine(node, op.SUM, before, after)), 1)
    return slice_axes(node, x, bounds, mode=mode, fill=value if mode is SampleMode.FILL else None) if bounds else x


@operator("CenterCropPad")
def center_crop_pad(node: Node) -> NodeInput:
    """Slice that reaches past the input where it pads."""
    x = node[0]
    axes = positive_axes(node, node.get_ints("axes") or range(x.rank), x.rank)
    wanted = node.constant(1, "The shape")
    shape = node.static_shape(x, "The input of CenterCropPad")
    bounds: dict[int, SliceBounds] = {}
    for axis, extent in zip(axes, () if wanted is None else wanted.tolist(), strict=True):
        start = (shape[axis] - extent) // 2 if extent <= shape[axis] else -((extent - shape[axis]) // 2)
        bounds[axis] = (start, int(extent), 1)
    return slice_axes(node, x, bounds, mode=SampleMode.FILL)

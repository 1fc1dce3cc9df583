"""Steps that change a tensor's shape, and the arithmetic on shapes where dimensions are dynamic.

A length is an int where it is known, else an operand: an INT64 vector of one element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.generators import ShapeLayer
from dryfit.network.layers.indexing import Gather
from dryfit.network.layers.movement import Concatenation, Squeeze, Unsqueeze
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.slice import SampleMode, Shuffle, Slice
from dryfit.onnx.folding import reshape_target
from dryfit.onnx.node import Node
from dryfit.onnx.tensors import NodeInput

Length = int | NodeInput
SliceBounds = tuple[Length, Length, Length]
"""(start, number of elements, stride) of one axis."""


def lengths_of(node: Node, x: NodeInput) -> list[Length]:
    """The extents of `x`; an operand for each dynamic one."""
    if x.spec.is_static:
        return [*x.shape]
    shape = node.add(ShapeLayer(), x)
    return [extent if extent >= 0 else _element(node, shape, axis) for axis, extent in enumerate(x.shape)]


def elements_of(node: Node, vector: NodeInput) -> list[Length]:
    """The elements of an integer vector of known length."""
    extents = vector.known_extents() or (None,) * node.static_shape(vector, "A list of extents")[0]
    return [
        extent if isinstance(extent, int) else _element(node, vector, index) for index, extent in enumerate(extents)
    ]


def _element(node: Node, vector: NodeInput, index: int) -> NodeInput:
    element = node.add(Gather(axis=0), vector, node.array([index], np.int64))
    return element if element.dtype is DataType.INT64 else node.add(Cast(to_type=DataType.INT64), element)


def as_operand(node: Node, length: Length) -> NodeInput:
    """A length as an INT64 vector of one element."""
    return node.array([length], np.int64) if isinstance(length, int) else length


def vector_of(node: Node, lengths: Sequence[Length]) -> NodeInput:
    """An INT64 vector of these lengths."""
    if all(isinstance(length, int) for length in lengths):
        return node.array(lengths, np.int64)
    operands = [as_operand(node, length) for length in lengths]
    return operands[0] if len(operands) == 1 else node.add(Concatenation(axis=0), *operands)


def combine(node: Node, op: ElementWiseOperation, a: Length, b: Length) -> Length:
    """`op(a, b)` of two lengths."""
    result = node.add(Elementwise(op=op), as_operand(node, a), as_operand(node, b))
    return int(result.value[0]) if result.value is not None else result


def product(node: Node, lengths: Sequence[Length]) -> Length:
    """The product of lengths."""
    if all(isinstance(length, int) for length in lengths):
        return math.prod(length for length in lengths if isinstance(length, int))
    vector = vector_of(node, lengths)
    return node.add(Reduce(op=ReduceOperation.PROD, axes=1, keep_dims=True), vector)


def reshape(node: Node, x: NodeInput, lengths: Sequence[Length]) -> NodeInput:
    """`x` with exactly these extents."""
    dims = [length for length in lengths if isinstance(length, int)]
    if len(dims) == len(lengths):
        same = tuple(dims) == x.shape
        return x if same else node.add(Shuffle(reshape_dims=tuple(dims), zero_is_placeholder=False), x)
    return reshape_to(node, x, vector_of(node, lengths), allow_zero=True)


def reshape_to(node: Node, x: NodeInput, target: NodeInput, *, allow_zero: bool) -> NodeInput:
    """`x` with the extents that a vector holds, as ONNX's Reshape: -1 is inferred, 0 copied unless allowed."""
    extents = target.known_extents()
    dims = None if extents is None else reshape_target(x, extents)
    if dims is None or (allow_zero and 0 in dims and target.value is None):
        return node.add(Shuffle(zero_is_placeholder=not allow_zero), x, target)
    zero_copies = not (allow_zero and target.value is not None)
    return node.add(Shuffle(reshape_dims=dims, zero_is_placeholder=zero_copies), x)


def flatten_to_matrix(node: Node, x: NodeInput, axis: int) -> NodeInput:
    """`x[rows, columns]`, the axes before `axis` in the rows, as ONNX's Flatten does."""
    if axis == 1 and x.shape[0] < 0:
        columns = x.shape[1:]
        return node.add(Shuffle(reshape_dims=(0, -1 if min(columns, default=1) < 1 else math.prod(columns))), x)
    lengths = lengths_of(node, x)
    return reshape(node, x, [product(node, lengths[:axis]), product(node, lengths[axis:])])


def transpose(node: Node, x: NodeInput, permutation: Sequence[int]) -> NodeInput:
    """`x` with its axes in another order."""
    return node.add(Shuffle(first_transpose=tuple(permutation)), x)


def with_rank(node: Node, x: NodeInput, rank: int) -> NodeInput:
    """`x` with axes of extent 1 put before its own, up to this rank."""
    return x if x.rank >= rank else unsqueeze(node, x, range(rank - x.rank))


def unsqueeze(node: Node, x: NodeInput, axes: Sequence[int]) -> NodeInput:
    """`x` with new axes of extent 1, which count in the result, from the front."""
    shape = list(x.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    dims = _dims_for(x, shape)
    if dims is None:
        return node.add(Unsqueeze(), x, node.array(list(axes), np.int64))
    return node.add(dims, x)


def squeeze(node: Node, x: NodeInput, axes: Sequence[int]) -> NodeInput:
    """`x` without axes of extent 1, which count from the front."""
    if not axes:
        return x
    dims = _dims_for(x, [extent for axis, extent in enumerate(x.shape) if axis not in axes])
    if dims is None or any(x.shape[axis] != 1 for axis in axes):
        return node.add(Squeeze(), x, node.array(list(axes), np.int64))
    return node.add(dims, x)


def _dims_for(x: NodeInput, shape: Sequence[int]) -> Shuffle | None:
    """A shuffle to a shape with at most one dynamic extent, or None: a device's shuffle needs no shape tensor then."""
    if all(extent >= 0 for extent in shape):
        return Shuffle(reshape_dims=tuple(shape), zero_is_placeholder=False)
    if 0 in shape:
        return None
    dims = [0 if e < 0 and axis < x.rank and x.shape[axis] < 0 else e for axis, e in enumerate(shape)]
    copied = dims.count(0)
    if dims.count(-1) > 1 or copied + dims.count(-1) != sum(extent < 0 for extent in x.shape):
        return None
    return Shuffle(reshape_dims=tuple(dims)) if _copies_match(x.shape, dims) else None


def _copies_match(source: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether each copied dynamic axis stands for itself: nothing but leading axes may be copied."""
    dynamic = [axis for axis, extent in enumerate(source) if extent < 0]
    targets = [axis for axis, dim in enumerate(dims) if dim <= 0]
    return all(dims[t] == -1 or t == d for t, d in zip(targets, dynamic, strict=True))


def slice_axes(
    node: Node,
    x: NodeInput,
    bounds: Mapping[int, SliceBounds],
    *,
    mode: SampleMode = SampleMode.STRICT_BOUNDS,
    fill: NodeInput | None = None,
) -> NodeInput:
    """`x` with some axes sliced; those whose bounds are known first, so that their extents stay static."""
    known = {axis: b for axis, b in bounds.items() if all(isinstance(length, int) for length in b)}
    computed = {axis: b for axis, b in bounds.items() if axis not in known}
    if known:
        start, shape, stride = (tuple(int(b[i]) for b in known.values()) for i in range(3))  # type: ignore[arg-type]
        axes = None if len(known) == x.rank else tuple(known)
        layer = Slice(start=start, shape=shape, stride=stride, axes=axes, mode=mode)
        x = node.add(layer, x, *([None, None, None, fill] if fill is not None else []))
    if computed:
        inputs = [vector_of(node, [b[i] for b in computed.values()]) for i in range(3)]
        layer = Slice(axes=tuple(computed), mode=mode)
        x = node.add(layer, x, *inputs, *([fill] if fill is not None else []))
    return x


def expand(node: Node, x: NodeInput, target: Sequence[Length]) -> NodeInput:
    """`x` broadcast against a shape, as ONNX's Expand: by strides of 0 on the axes that are repeated."""
    rank = max(x.rank, len(target))
    x = with_rank(node, x, rank)
    wanted: list[Length] = [*([1] * (rank - len(target))), *target]
    lengths = lengths_of(node, x)
    bounds: dict[int, SliceBounds] = {}
    for axis, (length, want) in enumerate(zip(lengths, wanted, strict=True)):
        if want == 1 or (isinstance(length, int) and length != 1) or (length == 1 and want == 1):
            continue
        if isinstance(length, int):
            bounds[axis] = (0, want, 0)
            continue
        one_less = combine(node, ElementWiseOperation.SUB, length, 1)
        stride = combine(node, ElementWiseOperation.MIN, one_less, 1)
        bounds[axis] = (0, combine(node, ElementWiseOperation.MAX, length, want), stride)
    return slice_axes(node, x, bounds) if bounds else x

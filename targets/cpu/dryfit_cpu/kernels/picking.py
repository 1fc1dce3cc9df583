"""Layers that move values, or pick them: by a view of the input, by tables of places on each axis, or by a condition.

What shuffle, squeeze, unsqueeze, and slice inside its input give is a view of its input, as their numpy references say;
the step copies the view to the output. A reshape of axes that do not lie one in another gives no view: the input is
then first brought into the order in which they do.

Gather with known indices, padding, and slices that reach outside their input; and select, which takes each element from
one of two inputs. Elements are copied as they are, so these serve every type, quantized ones too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.indexing import Gather, GatherMode
from dryfit.network.layers.movement import Padding
from dryfit.network.layers.slice import SampleMode, Shuffle, Slice
from dryfit.network.tensor import Shape, Tensor, TensorSpec
from dryfit.reference.indexing import from_start
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import Elements, Extents
from dryfit_cpu.kernels.copying import bit_copy_work, chunks_for, placed_arguments
from dryfit_cpu.kernels.operands import aligned_in_order, bound_array, require_extents

_PICK = NativeFunction("lookup", "pick")
_SELECT = NativeFunction("lookup", "select")
_AXES = 4
_OUTSIDE = -1
_TYPES = FLOATS | {DataType.INT8, DataType.INT32, DataType.INT64}
"""Types whose elements are whole bytes."""

Places = Sequence[Array]
"""For each axis of the output the index in the input of each of its indices, `_OUTSIDE` for the constant."""


def _gathered(layer: Gather, x: Shape, inputs: Sequence[Array | None]) -> Places:
    """Axis by axis all, but along the one that is gathered."""
    indices = from_start(layer, cast("Array", inputs[1]).reshape(-1), x[layer.axis])
    return [indices if axis == layer.axis else np.arange(extent) for axis, extent in enumerate(x)]


def _padded(layer: Padding, x: Shape, inputs: Sequence[Array | None]) -> Places:
    del inputs
    inner = [np.arange(extent) for extent in x[:-2]]
    sides = zip(x[-2:], layer.pre_padding_nd, layer.post_padding_nd, strict=True)
    return [*inner, *(_inside(np.arange(-pre, extent + post), extent) for extent, pre, post in sides)]


def _sliced(layer: Slice, x: Shape, inputs: Sequence[Array | None]) -> Places:
    specs = [None if array is None else TensorSpec.of(array) for array in inputs]
    specs[0] = TensorSpec(x, DataType.INT64)
    places = []
    for extent, start, count, stride in zip(x, *layer.window(x, specs), strict=True):
        if layer.mode is SampleMode.FILL:
            places.append(_inside(start + stride * np.arange(count), extent))
        else:
            one = Slice(start=(start,), shape=(count,), stride=(stride,), mode=layer.mode)
            places.append(evaluate(one, [np.arange(extent)])[0])
    return places


def _inside(indices: Array, extent: int) -> Array:
    return np.where((indices >= 0) & (indices < extent), indices, _OUTSIDE)


_PLACES: Mapping[str, Callable[[Any, Shape, Sequence[Array | None]], Places]] = {
    "gather": _gathered,
    "padding": _padded,
    "slice": _sliced,
}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """One layer, whose other inputs (indices along one axis, bounds, the constant) are known."""
    layer = group.main
    others = [specs[tensor.name].value for tensor in layer.inputs[1:] if tensor is not None]
    x, y = (specs[cast("Tensor", tensor).name] for tensor in (layer.inputs[0], layer.outputs[0]))
    if len(group.layers) > 1 or any(value is None for value in others) or not 1 <= x.rank <= _AXES or 0 in x.shape:
        return False
    if isinstance(layer, Gather):
        return layer.mode is GatherMode.DEFAULT and not layer.num_elementwise_dims and x.rank == y.rank
    return not isinstance(layer, Slice) or layer.mode is not SampleMode.STRICT_BOUNDS


@kernel("cpu.picking", kinds=("gather", "padding", "slice"), data_types=_TYPES, accepts=_accepts)
def pick_elements(binding: Binding) -> NativeStep:
    """A step that copies from known places."""
    layer = binding.group.main
    inputs = [None if tensor is None else bound_array(binding, tensor.name) for tensor in layer.inputs]
    source, output = cast("Array", inputs[0]), bound_array(binding, layer.outputs[0].name)
    fill = inputs[4] if isinstance(layer, Slice) and len(inputs) > 4 else None
    constant = np.ascontiguousarray(np.zeros(1, output.dtype) if fill is None else fill.reshape(-1)[:1])
    places = _PLACES[layer.kind](layer, source.shape, inputs)
    require_extents([len(index) for index in places], output.shape, "output that is picked")
    for index, extent in zip(places, source.shape, strict=True):
        outside = np.extract((index < _OUTSIDE) | (index >= extent), index)
        require_extents(outside.tolist(), (), "places beside the input")
    offsets = [
        np.where(index < 0, _OUTSIDE, index * stride).astype(np.int64)
        for index, stride in zip(places, source.strides, strict=True)
    ]
    work, keeps = _pick_work(source, offsets, constant, output, binding.num_threads)
    return NativeStep(binding.group.name, work, [binding, source, constant, keeps])


def _pick_work(
    source: Array, offsets: Sequence[Array], fill: Array, output: Array, threads: int
) -> tuple[list[Work], object]:
    """The work, and what it reads, which has to be kept; the axis whose elements lie together is the innermost."""
    if not output.size:
        return [], None
    order = sorted(range(output.ndim), key=lambda axis: -abs(output.strides[axis]))
    size, inner = output.itemsize, order[-1]
    lies_together = output.strides[inner] == size and np.array_equal(
        offsets[inner], np.arange(output.shape[inner]) * size
    )
    if lies_together:
        size, order = size * output.shape[inner], order[:-1]
        fill = np.repeat(fill, output.shape[inner])
    axes = [(output.shape[axis], output.strides[axis], offsets[axis]) for axis in order]
    axes = [(1, 0, np.zeros(1, np.int64))] * (_AXES - len(axes)) + axes
    places = {f"places{number}": offsets.ctypes.data for number, (_, _, offsets) in enumerate(axes)}
    chunks = chunks_for(math.prod(extent for extent, _, _ in axes), threads)
    work = _PICK.work(
        chunks,
        source=source.ctypes.data,
        **places,
        fill=fill.ctypes.data,
        output=Elements(output.ctypes.data, 0, *(stride for _, stride, _ in axes)),
        extents=Extents(*(extent for extent, _, _ in axes)),
        size=size,
    )
    return [work], (fill, axes)


def _selects(group: LayerGroup, specs: Specs) -> bool:
    condition, first, second, output = (
        specs[cast("Tensor", tensor).name].dtype for tensor in (*group.main.inputs, *group.main.outputs)
    )
    is_one = condition is DataType.BOOL and first is second is output
    return len(group.layers) == 1 and is_one and first in _TYPES


@kernel("cpu.select", kinds="select", data_types=_TYPES | {DataType.BOOL}, accepts=_selects)
def select_elements(binding: Binding) -> NativeStep:
    """A step that copies from one of two inputs."""
    layer = binding.group.main
    output = bound_array(binding, layer.outputs[0].name)
    given = [bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs]
    shown = (np.broadcast_to(array, output.shape) for array in given)
    arrays = {"output": output, **dict(zip(("condition", "first", "second"), shown, strict=True))}
    placed = placed_arguments(arrays, binding.num_threads, has_kinds=False)
    work = [_SELECT.work(chunks, size=output.itemsize, **arguments) for chunks, arguments in placed]
    return NativeStep(binding.group.name, work, [binding, arrays])


def _view(layer: Layer, source: Array, others: Sequence[Array | None]) -> Array | None:
    """What the layer makes of the source, where that is a view of it; None where it is a copy."""
    (moved,) = evaluate(layer, [source, *others])
    return moved if np.may_share_memory(moved, source) else None


def _moves(group: LayerGroup, specs: Specs) -> bool:
    """One layer, whose other inputs (axes, bounds) are known, and which reads nothing outside its input.

    The extents of a reshape need not be known before memory is: those of the output say what they are.
    """
    layer = group.main
    others = [] if isinstance(layer, Shuffle) else layer.inputs[1:]
    known = all(specs[tensor.name].value is not None for tensor in others if tensor is not None)
    is_inside = not isinstance(layer, Slice) or layer.mode is SampleMode.STRICT_BOUNDS
    is_served = specs[cast("Tensor", layer.inputs[0]).name].dtype in _MOVED_TYPES
    return len(group.layers) == 1 and known and is_inside and is_served


_MOVED_TYPES = FLOATS | {DataType.INT8, DataType.INT32, DataType.INT64, DataType.BOOL}


def _with_extents_of(layer: Shuffle, output: Shape) -> Shuffle:
    """The same layer with the extents that an input gives it, which those of the output tell."""
    if len(layer.inputs) < 2:
        return layer
    known = copy_layer(layer)
    order = layer.second_transpose or range(len(output))
    known.reshape_dims = tuple(output[list(order).index(axis)] for axis in range(len(output)))
    known.zero_is_placeholder = False
    return known


@kernel(
    "cpu.movement",
    kinds=("shuffle", "slice", "squeeze", "unsqueeze"),
    data_types=_MOVED_TYPES,
    accepts=_moves,
)
def move_values(binding: Binding) -> NativeStep:
    """A step that copies what the layer makes of its input.

    Raises:
        ExecutionError: the layer makes no view, though its input lies in order: no such layer is known.
    """
    layer, threads = binding.group.main, binding.num_threads
    output = bound_array(binding, layer.outputs[0].name)
    layer = _with_extents_of(layer, output.shape) if isinstance(layer, Shuffle) else layer
    inputs = binding.group.main.inputs[:1] if isinstance(layer, Shuffle) else layer.inputs
    source, *others = (None if tensor is None else bound_array(binding, tensor.name) for tensor in inputs)
    source = cast("Array", source)
    work: list[Work] = []
    view = _view(layer, source, others)
    if view is None:
        order = layer.first_transpose if isinstance(layer, Shuffle) else ()
        ordered = aligned_in_order(source, order or range(source.ndim))
        work += bit_copy_work(source, ordered, threads)
        source, view = ordered, _view(layer, ordered, others)
    if view is None:
        raise ExecutionError(
            "A layer that computes values cannot run as a copy",
            where=f"layer {layer.name!r}",
            remedy="Build the engine again; if that does not help, report a bug in the kernel",
        )
    work += bit_copy_work(view, output, threads)
    return NativeStep(binding.group.name, work, [binding, source, view])

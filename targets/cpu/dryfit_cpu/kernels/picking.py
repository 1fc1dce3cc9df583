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
from dryfit_cpu.kernels.operands import aligned_in_order, bound_array, input_of, require_extents

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


def _before(layer: Layer, output: Array, shape: Shape) -> Array | None:
    """What a layer makes an output of, as a view of that output; None where there is none."""
    if isinstance(layer, Slice):
        return None
    order: Sequence[int] = range(len(shape))
    if isinstance(layer, Shuffle):
        output = output.transpose(np.argsort(layer.second_transpose)) if layer.second_transpose else output
        order = layer.first_transpose or order
    given = output.reshape([shape[axis] for axis in order])
    return given.transpose(np.argsort(order)) if np.may_share_memory(given, output) else None


_MOVED_TYPES = FLOATS | {DataType.INT8, DataType.INT32, DataType.INT64, DataType.BOOL}


def _is_move(layer: Layer, specs: Specs | None = None) -> bool:
    """Whether a layer's other inputs (axes, bounds) are known, and it reads nothing outside its input.

    The extents of a reshape need not be known before memory is: those of the output say what they are.
    """
    found = [tensor.spec if specs is None else specs[tensor.name] for tensor in layer.inputs if tensor is not None]
    known = isinstance(layer, Shuffle) or all(spec.value is not None for spec in found[1:])
    is_inside = not isinstance(layer, Slice) or layer.mode is SampleMode.STRICT_BOUNDS
    return layer.kind in _MOVES and known and is_inside and found[0].dtype in _MOVED_TYPES


_MOVES = ("shuffle", "slice", "squeeze", "unsqueeze")


def _moves_on(group: LayerGroup, layer: Layer) -> bool:
    """Whether a layer moves what the group gives, and reads it in no other place."""
    places = [index for index, tensor in enumerate(layer.inputs) if tensor is group.layers[-1].outputs[0]]
    return places == [0] and _is_move(layer)


def _with_extents_of(layer: Shuffle, output: Shape) -> Shuffle:
    """The same layer with the extents that an input gives it, which those of the output tell."""
    if len(layer.inputs) < 2:
        return layer
    known = copy_layer(layer)
    order = layer.second_transpose or range(len(output))
    known.reshape_dims = tuple(output[list(order).index(axis)] for axis in range(len(output)))
    known.zero_is_placeholder = False
    return known


def _seen(group: LayerGroup, specs: Specs, source: Array) -> Array | None:
    """What the layers make of a source, where that is a view of it."""
    view: Array | None = source
    for layer in group.layers:
        shape = specs[layer.outputs[0].name].shape
        if view is None or (layer.kind != "slice" and not _reshapes_in_order(layer, view, shape)):
            return None
        others = [None if tensor is None else specs[tensor.name].value for tensor in layer.inputs[1:]]
        moved = _with_extents_of(layer, shape) if isinstance(layer, Shuffle) else layer
        view = _view(moved, view, [] if isinstance(layer, Shuffle) else others)
    return view


def _reshapes_in_order(layer: Layer, view: Array, shape: Shape) -> bool:
    """Whether a layer copies nothing: it transposes alone, or reshapes what lies in order."""
    if not isinstance(layer, Shuffle):
        return view.flags.c_contiguous
    moved = view.transpose(layer.first_transpose) if layer.first_transpose else view
    order = layer.second_transpose or range(len(shape))
    is_same = moved.ndim == len(shape) and moved.shape == tuple(
        shape[list(order).index(axis)] for axis in range(len(shape))
    )
    return is_same or moved.flags.c_contiguous


@kernel(
    "cpu.movement",
    kinds=_MOVES,
    data_types=_MOVED_TYPES,
    accepts=lambda group, specs: all(_is_move(layer, specs) for layer in group.layers),
    fuses=_moves_on,
    view=_seen,
)
def move_values(binding: Binding) -> NativeStep:
    """A step that copies what the layers make of their input: once, where source and output have views that meet.

    A channel shuffle is a reshape, a transposition and a reshape: the first two are a view of the source, and of what
    the last gives the output has a view, however both lie in memory.

    Raises:
        ExecutionError: a layer makes no view, though its input lies in order: no such layer is known.
    """
    threads, layers = binding.num_threads, list(binding.group.layers)
    view = bound_array(binding, input_of(binding.group).name)
    target = bound_array(binding, layers[-1].outputs[0].name)
    shapes = [view.shape, *(binding.specs[layer.outputs[0].name].shape for layer in layers)]
    layers = [
        _with_extents_of(layer, shape) if isinstance(layer, Shuffle) else layer
        for layer, shape in zip(layers, shapes[1:], strict=True)
    ]
    work, keeps, first, end = list[Work](), [view, target], 0, len(layers)
    while first < end:
        layer, before = layers[first], _before(layers[end - 1], target, shapes[end - 1])
        moved = _view(layer, view, _others(binding, binding.group.layers[first]))
        if moved is not None:
            view, first = moved, first + 1
        elif before is not None:
            target, end = before, end - 1
        elif view is not keeps[-1]:
            order = layer.first_transpose if isinstance(layer, Shuffle) else ()
            keeps.append(aligned_in_order(view, order or range(view.ndim)))
            work += bit_copy_work(view, keeps[-1], threads)
            view = keeps[-1]
        else:
            raise ExecutionError(
                "A layer that computes values cannot run as a copy",
                where=f"layer {layer.name!r}",
                remedy="Rebuild the engine; if the error persists, report a bug in the kernel",
            )
    is_there = (view.ctypes.data, view.strides) == (target.ctypes.data, target.strides)
    copy = [] if is_there else bit_copy_work(view, target, threads)
    return NativeStep(binding.group.name, [*work, *copy], [binding, *keeps])


def _others(binding: Binding, layer: Layer) -> list[Array | None]:
    """The axes and bounds that a layer reads; the extents of a shuffle are in the layer."""
    if isinstance(layer, Shuffle):
        return []
    return [None if tensor is None else bound_array(binding, tensor.name) for tensor in layer.inputs[1:]]

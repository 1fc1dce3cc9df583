"""Functions of one quantized tensor, whatever they are: a table of 256 results, which the references compute.

So a sigmoid between a dequantize and a quantize layer costs a load for each value, and its results are those of the
layers one by one, bit for bit. Layers may read the tensor in several places, as `x * sigmoid(x)` does, and numbers that
are known. Where these differ from channel to channel, as the slopes of a parametric ReLU, each channel has a table.
"""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ParametricRelu
from dryfit.network.layers.elementwise import Elementwise, Unary
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.scale import Scale, ScaleMode
from dryfit.network.tensor import Shape, Tensor
from dryfit.quantization.rounding import Rounding, RoundingMode
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.kernels.copying import placed_arguments
from dryfit_cpu.kernels.integer_stages import CodeGrid, grid_of, quantized_source
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.quantization import quantized
from dryfit_cpu.kernels.requantization import requantization_of

_LOOK_UP = NativeFunction("lookup", "look_up")


@attrs.frozen(eq=False)
class CodeTable:
    """What a group makes of each INT8 value.

    Attributes:
        values: `[256]`, or `[channels, 256]`, in the order of unsigned bytes; real where the group does not quantize.
        axis: the axis of the channels; None where all values have one table.
    """

    values: Array
    axis: int | None


def table_of(group: LayerGroup, rounding: Rounding = RoundingMode.HALF_TO_EVEN) -> CodeTable | None:
    """The table of a group; None where it is no function of one value.

    Args:
        group: the layers.
        rounding: how the device rounds where it quantizes.
    """
    source = quantized_source(group.main.inputs[0], group)
    if source is None or isinstance(group.layers[-1], Dequantize) or not source.tensor.shape:
        return None
    shape, axes = source.tensor.shape, set[int]()
    known: dict[str, Array] = {}
    for layer in group.layers:
        axes |= _axes_of(layer, shape)
    axis = next(iter(axes), None)
    # Values lie along an axis that is not the channels'.
    along = next((place for place in reversed(range(len(shape))) if place != axis), None)
    if len(axes) > 1 or along is None or (axis is not None and shape[axis] < 1):
        return None
    codes_along = [256 if place == along else 1 for place in range(len(shape))]
    probe = [shape[place] if place == axis else extent for place, extent in enumerate(codes_along)]
    every = np.arange(256, dtype=np.uint8).view(np.int8).reshape(codes_along)
    known[source.tensor.name] = np.broadcast_to(every, probe)
    for layer in group.layers:
        values = [_value(tensor, known) for tensor in layer.inputs]
        if not _is_function(layer) or any(value is None for value in values):
            return None
        known[layer.outputs[0].name] = _result(layer, cast("list[Array]", values), rounding)
    # The references compute the table, on all 256 codes: so the kernel has no arithmetic of its own that could differ.
    results = np.broadcast_to(known[group.outputs[0].name], probe)
    if axis is None:
        return CodeTable(np.ascontiguousarray(results.reshape(256)), None)
    return CodeTable(np.ascontiguousarray(np.moveaxis(results, (axis, along), (0, 1)).reshape(-1, 256)), axis)


def _axes_of(layer: Layer, shape: Shape) -> set[int]:
    """The axes along which a layer's known numbers differ."""
    if isinstance(layer, Scale):
        return {layer.channel_axis} if layer.mode is not ScaleMode.UNIFORM else set()
    # What a dequantization gives that reads known codes is known too, and has their shape.
    read = layer.inputs[:1] if isinstance(layer, Dequantize) else layer.inputs
    values = [tensor.spec.value for tensor in read if tensor is not None]
    if not isinstance(layer, (Dequantize, Elementwise, ParametricRelu)):
        return set()
    known = [value.shape for value in values if value is not None and value.ndim == len(shape)]
    return {place for extents in known for place, extent in enumerate(extents) if extent != 1}


def _result(layer: Layer, values: list[Array], rounding: Rounding) -> Array:
    if isinstance(layer, Quantize):
        grid = cast("CodeGrid", grid_of(layer))
        return quantized(values[0], np.array(grid.scale, np.float32), rounding, grid.zero_point)
    with np.errstate(all="ignore"):
        (result,) = evaluate(layer, values)
    return result


def _is_function(layer: Layer) -> bool:
    """Whether each element of what a layer gives depends on the elements in its place alone."""
    if isinstance(layer, (Quantize, Dequantize)):
        return grid_of(layer) is not None
    if isinstance(layer, Scale):
        return layer.mode is not ScaleMode.ELEMENTWISE
    return isinstance(layer, (Activation, Elementwise, ParametricRelu, Unary))


def _value(tensor: Tensor | None, known: dict[str, Array]) -> Array | None:
    """What is computed from the source already, or a constant."""
    return None if tensor is None else known.get(tensor.name, tensor.spec.value)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """A chain of functions that are more than what a requantization does."""
    del specs
    is_short = len(group.layers) == 1 or isinstance(group.main, Quantize)
    is_stage = isinstance(group.main, (Activation, Elementwise)) and requantization_of(group) is not None
    return not is_short and not is_stage and table_of(group) is not None


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    """Anything that leaves a function of one value; a dequantization is judged by what follows it."""
    longer = LayerGroup((*group.layers, layer))
    return isinstance(layer, Dequantize) or table_of(longer) is not None


def lookup_work(table: CodeTable, source: Array, output: Array, threads: int) -> list[Work]:
    """Work that looks up each value of an array."""
    arrays = {"output": output, "source": source, "table": _tables(table, output.shape)}
    return [_LOOK_UP.work(chunks, **arguments) for chunks, arguments in placed_arguments(arrays, threads)]


def _tables(table: CodeTable, shape: Shape) -> Array:
    """For each value the first one of its table: an array of the output's shape, most of whose strides are 0."""
    strides = [table.values.strides[0] if place == table.axis else 0 for place in range(len(shape))]
    return np.lib.stride_tricks.as_strided(table.values, shape, strides, writeable=False)


@kernel(
    "cpu.integer_function",
    kinds=["activation", "unary", "elementwise", "scale", "parametric_relu"],
    data_types=[DataType.FLOAT, DataType.INT8],
    accepts=_accepts,
    fuses=_fuses,
    absorbs_dequantize=True,
    layout=HostLayout.ANY,
)
def look_up(binding: Binding) -> NativeStep:
    """A step that looks up each value."""
    group, output = binding.group, bound_array(binding, binding.group.outputs[0].name)
    source = quantized_source(group.main.inputs[0], group)
    values = bound_array(binding, cast("Tensor", source and source.tensor).name)
    table = cast("CodeTable", table_of(group, binding.rounding))
    return NativeStep(group.name, lookup_work(table, values, output, binding.num_threads), [binding, table])

"""Quantized values in another scale: sums, products and limits of two, activations, requantization, concatenation.

And the ReLU of INT8 codes as they are: with a zero that is a code, what commutes with quantization needs no scale.

Other functions of one quantized tensor, whatever they are, have a table of 256 results, which the references compute.
So a sigmoid between a dequantize and a quantize layer costs a load for each value, and its results are those of the
layers one by one, bit for bit. Layers may read the tensor in several places, as `x * sigmoid(x)` does, and numbers that
are known. Where these differ from channel to channel, as the slopes of a parametric ReLU, each channel has a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType, ParametricRelu, Scale, ScaleMode
from dryfit.network.layers.elementwise import Elementwise, Unary
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Shape, Tensor
from dryfit.quantization.rounding import Rounding, RoundingMode
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import Elements, Function
from dryfit_cpu.kernels.copying import NO_FUNCTION, parts_along, placed_arguments, pointwise_work
from dryfit_cpu.kernels.integer_stages import Quantized, StageGrid, grid_of, quantized_source
from dryfit_cpu.kernels.operands import bound_array, input_of
from dryfit_cpu.kernels.quantization import quantized
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    integer_kernel,
    requantization_of,
)

_REQUANTIZE = NativeFunction("pointwise", "requantize")


def requantize_work(
    source: Array, grid: StageGrid, steps: GroupRequantization, residual: Array | None, output: Array, threads: int
) -> list[Work]:
    """Work that requantizes an INT8 array in a grid; all arrays have the output's shape."""
    arrays = {"output": output, "source": source, "residual": source if residual is None else residual}
    multiplier = steps.multiplier_of(grid.scale)
    work = []
    for chunks, arguments in placed_arguments(arrays, threads):
        if residual is None:
            arguments["residual"] = cast("Elements", arguments["residual"])._replace(address=0)
        work.append(
            _REQUANTIZE.work(
                chunks, source_zero=grid.zero_point, multiplier=multiplier, steps=steps.descriptor, **arguments
            )
        )
    return work


def _accepts(group: LayerGroup, _specs: Specs) -> bool:
    return _source(group) is not None and requantization_of(group) is not None


@integer_kernel(
    "cpu.integer_pointwise",
    kinds=["activation", "elementwise", "quantize"],
    accepts=_accepts,
    layout=HostLayout.ANY,
)
def map_integers(binding: Binding) -> NativeStep:
    """A step that requantizes."""
    group, output = binding.group, bound_array(binding, binding.group.outputs[0].name)
    source = cast("Quantized", _source(group))
    steps = bound_requantization(binding)
    residual = np.broadcast_to(bound_array(binding, steps.residual), output.shape) if steps.residual else None
    values = np.broadcast_to(bound_array(binding, source.tensor.name), output.shape)
    work = requantize_work(values, source.grid, steps, residual, output, binding.num_threads)
    return NativeStep(group.name, work, [binding])


def _source(group: LayerGroup) -> Quantized | None:
    return quantized_source(group.main.inputs[0], group)


def _joins(group: LayerGroup, _specs: Specs) -> bool:
    steps = requantization_of(group)
    return steps is not None and not steps.residual and _sources(group) is not None


@integer_kernel(
    "cpu.integer_concatenation",
    kinds="concatenation",
    accepts=_joins,
    layout=HostLayout.ANY,
)
def concatenate_integers(binding: Binding) -> NativeStep:
    """A step that requantizes each input to its part of the output."""
    group, output = binding.group, bound_array(binding, binding.group.outputs[0].name)
    steps, sources = bound_requantization(binding), cast("list[Quantized]", _sources(group))
    arrays = [bound_array(binding, source.tensor.name) for source in sources]
    parts, work = parts_along(cast("Concatenation", group.main).axis, arrays, output), list[Work]()
    for source, values, part in zip(sources, arrays, parts, strict=True):
        work += requantize_work(values, source.grid, steps, None, part, binding.num_threads)
    return NativeStep(group.name, work, [binding])


def _sources(group: LayerGroup) -> Sequence[Quantized] | None:
    sources = [quantized_source(cast("Tensor", tensor), group) for tensor in group.main.inputs]
    found = [source for source in sources if source is not None]
    return found if len(found) == len(sources) else None


_RELU = Function(codes.RELU, 0.0, 0.0)


def _accepts_codes(group: LayerGroup, _specs: Specs) -> bool:
    layer = group.main
    is_alone = len(group.layers) == 1
    return is_alone and isinstance(layer, Activation) and layer.activation_type is ActivationType.RELU


@kernel(
    "cpu.code_activation", kinds="activation", data_types=[DataType.INT8], accepts=_accepts_codes, layout=HostLayout.ANY
)
def cut_codes(binding: Binding) -> NativeStep:
    """A step that makes negative codes 0."""
    source = bound_array(binding, input_of(binding.group).name)
    output = bound_array(binding, binding.group.outputs[0].name)
    work = pointwise_work(codes.FIRST, [source], output, binding.num_threads, NO_FUNCTION, _RELU)
    return NativeStep(binding.group.name, work, [binding, source])


_LOOK_UP = NativeFunction("lookup", "look_up")


@frozen(eq=False)
class CodeTable:
    """What a group makes of each INT8 value.

    Attributes:
        values: `[256]`, or `[channels, 256]`, in the order of unsigned bytes; real where the group does not quantize.
        axis: the axis of the channels; None where all values have one table.
    """

    values: Array
    axis: int | None


def table_of(group: LayerGroup, rounding: Rounding = RoundingMode.HALF_TO_EVEN) -> CodeTable | None:
    """The table of a group; None where it is no function of one value."""
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
        grid = cast("StageGrid", grid_of(layer))
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


def _accepts_functions(group: LayerGroup, _specs: Specs) -> bool:
    """A chain of functions that are more than what a requantization does."""
    is_short = len(group.layers) == 1 or isinstance(group.main, Quantize)
    is_stage = isinstance(group.main, (Activation, Elementwise)) and requantization_of(group) is not None
    return not is_short and not is_stage and table_of(group) is not None


def _fuses_functions(group: LayerGroup, layer: Layer) -> bool:
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
    accepts=_accepts_functions,
    fuses=_fuses_functions,
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

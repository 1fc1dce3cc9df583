"""Functions of one quantized tensor, whatever they are: a table of 256 results, which the references compute.

So a sigmoid between a dequantize and a quantize layer costs a load for each value, and its results are those of the
layers one by one, bit for bit.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import chunks_for, joined_axes
from dryfit_cpu.kernels.functions import function_code
from dryfit_cpu.kernels.integer_stages import grid_of, quantized_source
from dryfit_cpu.kernels.operands import bound_array, element_code
from dryfit_cpu.kernels.quantization import quantized
from dryfit_cpu.kernels.requantization import requantization_of
from dryfit_cpu.steps import NativeStep, Work

_LOOK_UP = NativeFunction("lookup", "look_up")
_AXES = 4


def table_of(group: LayerGroup, rounding: RoundingMode = RoundingMode.HALF_TO_EVEN) -> Array | None:
    """What a group makes of each INT8 value, in the order of unsigned bytes; None where it is no function of one value.

    Real results where the group does not end with a quantize layer.

    Args:
        group: the layers.
        rounding: how the device rounds where it quantizes.
    """
    source = quantized_source(group.main.inputs[0], group)
    if source is None or isinstance(group.layers[-1], Dequantize):
        return None
    known: dict[str, Array] = {source.tensor.name: np.arange(256, dtype=np.uint8).view(np.int8)}
    for layer in group.layers:
        values = [_value(tensor, known) for tensor in layer.inputs]
        if not _is_function(layer) or any(value is None for value in values):
            return None
        known[layer.outputs[0].name] = _result(layer, cast("list[Array]", values), rounding)
    return known[group.outputs[0].name]


def _result(layer: Layer, values: list[Array], rounding: RoundingMode) -> Array:
    if isinstance(layer, Quantize):
        return quantized(values[0], values[1], rounding)
    with np.errstate(all="ignore"):
        (result,) = evaluate(layer, values)
    return result


def _is_function(layer: Layer) -> bool:
    return grid_of(layer) is not None or function_code(layer) is not None


def _value(tensor: Tensor | None, known: dict[str, Array]) -> Array | None:
    """What is computed from the source already, or a constant."""
    return None if tensor is None else known.get(tensor.name, tensor.spec.value)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """A chain of functions that are more than what a requantization does."""
    del specs
    is_short = len(group.layers) == 1 or isinstance(group.main, Quantize)
    return not is_short and requantization_of(group) is None and table_of(group) is not None


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    """Anything that leaves a function of one value; a dequantization is judged by what follows it."""
    longer = LayerGroup((*group.layers, layer))
    return isinstance(layer, Dequantize) or table_of(longer) is not None


def _work(table: Array, source: Array, output: Array, threads: int) -> list[Work]:
    if not output.size:
        return []
    arrays = [output, source]
    axes = joined_axes(arrays)
    outer, inner = axes[:-_AXES], axes[-_AXES:]
    padded = [(1, [0, 0])] * (_AXES - len(inner)) + list(inner)
    chunks = chunks_for(math.prod(extent for extent, _ in padded), threads)
    work = []
    for index in np.ndindex(*(extent for extent, _ in outer)):
        arguments = {f"extent{axis}": extent for axis, (extent, _) in enumerate(padded)}
        for number, name in enumerate(("output", "source")):
            beyond = sum(i * strides[number] for i, (_, strides) in zip(index, outer, strict=True))
            arguments[name] = arrays[number].ctypes.data + beyond
            arguments.update((f"{name}_stride{axis}", strides[number]) for axis, (_, strides) in enumerate(padded))
        kind = element_code(output)
        work.append(_LOOK_UP.work(chunks, table=table.ctypes.data, output_kind=kind, **arguments))
    return work


@kernel(
    "cpu.integer_function",
    kinds=["activation", "unary"],
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
    table = np.ascontiguousarray(cast("Array", table_of(group, binding.rounding)))
    return NativeStep(group.name, _work(table, values, output, binding.num_threads), [binding, table])

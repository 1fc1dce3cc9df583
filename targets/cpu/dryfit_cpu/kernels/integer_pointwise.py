"""Quantized values in another scale: sums, products and limits of two, activations, requantization, concatenation.

And the ReLU of INT8 codes as they are: with a zero that is a code, what commutes with quantization needs no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.movement import Concatenation
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import Elements, Function
from dryfit_cpu.kernels.copying import NO_FUNCTION, placed_arguments, pointwise_work
from dryfit_cpu.kernels.integer_stages import CodeGrid, Quantized, quantized_source
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.requantization import (
    GroupRequantization,
    bound_requantization,
    in_units,
    integer_kernel,
    requantization_of,
)

_REQUANTIZE = NativeFunction("pointwise", "requantize")


def requantize_work(
    source: Array, grid: CodeGrid, steps: GroupRequantization, residual: Array | None, output: Array, threads: int
) -> list[Work]:
    """Work that requantizes an INT8 array in a grid; all arrays have the output's shape."""
    arrays = {"output": output, "source": source, "residual": source if residual is None else residual}
    # One multiplier for both scales, rounded once in FP32: two products would be rounded twice.
    multiplier = float(in_units(np.array([grid.scale]), steps.unit)[0])
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


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
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


def _joins(group: LayerGroup, specs: Specs) -> bool:
    del specs
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
    axis = cast("Concatenation", group.main).axis
    steps = bound_requantization(binding)
    work, start = list[Work](), 0
    for source in cast("list[Quantized]", _sources(group)):
        values = bound_array(binding, source.tensor.name)
        place = [slice(None)] * output.ndim
        place[axis] = slice(start, start + values.shape[axis])
        start += values.shape[axis]
        part = output[tuple(place)]
        work += requantize_work(values, source.grid, steps, None, part, binding.num_threads)
    return NativeStep(group.name, work, [binding])


def _sources(group: LayerGroup) -> Sequence[Quantized] | None:
    sources = [quantized_source(cast("Tensor", tensor), group) for tensor in group.main.inputs]
    found = [source for source in sources if source is not None]
    return found if len(found) == len(sources) else None


_RELU = Function(codes.RELU, 0.0, 0.0)


def _accepts_codes(group: LayerGroup, specs: Specs) -> bool:
    del specs
    layer = group.main
    is_alone = len(group.layers) == 1
    return is_alone and isinstance(layer, Activation) and layer.activation_type is ActivationType.RELU


@kernel(
    "cpu.code_activation", kinds="activation", data_types=[DataType.INT8], accepts=_accepts_codes, layout=HostLayout.ANY
)
def cut_codes(binding: Binding) -> NativeStep:
    """A step that makes negative codes 0."""
    source = bound_array(binding, cast("Tensor", binding.group.main.inputs[0]).name)
    output = bound_array(binding, binding.group.outputs[0].name)
    work = pointwise_work(codes.FIRST, [source], output, binding.num_threads, NO_FUNCTION, _RELU)
    return NativeStep(binding.group.name, work, [binding, source])

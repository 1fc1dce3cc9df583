"""ReLU of INT8 codes as they are: with a zero that is a code, what commutes with quantization needs no scale."""

from __future__ import annotations

from typing import cast

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, HostLayout, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.copying import NO_FUNCTION, pointwise_work
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.steps import NativeStep

_RELU = Function(codes.RELU, 0.0, 0.0)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
    layer = group.main
    is_alone = len(group.layers) == 1
    return is_alone and isinstance(layer, Activation) and layer.activation_type is ActivationType.RELU


@kernel("cpu.code_activation", kinds="activation", data_types=[DataType.INT8], accepts=_accepts, layout=HostLayout.ANY)
def cut_codes(binding: Binding) -> NativeStep:
    """A step that makes negative codes 0."""
    source = bound_array(binding, cast("Tensor", binding.group.main.inputs[0]).name)
    output = bound_array(binding, binding.group.outputs[0].name)
    work = pointwise_work(codes.FIRST, [source], output, binding.num_threads, NO_FUNCTION, _RELU)
    return NativeStep(binding.group.name, work, [binding, source])

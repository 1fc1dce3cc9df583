"""Element by element: elementwise operations, activations, scales, casts and identities, on arrays of any strides."""

from __future__ import annotations

import math
from typing import cast

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.scale import Scale, ScaleMode
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.kernels.copying import NO_ACTIVATION, Activation, pointwise_work
from dryfit_cpu.kernels.epilogues import activation_code, coefficient, has_power
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.steps import NativeStep

_OPERATIONS = {
    ElementWiseOperation.SUM: codes.SUM,
    ElementWiseOperation.PROD: codes.PROD,
    ElementWiseOperation.MAX: codes.MAX,
    ElementWiseOperation.MIN: codes.MIN,
    ElementWiseOperation.SUB: codes.SUB,
    ElementWiseOperation.DIV: codes.DIV,
}
_FLOATS = frozenset({DataType.FLOAT, DataType.HALF})


def _coefficients(layer: Scale, binding: Binding, shape: tuple[int, ...]) -> list[Array]:
    """Scale and shift in shapes that broadcast to the output."""
    along, coefficients = layer.coefficient_shape(shape), []
    for name in ("scale", "shift"):
        is_one = name in binding.weights and binding.weights[name].size == 1
        given = binding.weight(name, (1 if is_one else math.prod(along),))
        coefficients.append(given.reshape((1,) * len(shape) if is_one else along))
    return coefficients


def _pack(group: LayerGroup) -> dict[str, Array]:
    layer = group.main
    if not isinstance(layer, Scale):
        return {}
    return {"scale": coefficient(layer.scale, 1.0), "shift": coefficient(layer.shift, 0.0)}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    tensors = [tensor for tensor in [*layer.inputs, *layer.outputs] if tensor is not None]
    if len(group.layers) > 2 or any(specs[tensor.name].dtype not in _FLOATS for tensor in tensors):
        return False
    if any(activation_code(following) is None for following in group.epilogue):
        return False
    if isinstance(layer, Elementwise):
        return layer.op in _OPERATIONS
    if isinstance(layer, Scale):
        is_even = layer.mode is not ScaleMode.ELEMENTWISE or min(specs[cast("Tensor", layer.inputs[0]).name].shape) >= 0
        return not has_power(layer) and is_even
    return layer.kind in ("cast", "identity") or activation_code(layer) is not None


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    fusing = isinstance(group.main, (Elementwise, Scale))
    return fusing and len(group.layers) == 1 and activation_code(layer) is not None


@kernel(
    "cpu.pointwise",
    kinds=["elementwise", "activation", "scale", "cast", "identity"],
    data_types=_FLOATS,
    accepts=_accepts,
    fuses=_fuses,
    pack=_pack,
    packed_parameters=("scale", "shift"),
)
def map_elements(binding: Binding) -> NativeStep:
    """A step that does the group's first layer and, in the same pass, its activation."""
    layer = binding.group.main
    output = bound_array(binding, binding.group.outputs[0].name)
    operands = [bound_array(binding, tensor.name) for tensor in layer.inputs if tensor is not None]
    operation, activation = codes.FIRST, activation_code(layer) or NO_ACTIVATION
    if isinstance(layer, Elementwise):
        operation = _OPERATIONS[layer.op]
    elif isinstance(layer, Scale):
        operation = codes.MULTIPLY_ADD
        operands += _coefficients(layer, binding, output.shape)
    for following in binding.group.epilogue:
        activation = cast("Activation", activation_code(following))
    work = pointwise_work(operation, operands, output, binding.num_threads, activation)
    return NativeStep(binding.group.name, work, [binding, operands])


@kernel(
    "cpu.concatenation",
    kinds="concatenation",
    data_types=_FLOATS,
    accepts=lambda group, specs: len(group.layers) == 1,
)
def concatenate(binding: Binding) -> NativeStep:
    """A step that copies each input to its place in the output."""
    layer = binding.group.main
    axis = layer.axis  # type: ignore[attr-defined]
    output = bound_array(binding, layer.outputs[0].name)
    work, start = [], 0
    for tensor in layer.inputs:
        source = bound_array(binding, cast("Tensor", tensor).name)
        place = [slice(None)] * output.ndim
        place[axis] = slice(start, start + source.shape[axis])
        start += source.shape[axis]
        work += pointwise_work(codes.FIRST, [source], output[tuple(place)], binding.num_threads)
    return NativeStep(binding.group.name, work, [binding])

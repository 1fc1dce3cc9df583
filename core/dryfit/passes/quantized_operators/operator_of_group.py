"""The quantize method that each layer has, and the quantized operator for a layer and the quantization around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator, fields_of_layer
from dryfit.network.network import Network
from dryfit.network.tensor import Array, TensorSpec
from dryfit.passes.quantized_operators.grid import BiasError, CodeGrid, grid_of, grid_problem, integer_bias, real_bias
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.operators import operator_of
from dryfit.quantization.quantized_group import QuantizedGroup, find_quantized_group, missing_for_group

if TYPE_CHECKING:  # what methods are made of, which few networks have
    from dryfit.quantization.methods.method import MethodRule, QuantizeMethod

NONE = "none"
"""The name that says: no method, whatever else is said."""


def chosen_method(layer: Layer) -> str:
    """The name of the method of a layer of a network: its own, or else the network's; "" for none."""
    name: str = layer.quantize_method or layer.network.quantize_method
    return "" if name == NONE else name


def asks_itself(layer: Layer) -> bool:
    """Whether a layer names a method of its own."""
    return layer.quantize_method not in ("", NONE)


def chosen_methods(network: Network) -> dict[str, QuantizeMethod]:
    """The methods that are named in a network, each loaded once.

    Raises:
        UnknownNameError: no installed package brings a method; names the layer that asks for it.
        PluginError: a method cannot be loaded.
    """
    found: dict[str, QuantizeMethod] = {}
    if network.quantize_method not in ("", NONE):
        where = f"network {network.name!r}, quantize_method"
        found[network.quantize_method] = quantize_method(network.quantize_method, where=where)
    for layer in network.layers:
        name = layer.quantize_method
        if asks_itself(layer) and name not in found:
            found[name] = quantize_method(name, where=f"{layer.where}, quantize_method")
    return found


_ENDED_BY_ACTIVATIONS = frozenset({"average_pool", "bias_add", "convolution", "deconvolution", "eltwise_sum"})
_ENDED_BY_ACTIVATIONS |= {"eltwise_difference", "eltwise_product", "eltwise_quotient", "inner_product"}
"""Operators that libraries compute with an activation behind them as one: its bounds become bounds of the codes."""
_LARGEST = float(np.finfo(np.float32).max)


@frozen(eq=False)
class Formed:
    """A quantized operator that can be, and what it stands for.

    Attributes:
        group: the layers that it takes the place of.
        operator: in no network.
        bias: int32[K], or float32[K] where the method adds floating-point values and it is not a whole number of units
            of the sums; to be its input 2; None where there is none or it is a tensor already.
    """

    group: QuantizedGroup
    operator: QuantizedOperator
    bias: Array | None = None


def formed_operator(layer: Layer, method: QuantizeMethod) -> Formed | str:
    """The quantized operator around a layer, or why there is none, in words."""
    if operator_of(layer) is None:
        return f"quantize methods do not support this kind of layer ({layer.kind})"
    activation = activation_behind(layer)
    group = find_quantized_group(layer, activation, takes_zero_points=True, gives_flags=True)
    missing = missing_for_group(layer, activation, takes_zero_points=True) + _missing_operands(layer)
    if group is None or missing:
        return "; ".join(missing) or "none of its inputs is dequantized"
    wrong = _wrong_grids(group)
    if wrong:
        return "; ".join(wrong)
    if layer.precision is not None or layer.output_types:
        return "a type is requested for it, so it stays as it is"
    try:
        bias = _bias(group)
    except BiasError as error:
        return str(error)
    operator = _operator(group, method)
    specs: list[TensorSpec | None] = [None if tensor is None else tensor.spec for tensor in group.inputs]
    if bias is not None:
        specs = [*specs[:2], TensorSpec.of(bias)]
    problem = _misfit(operator, specs, group) or rule_problem(operator, specs, method)
    if problem:
        return problem
    return Formed(group, operator, _in_its_numbers(bias, group, rule_of(operator, specs, method)))


def _in_its_numbers(integers: Array | None, group: QuantizedGroup, rule: MethodRule) -> Array | None:
    """A bias in real numbers where the rule adds such and integers would change it; else the integers."""
    if integers is None or rule.requantization is None or not rule.requantization.real_bias:
        return integers
    real = real_bias(group.layer, _unit(group), integers)
    return integers if real is None else real


def activation_behind(layer: Layer) -> Activation | None:
    """The activation that is computed with a layer: it alone reads what the layer gives, and is of its method."""
    output = layer.outputs[0] if len(layer.outputs) == 1 else None
    if output is None or operator_of(layer) not in _ENDED_BY_ACTIVATIONS:
        return None
    reader = output.consumers[0][0] if len(output.consumers) == 1 and not output.is_network_output else None
    is_bound = isinstance(reader, Activation) and reader.activation_type in (ActivationType.RELU, ActivationType.CLIP)
    if not is_bound or not isinstance(reader, Activation) or chosen_method(reader) != chosen_method(layer):
        return None
    has_wishes = reader.precision is not None or bool(reader.output_types)
    return None if has_wishes else reader


def limits_of(activation: Activation | None) -> tuple[float, float]:
    """The bounds that a fused activation puts on real numbers; one that FP32 cannot exceed is none."""
    if activation is None:
        return UNLIMITED
    if activation.activation_type is ActivationType.RELU:
        return 0.0, math.inf
    low, high = activation.alpha, activation.beta
    return (-math.inf if low <= -_LARGEST else low), (math.inf if high >= _LARGEST else high)


def rule_of(operator: QuantizedOperator, specs: Sequence[TensorSpec | None], method: QuantizeMethod) -> MethodRule:
    """The rule by which a method computes an operator on inputs of these shapes and types; values do not matter.

    Raises:
        ConfigError: it does not have the operator, or refuses its scales.
    """
    from dryfit.quantization.methods.call import call_of

    return method.rule_for(call_of(operator, [None if spec is None else _any_values(spec) for spec in specs]))


def rule_problem(operator: QuantizedOperator, specs: Sequence[TensorSpec | None], method: QuantizeMethod) -> str:
    """Why a method does not compute an operator, in words; "" where it does."""
    try:
        rule_of(operator, specs, method)
    except DryfitError as error:
        facts = [f"found {error.found}" if error.found else "", f"allowed: {error.allowed}" if error.allowed else ""]
        return f"{error.message[:1].lower()}{error.message[1:]} ({'; '.join(filter(None, facts))})"
    return ""


def _any_values(spec: TensorSpec) -> Array:
    """An array of this shape and type that takes no memory; extents that are not known yet are 1."""
    shape = tuple(1 if extent < 0 else extent for extent in spec.shape)
    return np.broadcast_to(np.zeros((), spec.dtype.numpy), shape)


def _missing_operands(layer: Layer) -> list[str]:
    """The operands that stand in real numbers as constants, but for a bias."""
    if layer.sums_products and getattr(layer, "kernel", None) is not None:
        return ["its weights are not quantized"]
    return [
        f"its input {tensor.name!r} is a constant in floating point"
        for index, tensor in enumerate(layer.inputs)
        if tensor is not None
        and tensor.dtype.is_floating_point
        and tensor.is_constant
        and not (index == 2 and layer.is_weighted)
        and not (index > 0 and layer.kind == "resize")
    ]


def _wrong_grids(group: QuantizedGroup) -> list[str]:
    found: list[tuple[Layer, str]] = []
    for index, one in enumerate(group.dequantizes):
        if one is not None and not _is_bias(group.layer, index):
            axis = _output_axis(group.layer) if index == 1 else None
            found.append((one, grid_problem(one, axis)))
    found += [(one, grid_problem(one)) for one in group.quantizes]
    return [f"{one.where}: {problem}" for one, problem in found if problem]


def _is_bias(layer: Layer, index: int) -> bool:
    return index == 2 and layer.is_weighted


def _output_axis(layer: Layer) -> int | None:
    """The axis of the weights that is the output channels; None where one scale serves them all."""
    if layer.kind in ("convolution", "fully_connected"):
        return 0
    if isinstance(layer, Deconvolution):
        return 1 if layer.num_groups == 1 else None
    if isinstance(layer, MatrixMultiply) and layer.op1 is not MatrixOperation.VECTOR:
        weights = layer.inputs[1]
        rank = 0 if weights is None else len(weights.shape)
        return rank - (1 if layer.op1 is MatrixOperation.NONE else 2)
    return None


def _grids(group: QuantizedGroup) -> list[CodeGrid | None]:
    return [
        None if one is None or _is_bias(group.layer, index) else grid_of(one)
        for index, one in enumerate(group.dequantizes)
    ]


def _bias(group: QuantizedGroup) -> Array | None:
    """The bias in units of the product of both scales.

    Raises:
        BiasError: it cannot be had in INT32.
    """
    if not group.layer.is_weighted:
        return None
    return integer_bias(group.layer, _unit(group))


def _unit(group: QuantizedGroup) -> Array:
    """What the sums are in units of: input scale * weight scale."""
    scales = [grid.scale for grid in _grids(group)[:2] if grid is not None]
    return np.asarray(scales[0] * scales[1], np.float32)


def _operator(group: QuantizedGroup, method: QuantizeMethod) -> QuantizedOperator:
    grids, end = _grids(group), next(iter(group.quantizes), None)
    output = None if end is None else grid_of(end)
    activation = group.activation if isinstance(group.activation, Activation) else None
    return QuantizedOperator(
        name=group.layer.name,
        metadata=group.layer.metadata,
        onnx_nodes=group.layer.onnx_nodes,
        quantize_method=method.name,
        computes=group.layer.kind,
        method=method.name,
        fields=fields_of_layer(group.layer),
        scales=tuple(None if grid is None else grid.scale for grid in grids),
        zero_points=tuple(None if grid is None else grid.zero_point for grid in grids),
        output_scale=None if output is None else output.scale,
        output_zero_point=None if output is None else output.zero_point,
        to_type=DataType.BOOL if end is None else end.to_type,
        limits=limits_of(activation),
    )


def _misfit(operator: QuantizedOperator, specs: Sequence[TensorSpec | None], group: QuantizedGroup) -> str:
    """Why the operator does not give what the group gives; "" where it does."""
    try:
        found = [(spec.shape, spec.dtype) for spec in operator.infer_outputs(specs)]
    except DryfitError as error:
        return str(error)
    needed = [(tensor.shape, tensor.dtype) for tensor in group.outputs]
    return "" if found == needed else f"as an operator it gives {found}, and {needed} is needed"

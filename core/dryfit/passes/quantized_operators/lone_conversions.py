"""Quantized operators for what only converts: a quantization, a dequantization, or both in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_tensor_notes, note_origin
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantized_operators.grid import CodeGrid, grid_of, grid_problem
from dryfit.passes.quantized_operators.operator_of_group import rule_problem

if TYPE_CHECKING:
    from dryfit.quantization.methods.method import QuantizeMethod

Replacement = tuple[Layer, QuantizedOperator, Tensor]
"""A quantize or dequantize layer, the operator in its place, and what that reads."""


def requantization(quantize: Quantize, method: QuantizeMethod) -> Replacement | str:
    """The operator from codes to codes for a quantization right behind a dequantization, or why there is none."""
    dequantize = _producer(quantize)
    if not isinstance(dequantize, Dequantize):
        return "its input is not dequantized"
    problem = _problem(quantize) or _problem(dequantize)
    if problem:
        return problem
    operator = _operator("identity", method, grid_of(dequantize), grid_of(quantize), quantize.to_type)
    return _checked(quantize, operator, dequantize.connected_input(0), method)


def conversion(layer: Quantize | Dequantize, method: QuantizeMethod) -> Replacement | str:
    """The operator that quantizes or dequantizes alone, or why there is none."""
    problem = _problem(layer)
    if problem:
        return problem
    if isinstance(layer, Quantize):
        operator = _operator("quantize", method, None, grid_of(layer), layer.to_type)
    else:
        operator = _operator("dequantize", method, grid_of(layer), None, DataType.FLOAT)
    return _checked(layer, operator, layer.connected_input(0), method)


def _operator(
    computes: str, method: QuantizeMethod, read: CodeGrid | None, written: CodeGrid | None, to_type: DataType
) -> QuantizedOperator:
    """An operator of one input by grids; None for real numbers."""
    return QuantizedOperator(
        computes=computes,
        method=method.name,
        quantize_method=method.name,
        scales=(None if read is None else read.scale,),
        zero_points=(None if read is None else read.zero_point,),
        output_scale=None if written is None else written.scale,
        output_zero_point=None if written is None else written.zero_point,
        to_type=to_type,
    )


def replace_layers(network: Network, replacements: Sequence[Replacement]) -> None:
    """Let operators take the places and names of quantize and dequantize layers, in one sweep over the network."""
    specs = [old.outputs[0].spec for old, _, _ in replacements]
    given: dict[Tensor, Tensor] = {}  # one may read what another one gave
    for (old, new, data), spec in zip(replacements, specs, strict=True):
        added = network.add_layer(new, [given.get(data, data)], [spec])
        given[old.outputs[0]] = added.outputs[0]
        copy_tensor_notes(old.outputs[0], added.outputs[0])
        note_origin(added, old)
        network.replace_uses(old.outputs[0], added.outputs[0])
    names = [(old.name, old.outputs[0].name) for old, _, _ in replacements]
    network.remove_layers([old for old, _, _ in replacements])
    for (_, new, _), (layer_name, tensor_name) in zip(replacements, names, strict=True):
        network.rename_layer(new, layer_name)
        network.rename_tensor(new.outputs[0], tensor_name)


def _checked(layer: Layer, operator: QuantizedOperator, data: Tensor, method: QuantizeMethod) -> Replacement | str:
    operator.name, operator.metadata = layer.name, layer.metadata
    return rule_problem(operator, [data.spec], method) or (layer, operator, data)


def _problem(layer: Quantize | Dequantize) -> str:
    factors = [tensor for tensor in layer.inputs[1:] if tensor is not None]
    if any(tensor.spec.value is None for tensor in factors):
        return f"{layer.where}: its scale or zero point is not constant"
    if isinstance(layer, Quantize) and not layer.saturate:
        return f"{layer.where}: its values do not saturate"
    problem = grid_problem(layer)
    return f"{layer.where}: {problem}" if problem else ""


def _producer(layer: Layer) -> Layer | None:
    return layer.connected_input(0).producer

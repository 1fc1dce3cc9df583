"""Rules on which operands of a layer are quantized."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation
from dryfit.network.layers.elementwise import Elementwise
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import Hit, NetworkView, lint_rule
from dryfit.quantization.lint.outputs import is_sum_of_data, weighted_before


@lint_rule(
    "qdq.weighted.inputs",
    text="All inputs of a weighted layer must be quantized: data and weights",
    remedy="Quantize the other input too, or keep the whole layer in floating point",
)
def weighted_inputs(view: NetworkView) -> Iterator[Hit]:
    """A weighted layer of which one operand is quantized, and another is not.

    Weights in four bits under data in real numbers are meant so: weight-only quantization.
    """
    for layer in view.weighted:
        weights, data = view.weights(layer), view.data(layer)
        real = [tensor for tensor in data if view.dequantized_by(tensor) is None]
        if view.has_real_weights(layer) and len(real) < len(data):
            yield layer, data[0], "the data is quantized, and the weights are floating point"
        for tensor in real:
            if weights is not None and _is_weight_only(weights.dequantize.inputs[0]):
                continue
            if weights is not None or len(real) < len(data):
                others = "the weights are" if weights is not None else "the other matrix is"
                yield layer, tensor, f"{others} quantized, and {tensor.name!r} is in floating point"


def _is_weight_only(codes: object) -> bool:
    return getattr(codes, "dtype", None) in (DataType.INT4, DataType.FP4)


@lint_rule(
    "qdq.weighted.unquantized",
    text="Weighted layers of a quantized network should be quantized",
    remedy="Quantize its data and its weights, unless accuracy requires floating point",
    severity="note",
)
def weighted_unquantized(view: NetworkView) -> Iterator[Hit]:
    """A weighted layer without any quantized operand, in a network that has quantized ones."""
    if not view.quantizes and not view.dequantizes:
        return
    for layer in view.weighted:
        data = view.data(layer)
        if data and view.weights(layer) is None and not any(view.dequantized_by(tensor) for tensor in data):
            yield layer, data[0], "neither its data nor its weights are quantized"


@lint_rule(
    "qdq.residual.unquantized",
    text="The residual operand of a sum that is fused with a weighted layer should be quantized",
    remedy="Put Q/DQ on this operand: where the weighted layer's input is the same tensor, its Q/DQ serves both",
)
def residual_unquantized(view: NetworkView) -> Iterator[Hit]:
    """A sum of a quantized layer's output and a tensor in real numbers.

    Where both operands come from weighted layers, the first of these is the residual: the other one is joined to the
    sum. In TensorRT the precision of the first operand decides whether what is joined gives integers.
    """
    for layer in view.network.layers:
        if not is_sum_of_data(layer):
            continue
        operands = layer.connected_inputs
        before = [weighted_before(tensor) for tensor in operands]
        joined = max((one.index for one in before if one is not None and view.is_quantized(one)), default=None)
        for number, (tensor, weighted) in enumerate(zip(operands, before, strict=True)):
            is_joined = weighted is not None and weighted.index == joined
            if joined is not None and not is_joined and view.dequantized_by(tensor) is None:
                yield layer, tensor, f"operand {number} is in floating point{_consequence(view, layer)}"


def _consequence(view: NetworkView, layer: Layer) -> str:
    """Which quantization stays apart for it."""
    result: Tensor = layer.outputs[0]
    while len(result.consumers) == 1 and isinstance(result.consumers[0][0], Activation):
        result = result.consumers[0][0].outputs[0]
    quantize = view.quantized_by(result)
    return "" if quantize is None else f", so that TensorRT may keep {quantize.name!r} behind the sum apart"


OPERATIONS = frozenset({"SUM", "SUB", "PROD", "MAX", "MIN"})
"""Operations on two tensors that are computed on integers."""


@lint_rule(
    "qdq.unweighted.one_sided",
    text="A quantized layer without weights must be quantized on both sides: all inputs and the output",
    remedy="Quantize the other side too, or neither",
)
def one_sided(view: NetworkView) -> Iterator[Hit]:
    """An average, a sum of two tensors or a linear resize with quantized inputs or a quantized output, and not both.

    A sum that is computed with a weighted layer is none of these.
    """
    for layer in view.network.layers:
        if not is_quantizable(layer) or not layer.outputs[0].dtype.is_floating_point:
            continue
        inputs = [tensor for tensor in layer.connected_inputs if tensor.dtype.is_floating_point]
        if any(weighted_before(tensor) is not None for tensor in inputs) and isinstance(layer, Elementwise):
            continue
        inputs = inputs if isinstance(layer, Elementwise) else inputs[:1]
        real = [tensor for tensor in inputs if view.dequantized_by(tensor) is None]
        output = layer.outputs[0]
        is_output_quantized = view.quantized_by(output) is not None
        if not real and not is_output_quantized:
            yield layer, output, "all inputs are quantized, and the output is not"
        elif real and len(real) < len(inputs):
            yield layer, real[0], f"{real[0].name!r} is in floating point, and the other input is quantized"
        elif real and is_output_quantized and is_average(layer):
            yield layer, real[0], "the output is quantized, and the input is not"


def is_quantizable(layer: Layer) -> bool:
    """Whether a layer without weights computes, and can do so on integers between dequantizations and quantizations."""
    if isinstance(layer, Elementwise):
        return layer.op.name in OPERATIONS
    return is_average(layer) or (isinstance(layer, Resize) and layer.resize_mode is not InterpolationMode.NEAREST)


def is_average(layer: Layer) -> bool:
    """Whether a layer averages."""
    if isinstance(layer, Pooling):
        return layer.pooling_type is PoolingType.AVERAGE
    return isinstance(layer, Reduce) and layer.op is ReduceOperation.AVG

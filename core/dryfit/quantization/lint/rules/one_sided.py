"""Layers without weights that are quantized on one side."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layer import Layer
from dryfit.network.layers.elementwise import Elementwise
from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.network.layers.reduce import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import weighted_before

OPERATIONS = frozenset({"SUM", "SUB", "PROD", "MAX", "MIN"})
"""Operations on two tensors that are computed on integers."""


@lint_rule(
    "qdq.unweighted.one_sided",
    text="A layer without weights that is quantized is quantized on both sides: all its inputs and its output",
    remedy="Quantize the other side too, or neither",
)
def one_sided(view: NetworkView) -> Iterator[Hit]:
    """An average, a sum of two tensors or a linear resize with quantized inputs or a quantized output, and not both.

    A sum that is computed with a weighted layer is none of these.
    """
    for layer in view.network.layers:
        if not is_quantizable(layer) or not layer.outputs[0].dtype.is_floating_point:
            continue
        inputs = [tensor for tensor in layer.inputs if tensor is not None and tensor.dtype.is_floating_point]
        if any(weighted_before(tensor) is not None for tensor in inputs) and isinstance(layer, Elementwise):
            continue
        inputs = inputs if isinstance(layer, Elementwise) else inputs[:1]
        real = [tensor for tensor in inputs if view.dequantized_by(tensor) is None]
        output = layer.outputs[0]
        is_output_quantized = view.quantized_by(output) is not None
        if not real and not is_output_quantized:
            yield layer, output, "all inputs are quantized, and the output is not"
        elif real and len(real) < len(inputs):
            yield layer, real[0], f"{real[0].name!r} arrives in real numbers, and the other input is quantized"
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

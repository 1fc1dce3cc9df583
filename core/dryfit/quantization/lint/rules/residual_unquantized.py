"""Residual operands in real numbers."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import is_sum_of_data, weighted_before


@lint_rule(
    "qdq.residual.unquantized",
    text="The residual operand of a sum that is computed with a weighted layer is quantized",
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
        operands = [tensor for tensor in layer.inputs if tensor is not None]
        before = [weighted_before(tensor) for tensor in operands]
        joined = max((one.index for one in before if one is not None and view.is_quantized(one)), default=None)
        for number, (tensor, weighted) in enumerate(zip(operands, before, strict=True)):
            is_joined = weighted is not None and weighted.index == joined
            if joined is not None and not is_joined and view.dequantized_by(tensor) is None:
                yield layer, tensor, f"operand {number} arrives in real numbers{_consequence(view, layer)}"


def _consequence(view: NetworkView, layer: Layer) -> str:
    """Which quantization stays apart for it."""
    result: Tensor = layer.outputs[0]
    while len(result.consumers) == 1 and isinstance(result.consumers[0][0], Activation):
        result = result.consumers[0][0].outputs[0]
    quantize = view.quantized_by(result)
    return "" if quantize is None else f", so that TensorRT may keep {quantize.name!r} behind the sum apart"

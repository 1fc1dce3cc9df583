"""Quantized operators: the method is the reference."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.reference.registry import Array, reference


@reference(QuantizedOperator)
def quantized_operator(layer: QuantizedOperator, inputs: Sequence[Array | None]) -> list[Array]:
    """What the method's definition says."""
    return layer.operator_method().evaluate(layer, inputs)

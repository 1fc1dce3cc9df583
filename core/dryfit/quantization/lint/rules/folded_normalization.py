"""Simulated folding of batch normalization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.scale import Scale
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import weighted_before

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-3
"""Relative difference up to which two factors are taken as the same one: they are computed in FP32 in two ways."""


@lint_rule(
    "qdq.normalization.folded",
    text="Training does not simulate that batch normalization is folded into weights",
    remedy="Train the quantized network with the normalization as it is: engines keep its place and its arithmetic",
)
def folded_normalization(view: NetworkView) -> Iterator[Hit]:
    """The trace that simulated folding leaves in an exported model: output / factor, then normalized by that factor.

    The weights are then quantized as weights * factor. A model whose normalization is folded for good before it is
    exported cannot be told from one that never had any, and is not found.
    """
    for layer in view.network.layers:
        source = layer.inputs[0] if isinstance(layer, Scale) else None
        before = None if source is None else source.producer
        if not isinstance(layer, Scale) or source is None or not isinstance(before, Elementwise) or layer.scale is None:
            continue
        divided, factor = _division(before)
        weighted = None if divided is None else weighted_before(divided)
        if divided is None or factor is None or weighted is None or view.weights(weighted) is None:
            continue
        scale = layer.scale.reshape(-1)
        if factor.size == scale.size and np.allclose(scale, factor, rtol=TOLERANCE, atol=0):
            yield layer, source, f"the output of {weighted.name!r} is divided by what {layer.name!r} multiplies with"


def _division(layer: Elementwise) -> tuple[Tensor | None, Array | None]:
    """(what is divided, by what constant), for a division or a product with a constant."""
    first, second = layer.inputs[:2]
    if first is not None and second is not None and second.is_constant and second.spec.value is not None:
        value = second.spec.value.astype(np.float64).reshape(-1)
        if layer.op is ElementWiseOperation.DIV:
            return first, value
        if layer.op is ElementWiseOperation.PROD and value.all():
            return first, 1 / value
    return None, None

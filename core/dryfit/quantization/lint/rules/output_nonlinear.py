"""Q/DQ between a weighted layer and a curved function."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import is_piecewise_linear, weighted_outputs

CURVED_KINDS = frozenset({"softmax", "unary", "normalization"})
"""Kinds beside activations whose results hang on differences that quantized inputs lose."""


@lint_rule(
    "qdq.output.nonlinear",
    text="The output of a weighted layer that a curved function follows, such as SiLU, stays in real numbers",
    remedy="Take away the Q/DQ between the two, and quantize the function's result where the next layer wants it",
)
def output_nonlinear(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and a sigmoid, softmax or the like."""
    for one in weighted_outputs(view):
        if one.reader is not None and is_curved(one.reader):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r} ({_function(one.reader)})"


def is_curved(layer: Layer) -> bool:
    """Whether a layer applies a function that is no straight line."""
    return layer.kind in CURVED_KINDS or (isinstance(layer, Activation) and not is_piecewise_linear(layer))


def _function(layer: Layer) -> str:
    return layer.activation_type.value if isinstance(layer, Activation) else layer.kind

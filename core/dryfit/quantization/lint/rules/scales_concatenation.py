"""Concatenations of unequal scales."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.network_view import NetworkView, have_equal_scales, moved_inputs, scale_text
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.scales.concatenation",
    text="The inputs of a concatenation have one scale, so that their codes are copied",
    remedy="Give all inputs the scale of the concatenation's output",
    source=f"{CHAPTER}, Q/DQ Limitations: rewrites compare scales, and are made where they are equal",
)
def scales_concatenation(view: NetworkView) -> Iterator[Hit]:
    """A concatenation of dequantized tensors whose scales are not all equal."""
    for layer in view.network.layers:
        if layer.kind != "concatenation":
            continue
        found = [(tensor, view.dequantized_by(tensor)) for tensor in moved_inputs(layer)]
        known = [(tensor, one) for tensor, one in found if one is not None]
        if len(known) < len(found) or not known:
            continue
        other = next((pair for pair in known if not have_equal_scales(pair[1], known[0][1])), None)
        if other is not None:
            first, second = (f"{tensor.name!r} {scale_text(one)}" for tensor, one in (known[0], other))
            yield layer, other[0], f"{first} and {second} differ"

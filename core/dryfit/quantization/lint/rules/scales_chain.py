"""Two scales with nothing computed between them."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.network_view import NetworkView, have_equal_scales, scale_text
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule


@lint_rule(
    "qdq.scales.chain",
    text="Values that are only moved keep their scale, so that their codes move",
    remedy="Quantize with the scale that the values were dequantized with",
    source=f"{CHAPTER}, Q/DQ Limitations: rewrites compare scales, and are made where they are equal",
)
def scales_chain(view: NetworkView) -> Iterator[Hit]:
    """Dequantized, at most moved, and quantized again by another scale: each such step rounds once more.

    What a concatenation of unequal scales gives is told by the rule on these.
    """
    for quantize in view.quantizes:
        tensor = quantize.inputs[0]
        dequantize = None if tensor is None else view.dequantized_by(tensor)
        if tensor is None or dequantize is None or view.has_mixed_scales(tensor):
            continue
        if not have_equal_scales(dequantize, quantize):
            scales = f"{scale_text(dequantize)} by {dequantize.name!r}, {scale_text(quantize)} by {quantize.name!r}"
            yield quantize, tensor, f"nothing is computed between two scales: {scales}"

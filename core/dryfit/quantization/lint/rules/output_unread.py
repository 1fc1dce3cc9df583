"""Outputs that are quantized for nobody."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import weighted_outputs


@lint_rule(
    "qdq.output.unread",
    text="The output of a weighted layer is quantized only where somebody computes with it in integers",
    remedy="Take away the Q/DQ, or give the caller what is quantized",
)
def output_unread(view: NetworkView) -> Iterator[Hit]:
    """A quantized output that is turned back into real numbers for the caller alone: it is only rounded."""
    told = set()
    for one in weighted_outputs(view):
        readers = [reader for reader, _ in one.quantize.outputs[0].consumers]
        is_for_caller = one.reader is None and not one.dequantize.outputs[0].consumers and len(readers) == 1
        if is_for_caller and one.quantize.name not in told:
            told.add(one.quantize.name)
            yield one.layer, one.tensor, "it is quantized, and dequantized for the caller at once"

"""Q/DQ between a weighted layer and its ReLU."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import is_piecewise_linear, weighted_outputs


@lint_rule(
    "qdq.output.activation",
    text="Nothing is quantized between a weighted layer and the ReLU or clip that is computed with it",
    remedy="Take away the Q/DQ between the two: it rounds once more, and may keep them from running as one",
)
def output_activation(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and its ReLU, which nobody else reads."""
    for one in weighted_outputs(view):
        if one.is_private and one.reader is not None and is_piecewise_linear(one.reader):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r}"

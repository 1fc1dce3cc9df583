"""Q/DQ between a weighted layer and its batch normalization."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layers.scale import Scale
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import weighted_outputs


@lint_rule(
    "qdq.output.normalization",
    text="Nothing is quantized between a weighted layer and its batch normalization",
    remedy="Take away the Q/DQ between the two: the normalization is computed with the layer, in their order",
)
def output_normalization(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ between a weighted layer and a batch normalization, which is a scale layer here."""
    for one in weighted_outputs(view):
        if isinstance(one.reader, Scale):
            yield one.layer, one.tensor, f"it is quantized before {one.reader.name!r}"

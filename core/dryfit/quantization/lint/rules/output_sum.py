"""Q/DQ that keep a weighted layer and the sum behind it apart."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.network.layer import Layer
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import Hit, lint_rule
from dryfit.quantization.lint.weighted_outputs import is_sum_of_data, weighted_before, weighted_outputs


@lint_rule(
    "qdq.output.sum",
    text="One operand of a sum comes from a weighted layer in real numbers, so that the two run as one",
    remedy="Take away the Q/DQ on this operand, and keep that of the other one, the residual",
)
def output_sum(view: NetworkView) -> Iterator[Hit]:
    """Q/DQ on every operand of a sum: the weighted layer and the sum are computed apart.

    Of several operands that come from weighted layers, that of the last one is told: the others are ready before it.
    """
    latest: dict[str, Hit] = {}
    for one in weighted_outputs(view):
        if one.reader is None or not one.is_private or not is_sum_of_data(one.reader) or _has_real_operand(one.reader):
            continue
        known = latest.get(one.reader.name)
        if known is None or known[0].index < one.layer.index:
            latest[one.reader.name] = (one.layer, one.tensor, f"it is quantized before the sum {one.reader.name!r}")
    yield from latest.values()


def _has_real_operand(layer: Layer) -> bool:
    return any(tensor is not None and weighted_before(tensor) is not None for tensor in layer.inputs)

"""Scales that are too large for their weights."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.quantization.lint.codes import real_codes
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule

USED_SHARE = 0.25
"""Share of the codes from which on a channel is told to use too few. Our choice: two bits are lost."""


@lint_rule(
    "qdq.weights.coarse",
    text="The scale of weights is so small that they use most of the codes that there are",
    remedy="Take the largest magnitude of each output channel, divided by the largest code, as its scale",
    source=f"{CHAPTER}, on discretization and truncation error; the threshold of {USED_SHARE:.0%} is our choice",
)
def weights_coarse(view: NetworkView) -> Iterator[Hit]:
    """Output channels whose largest weight is a small code, so that few different values are left."""
    for layer in view.weighted:
        weights = view.weights(layer)
        codes = None if weights is None else real_codes(weights)
        if weights is None or codes is None:
            continue
        used = codes.largest_by_scale() / codes.bounds[1]
        coarse = used[(used > 0) & (used < USED_SHARE)]
        if coarse.size:
            what = f"{coarse.size} of {used.size} scales are" if used.size > 1 else "the scale is"
            text = f"{what} so large that the largest weight is code {coarse.min() * codes.bounds[1]:.3g}"
            yield layer, weights.tensor, f"{text} of {codes.bounds[1]:g}"

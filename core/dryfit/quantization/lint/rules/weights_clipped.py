"""Scales that are too small for their weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dryfit.quantization.lint.codes import real_codes
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.quantization.lint.rule import CHAPTER, Hit, lint_rule

CLIPPED_SHARE = 0.001
"""Share of weights outside of what their type holds from which on it is told. Our choice: percentile calibration of
weights clips less."""


@lint_rule(
    "qdq.weights.clipped",
    text="The scale of weights is large enough for nearly all of them",
    remedy="Take a larger scale, or one scale an output channel",
    source=f"{CHAPTER}, on discretization and truncation error; the threshold of {CLIPPED_SHARE:.1%} is our choice",
)
def weights_clipped(view: NetworkView) -> Iterator[Hit]:
    """Weights in real numbers of which many become the largest code though they are larger."""
    for layer in view.weighted:
        weights = view.weights(layer)
        codes = None if weights is None else real_codes(weights)
        if weights is None or codes is None or weights.quantize is None:
            continue
        least, most = codes.bounds
        # What rounds to the last code is not clipped.
        is_clipped = (codes.values > most + 0.5) | (codes.values < least - 0.5)
        share = float(np.mean(is_clipped))
        if share >= CLIPPED_SHARE:
            largest = float(np.abs(codes.values).max()) / most
            text = f"{share:.2%} of the weights are clipped; the largest is {largest:.3g} times what the scale allows"
            yield layer, weights.tensor, text

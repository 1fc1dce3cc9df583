"""Reverse sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.errors import ExecutionError
from dryfit.network.layers.reverse_sequence import ReverseSequence
from dryfit.reference.registry import Array, reference


@reference(ReverseSequence)
def reverse_sequence(layer: ReverseSequence, inputs: Sequence[Array]) -> list[Array]:
    """Element `s` of a sequence of length n comes from `n - 1 - s`, where s < n."""
    x, lengths = inputs[0], inputs[1].astype(np.int64)
    longest = x.shape[layer.sequence_axis]
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= longest):
        raise ExecutionError(
            "A sequence length is out of range",
            where=f"layer {layer.name!r} ({layer.kind})",
            found=lengths.tolist()[:16],
            allowed=f"0 to {longest}",
        )
    steps = np.arange(longest)
    source = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # [batch, sequence]
    if layer.batch_axis > layer.sequence_axis:
        source = source.T
    shape = [extent if axis in (layer.batch_axis, layer.sequence_axis) else 1 for axis, extent in enumerate(x.shape)]
    return [np.take_along_axis(x, source.reshape(shape), axis=layer.sequence_axis)]

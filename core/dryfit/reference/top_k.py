"""Top-k by stable sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layers.top_k import TopK, TopKOperation
from dryfit.reference.registry import Array, compute_type, reference


@reference(TopK)
def top_k(layer: TopK, inputs: Sequence[Any]) -> list[Array]:
    """The k first elements in descending (MAX) or ascending (MIN) order, and their indices.

    Raises:
        NetworkError: k, where it is an input, is not between 0 and the extent of the axis.
    """
    x: Array = inputs[0]
    k = layer.k
    if len(inputs) > 1 and inputs[1] is not None:
        k = int(inputs[1].item())
    axis, extent = layer.axis, x.shape[layer.axis]
    if not 0 <= k <= extent:
        raise layer.problem("k is between 0 and the extent of the axis", found=k, allowed=f"0 to {extent}")
    keys = x.astype(compute_type(x.dtype), copy=False)
    if layer.op is TopKOperation.MIN:
        order = np.argsort(keys, axis=axis, kind="stable")
    elif k == 1:
        order = np.expand_dims(np.argmax(keys, axis=axis), axis)
    else:
        # Sorted from the back, so that turning the order round puts the lower of two equal elements first again.
        order = extent - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
    chosen = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, chosen, axis=axis), chosen.astype(layer.indices_type.numpy)]

"""Layers of transformers: attention, rotary position embedding, and the update of a cache.

They are computed in FP32 for narrower types and rounded once, at the end; the layers that a build puts in their places
round after each step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.attention import (
    Attention,
    AttentionNormalizationOp,
    CausalMaskKind,
    KVCacheMode,
    KVCacheUpdate,
    RotaryEmbedding,
)
from dryfit.network.tensor import Array
from dryfit.reference.indexing import from_start, grids
from dryfit.reference.precision import convert, limits, rounded, widened
from dryfit.reference.registry import reference


@reference(Attention)
def attention(layer: Attention, inputs: Sequence[Array | None]) -> list[Array]:
    """`norm(query @ transpose(key) + mask) @ value`, a group of query heads with each head of key and value."""
    query, key, value, mask, scale = [*inputs, None, None, None][:5]
    if query is None or key is None or value is None:
        raise layer.problem("Query, key and value must be connected", remedy="Connect inputs 0, 1 and 2")
    heads = query.shape[1]
    repeated = [np.repeat(widened(one), heads // max(one.shape[1], 1), axis=1) for one in (key, value)]
    scores = widened(query) @ repeated[0].swapaxes(2, 3)
    is_softmax = layer.norm_op is AttentionNormalizationOp.SOFTMAX
    hidden = scores.dtype.type(-np.inf if is_softmax else 0)
    if mask is not None:
        scores = np.where(mask, scores, hidden) if mask.dtype == np.bool_ else scores + widened(mask)
    if layer.causal:
        queries, keys = scores.shape[2:]
        first = keys - queries if layer.causal_kind is CausalMaskKind.LOWER_RIGHT else 0
        scores = np.where(np.tri(queries, keys, first, dtype=np.bool_), scores, hidden)
    if is_softmax and scores.size:
        scores = np.exp(scores - scores.max(axis=3, keepdims=True))
        scores = scores / scores.sum(axis=3, keepdims=True)
    if scale is not None:
        scores = _quantized(scores, scale, layer.normalization_quantize_to_type)
    return [rounded(scores @ repeated[1], query.dtype)]


def _quantized(values: Array, scale: Array, dtype: DataType) -> Array:
    """The values rounded to multiples of a scale that the type holds."""
    factor = scale.astype(values.dtype).reshape(())
    codes = values / factor
    codes = np.clip(np.rint(codes) if dtype.is_integer else codes, *limits(dtype))
    quantized: Array = convert(codes, dtype).astype(values.dtype) * factor
    return quantized


@reference(RotaryEmbedding)
def rotary_embedding(layer: RotaryEmbedding, inputs: Sequence[Array | None]) -> list[Array]:
    """Each pair times the matrix `[[cos, -sin], [sin, cos]]` of its position."""
    x, cos, sin, ids = [*inputs, None][:4]
    if x is None or cos is None or sin is None:
        raise layer.problem("Data, cosines and sines must be connected", remedy="Connect inputs 0, 1 and 2")
    if ids is not None:
        cos, sin = (one[from_start(layer, ids, one.shape[0])] for one in (cos, sin))
    cos, sin = (widened(one)[:, None] for one in (cos, sin))
    count = layer.rotated(x.shape)
    output = widened(x).copy()
    middle = count // 2
    halves = (slice(0, middle), slice(middle, count))
    if layer.interleaved:
        halves = (slice(0, count, 2), slice(1, count, 2))
    first, second = (widened(x)[..., half] for half in halves)
    output[..., halves[0]] = first * cos - second * sin
    output[..., halves[1]] = first * sin + second * cos
    return [rounded(output, x.dtype)]


@reference(KVCacheUpdate)
def kv_cache_update(layer: KVCacheUpdate, inputs: Sequence[Array]) -> list[Array]:
    """A copy of the cache with the update at the positions."""
    cache, update, indices = inputs
    capacity, axis = cache.shape[layer.axis], layer.axis
    starts = indices.astype(np.int64).reshape(-1, *[1] * (cache.ndim - 1))
    steps = np.arange(update.shape[axis]).reshape([-1 if one == axis else 1 for one in range(cache.ndim)])
    places = starts + steps
    if layer.cache_mode is KVCacheMode.CIRCULAR and capacity:
        places = places % capacity
    output = cache.copy()
    where = grids(update.shape, update.ndim)
    where[axis] = from_start(layer, places, capacity)
    output[tuple(where)] = update
    return [output]

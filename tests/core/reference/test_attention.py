"""The references of attention, rotary embedding and cache updates, held against ONNX Runtime and loops."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.attention import (
    Attention,
    AttentionNormalizationOp,
    CausalMaskKind,
    KVCacheMode,
    KVCacheUpdate,
    RotaryEmbedding,
)
from dryfit.network.layers.ragged_softmax import RaggedSoftmax
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


def _qkv(heads=4, group_heads=4, queries=3, keys=5, depth=8, columns=6):
    return (
        random_array((2, heads, queries, depth), seed=1),
        random_array((2, group_heads, keys, depth), seed=2),
        random_array((2, group_heads, keys, columns), seed=3),
    )


def _masks():
    random = np.random.default_rng(4)
    bits = random.random((2, 4, 3, 5)) > 0.4
    bits[..., 0] = True  # a query that sees nothing is another matter
    return {"none": None, "bool": bits, "shared": bits[:1, :1], "added": random_array((2, 1, 3, 5), seed=5)}


@pytest.mark.parametrize("mask", ["none", "bool", "shared", "added"])
@pytest.mark.parametrize("group_heads", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_agrees_with_onnx_runtime(mask, group_heads, causal):
    query, key, value = _qkv(group_heads=group_heads)
    added = _masks()[mask]
    layer = Attention(causal_kind=CausalMaskKind.UPPER_LEFT if causal else CausalMaskKind.NONE)
    (output,) = run(layer, query, key, value, *([] if added is None else [added]))
    (expected,) = onnx_runtime("Attention", [query, key, value, added], opset=23, is_causal=int(causal), scale=1.0)
    np.testing.assert_allclose(output, expected, rtol=2e-5, atol=1e-6)


def test_scores_are_not_scaled():
    query, key, value = _qkv()
    (plain,) = run(Attention(), query, key, value)
    (scaled,) = run(Attention(), query / np.float32(math.sqrt(8)), key, value)
    (expected,) = onnx_runtime("Attention", [query, key, value], opset=23)  # its default scale is 1 / sqrt(depth)
    np.testing.assert_allclose(scaled, expected, rtol=2e-5, atol=1e-6)
    assert np.abs(plain - expected).max() > 0.01


@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize("kind", [CausalMaskKind.UPPER_LEFT, CausalMaskKind.LOWER_RIGHT])
def test_a_causal_attention_sees_the_keys_of_its_kind(queries, keys, kind):
    query, key, value = _qkv(queries=queries, keys=keys)
    layer = Attention(causal_kind=kind, norm_op=AttentionNormalizationOp.NONE)
    (output,) = run(layer, query, key, value)
    expected = np.zeros_like(output)
    for i in range(queries):
        first_hidden = i + 1 + (keys - queries if kind is CausalMaskKind.LOWER_RIGHT else 0)
        for j in range(min(max(first_hidden, 0), keys)):
            score = (query[:, :, i] * key[:, :, j]).sum(-1, keepdims=True)
            expected[:, :, i] += score * value[:, :, j]
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "steps"), [(DataType.INT8, 127), (DataType.FP8, None)])
def test_normalized_scores_are_quantized(dtype, steps):
    query, key, _ = _qkv()
    value = np.broadcast_to(np.eye(5, dtype=np.float32), (2, 4, 5, 5))  # so that the output is the scores
    scale = np.array(1 / 127 if steps else 1 / 448, np.float32)
    (weights,) = run(Attention(), query, key, value)
    (output,) = run(Attention(normalization_quantize_to_type=dtype), query, key, value, None, scale)
    if steps:
        expected = np.rint(weights * steps) / steps
    else:
        expected = (weights / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale
    np.testing.assert_allclose(output, expected, atol=1e-6)
    assert np.abs(output - weights).max() > 1e-4


def test_fp16_is_rounded_once():
    inputs = [array.astype(np.float16) for array in _qkv()]
    (output,) = run(Attention(), *inputs)
    (exact,) = run(Attention(), *(array.astype(np.float32) for array in inputs))
    assert output.dtype == np.float16
    np.testing.assert_array_equal(output, exact.astype(np.float16))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("rotated", [0, 4])
def test_rotary_embedding_agrees_with_onnx_runtime(interleaved, with_positions, rotated):
    x = random_array((2, 3, 5, 8))
    angles = np.random.default_rng(1).uniform(-3, 3, ((10,) if with_positions else (2, 5)) + ((rotated or 8) // 2,))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    ids = np.random.default_rng(2).integers(0, 10, (2, 5)) if with_positions else None
    layer = RotaryEmbedding(interleaved=interleaved, rotary_embedding_dim=rotated)
    (output,) = run(layer, x, cos, sin, *([] if ids is None else [ids]), dynamic=False)
    heads = {"num_heads": 3} if rotated else {}
    (expected,) = onnx_runtime(
        "RotaryEmbedding",
        [x, cos, sin, ids],
        opset=23,
        interleaved=int(interleaved),
        rotary_embedding_dim=rotated,
        **heads,
    )
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_a_position_past_the_tables_is_refused():
    x, table = random_array((1, 1, 2, 4)), np.ones((3, 2), np.float32)
    with pytest.raises(ExecutionError, match="out of range") as caught:
        evaluate(RotaryEmbedding(name="rope"), [x, table, table, np.array([[0, 3]])])
    assert caught.value.found == 3


@pytest.mark.parametrize("mode", list(KVCacheMode))
@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_cache_is_updated_as_by_loops(mode, axis, dtype):
    cache = random_array((2, 6, 6, 6))
    shape = [2, 6, 6, 6]
    shape[axis] = 3
    update = random_array(tuple(shape), seed=1)
    indices = np.array([1, 3] if mode is KVCacheMode.LINEAR else [4, 5], dtype)
    (output,) = run(KVCacheUpdate(cache_mode=mode, axis=axis), cache, update, indices)
    expected = cache.copy()
    for sample in range(2):
        for step in range(3):
            place = np.take(expected[sample], 0, axis - 1)  # the shape of one step
            place[...] = np.take(update[sample], step, axis - 1)
            at = [slice(None)] * 3
            at[axis - 1] = (indices[sample] + step) % 6
            expected[sample][tuple(at)] = place
    np.testing.assert_array_equal(output, expected)
    assert not np.array_equal(output, cache)


def test_a_linear_cache_has_no_position_past_its_end():
    cache, update = np.zeros((1, 1, 4, 2), np.float32), np.ones((1, 1, 2, 2), np.float32)
    with pytest.raises(ExecutionError, match="An index is out of range") as caught:
        evaluate(KVCacheUpdate(name="cache"), [cache, update, np.array([3])])
    assert (caught.value.found, caught.value.allowed) == (4, "-4 to 3")


def test_a_ragged_softmax_ends_at_the_bounds():
    x = random_array((2, 3, 4))
    bounds = np.array([[[4], [1], [0]], [[2], [3], [4]]], np.int32)
    (output,) = run(RaggedSoftmax(), x, bounds)
    for place in np.ndindex(2, 3):
        count = int(bounds[place][0])
        weights = np.exp(x[place][:count].astype(np.float64))
        np.testing.assert_allclose(output[place][:count], weights / weights.sum(), rtol=1e-5)
        assert (output[place][count:] == 0).all()

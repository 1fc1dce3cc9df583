"""Shapes, settings and checks of attention, rotary embedding, cache updates, ragged softmax and assertions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.network.layers.inferring import assert_refused, indices, shape_of, spec

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.assertion import Assertion
from dryfit.network.layers.attention import (
    Attention,
    AttentionNormalizationOp,
    CausalMaskKind,
    KVCacheMode,
    KVCacheUpdate,
    RotaryEmbedding,
)
from dryfit.network.layers.ragged_softmax import RaggedSoftmax
from dryfit.network.network import Network

Q, K, V = spec(2, 4, 3, 8), spec(2, 2, 5, 8), spec(2, 2, 5, 6)


def _added():
    network = Network("net")
    query, key, value = (network.add_input(n, DataType.FLOAT, s.shape) for n, s in zip("qkv", (Q, K, V), strict=True))
    return network, network.add_attention(query, key, value, AttentionNormalizationOp.SOFTMAX, True)


def test_an_attention_has_tensorrts_names_and_defaults():
    layer = Attention()
    assert (layer.norm_op, layer.causal, layer.decomposable) == (AttentionNormalizationOp.SOFTMAX, False, False)
    assert (layer.mask, layer.normalization_quantize_scale) == (None, None)
    assert (layer.normalization_quantize_to_type, layer.metadata) == (DataType.FLOAT, "")
    assert {op.name: op.value for op in AttentionNormalizationOp} == {"NONE": 0, "SOFTMAX": 1}
    assert KVCacheMode.LINEAR.value == 0


def test_an_attention_is_connected_like_a_layer():
    network, layer = _added()
    assert (layer.type, layer.num_inputs, layer.num_outputs) == ("ATTENTION", 3, 1)
    assert layer.get_input(0) is network.tensor("q")
    assert layer.get_output(0).shape == (2, 4, 3, 6)
    mask = network.add_input("mask", DataType.BOOL, (1, 1, 3, 5))
    layer.mask = mask
    assert (layer.mask, layer.get_input(3), layer.num_inputs) == (mask, mask, 4)
    layer.set_input(0, network.add_input("longer", DataType.FLOAT, (2, 4, 7, 8)))
    with pytest.raises(NetworkError, match="mask must broadcast"):
        layer.get_output(0).shape  # noqa: B018  it is inferred when it is read
    layer.mask = None
    assert layer.get_output(0).shape == (2, 4, 7, 6)


def test_causal_keeps_a_kind_that_is_set():
    _, layer = _added()
    assert layer.causal_kind is CausalMaskKind.UPPER_LEFT
    layer.causal_kind = CausalMaskKind.LOWER_RIGHT
    layer.causal = True
    assert layer.causal_kind is CausalMaskKind.LOWER_RIGHT
    layer.causal = False
    assert layer.causal_kind is CausalMaskKind.NONE


def test_the_second_version_has_a_kind_of_mask():
    network, layer = _added()
    query, key, value = layer.inputs
    added = network.add_attention_v2(query, key, value, AttentionNormalizationOp.NONE, CausalMaskKind.LOWER_RIGHT)
    assert (added.norm_op, added.causal_kind) == (AttentionNormalizationOp.NONE, CausalMaskKind.LOWER_RIGHT)


def test_both_products_are_counted():
    network, layer = _added()
    assert layer.multiply_accumulates({tensor.name: tensor.spec for tensor in network.tensors}) == 2 * 4 * 3 * 5 * 14


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ((Q, K, V), (2, 4, 3, 6)),
        ((spec(-1, 4, -1, 8), spec(2, 4, -1, 8), spec(2, 4, 5, 6)), (2, 4, -1, 6)),
        ((spec(-1, -1, -1, -1),) * 3, (-1, -1, -1, -1)),
        ((Q, K, V, spec(1, 4, 1, 5)), (2, 4, 3, 6)),
    ],
)
def test_shapes_of_attentions(inputs, expected):
    assert shape_of(Attention(), *inputs) == expected


@pytest.mark.parametrize(
    ("inputs", "message", "facts"),
    [
        ((spec(2, 4, 3), K, V), "The query must have four axes", {"found": (2, 4, 3)}),
        ((spec(1, 4, 3, 8), K, V), "The batches of query and key", {"found": "1 and 2"}),
        ((Q, K, spec(2, 1, 5, 6)), "The heads of key and value", {"found": "2 and 1"}),
        ((Q, K, spec(2, 2, 4, 6)), "The sequences of key and value", {"found": "5 and 4"}),
        ((Q, spec(2, 2, 5, 7), V), "The depths of query and key", {"found": "8 and 7"}),
        ((spec(2, 3, 3, 8), K, V), "static multiple", {"found": "3 and 2"}),
        ((spec(2, -1, 3, 8), K, V), "static multiple", {"found": "-1 and 2"}),
        ((spec(2, 4, 3, -1), K, V), "the last axis of query and value must be static", {"found": "-1 and 6"}),
        ((spec(2, 4, 3, 8, dtype=DataType.HALF), K, V), "All inputs must have the same type", {}),
        ((*(spec(*s.shape, dtype=DataType.INT32) for s in (Q, K, V)),), "must be floating point", {"found": "INT32"}),
        ((Q, K, V, spec(1, 1, 3, 5, dtype=DataType.HALF)), "The mask has the wrong type", {"found": "FP16"}),
        ((Q, K, V, spec(3, 5)), "The mask must broadcast", {"allowed": (2, 4, 3, 5)}),
        ((Q, K, V, spec(1, 2, 3, 5)), "The mask must broadcast", {"found": (1, 2, 3, 5)}),
        ((Q, K, V, None, spec()), "must be set together", {"found": "FP32 with a scale"}),
    ],
)
def test_what_does_not_fit_is_refused_for_attention(inputs, message, facts):
    assert_refused(Attention(), inputs, message, **facts)


@pytest.mark.parametrize(
    ("to_type", "scale", "message"),
    [
        (DataType.INT8, None, "must be set together"),
        (DataType.INT4, spec(), "cannot be quantized to this type"),
        (DataType.FP8, spec(2), "must be a floating-point scalar"),
        (DataType.FP8, spec(dtype=DataType.INT32), "must be a floating-point scalar"),
    ],
)
def test_a_scale_belongs_to_a_type(to_type, scale, message):
    assert_refused(Attention(normalization_quantize_to_type=to_type), [Q, K, V, None, scale], message)


X, TABLE = spec(2, 3, 5, 8), spec(2, 5, 4)


@pytest.mark.parametrize(
    ("inputs", "parameters"),
    [
        ((X, TABLE, TABLE), {}),
        ((X, spec(2, 5, 2), spec(2, 5, 2)), {"rotary_embedding_dim": 4}),
        ((X, spec(9, 4), spec(9, 4), indices(2, 5)), {}),
        ((spec(-1, 3, -1, 8), spec(-1, -1, 4), spec(-1, -1, 4)), {"interleaved": True}),
    ],
)
def test_a_rotary_embedding_keeps_the_shape(inputs, parameters):
    assert shape_of(RotaryEmbedding(**parameters), *inputs) == inputs[0].shape


@pytest.mark.parametrize(
    ("inputs", "parameters", "message", "facts"),
    [
        ((spec(2, 3, 5, -1), TABLE, TABLE), {}, "the last one must be static", {"found": (2, 3, 5, -1)}),
        ((X, TABLE, TABLE), {"rotary_embedding_dim": 3}, "must be even", {"found": 3}),
        ((X, TABLE, TABLE), {"rotary_embedding_dim": 10}, "must be even", {"allowed": "2 to 8"}),
        ((X, spec(9, 4), spec(9, 4)), {}, "cosines and sines", {"found": (9, 4), "allowed": (2, 5, 4)}),
        ((X, TABLE, TABLE, indices(2, 5)), {}, "cosines and sines", {"allowed": (-1, 4)}),
        ((X, spec(9, 4), spec(9, 4), indices(2, 4)), {}, "position ids", {"allowed": (2, 5)}),
        ((X, spec(9, 4), spec(9, 4), spec(2, 5)), {}, "The position ids input has the wrong type", {}),
    ],
)
def test_what_does_not_fit_is_refused_for_rotary_embeddings(inputs, parameters, message, facts):
    assert_refused(RotaryEmbedding(**parameters), inputs, message, **facts)


def test_position_ids_can_be_connected_after_the_layer_is_added():
    network = Network("rope")
    x = network.add_input("x", DataType.FLOAT, X.shape)
    cos, sin = (network.add_input(name, DataType.FLOAT, (9, 4)) for name in ("cos", "sin"))
    layer = network.add_rotary_embedding(x, cos, sin, False, 0)
    layer.set_input(3, network.add_input("ids", DataType.INT64, (2, 5)))
    assert layer.get_output(0).shape == X.shape


@pytest.mark.parametrize(
    ("inputs", "axis", "message", "found"),
    [
        ((spec(2, 6, 4), spec(2, 1, 3), indices(2)), 1, "along axis 2", "4 and 3"),
        ((spec(2, 6, 4), spec(2, 7, 4), indices(2)), 1, "must not be longer than the cache", "7 positions"),
        ((spec(2, 6, 4), spec(2, 1, 4), indices(3)), 1, "number of positions and the batch", "3 and 2"),
        ((spec(2, 6, 4), spec(2, 1, 4), indices(2, 1)), 1, "one position per batch element", (2, 1)),
        ((spec(2, 6, 4), spec(2, 1, 4), indices(2)), 0, "must come after the batch", "(2, 6, 4) and (2, 1, 4), axis 0"),
        ((spec(2, 6, 4), spec(2, 1), indices(2)), 1, "the same rank", "(2, 6, 4) and (2, 1), axis 1"),
    ],
)
def test_what_does_not_fit_is_refused_for_cache_updates(inputs, axis, message, found):
    assert_refused(KVCacheUpdate(axis=axis), inputs, message, found=found)


def test_a_cache_update_keeps_the_shape_of_the_cache():
    assert shape_of(KVCacheUpdate(), spec(-1, 3, 6, 4), spec(2, 3, -1, 4), indices(-1)) == (-1, 3, 6, 4)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((spec(2, 3), indices(2, 3, 1)), "three axes"),
        ((spec(2, 3, 4), spec(2, 3, 1)), "wrong type"),
        ((spec(2, 3, 4), indices(2, 3, 4)), "one bound per sequence"),
        ((spec(2, 3, 4), indices(2, 2, 1)), "numbers of sequences"),
    ],
)
def test_what_does_not_fit_is_refused_for_ragged_softmax(inputs, message):
    assert_refused(RaggedSoftmax(), inputs, message)


def test_an_assertion_has_no_output_and_a_bool_condition():
    assert Assertion(message="m").infer_outputs([spec(3, dtype=DataType.BOOL)]) == []
    assert_refused(Assertion(message="m"), [spec(3)], "The condition must be BOOL", found="FP32")
    network = Network("net")
    layer = network.add_assertion(network.add_constant((), np.array(False)).get_output(0), "m")
    assert (layer.message, layer.num_outputs, layer.type) == ("m", 0, "ASSERTION")
    layer.message = "other"
    assert network.layer(layer.name).message == "other"

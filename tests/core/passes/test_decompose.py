"""Composite layers in builds: their parts compute the same, under the user's names, each on its own device."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.answers.check import check
from dryfit.builder.canonicalise import canonicalise
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.refit.refitter import Refitter
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError, NetworkError, UnknownNameError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.attention import AttentionNormalizationOp, CausalMaskKind, KVCacheMode
from dryfit.network.layers.boundaries import LoopOutput, TripLimit
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.network.weights_role import WeightsRole
from dryfit.passes.watched_tensors import watched
from dryfit.quantization.calibration_stream import IInt8MinMaxCalibrator
from dryfit.reference.executor import run_reference


def _floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _input(network, feeds, name, array, dynamic=()):
    """An input for an array, some of whose axes are dynamic."""
    feeds[name] = array
    shape = tuple(-1 if axis in dynamic else extent for axis, extent in enumerate(array.shape))
    return network.add_input(name, DataType.from_numpy(array.dtype), shape)


def _attention(group_heads=4, dynamic=(), queries=3, keys=5, dtype=np.float32):
    network, feeds = Network("attention"), {}
    query, key, value = (
        _input(network, feeds, name, _floats(2, heads, length, 8, seed=seed).astype(dtype), dynamic)
        for seed, (name, heads, length) in enumerate(
            (("q", 4, queries), ("k", group_heads, keys), ("v", group_heads, keys))
        )
    )
    layer = network.add_attention(query, key, value)
    return network, _named(layer, "attention"), feeds


def _named(layer, name):
    layer.network.rename_layer(layer, name)
    layer.network.rename_tensor(layer.get_output(0), f"{name}_out")
    layer.network.mark_output(layer.get_output(0))
    return layer


def _config(network, feeds, device=None):
    config = BuilderConfig()
    if device is not None:
        config.default_device_type = device
    profile = OptimizationProfile()
    for tensor in network.inputs:
        if -1 in tensor.shape:
            shape = feeds[tensor.name].shape
            ends = [tuple(s if e >= 0 else end(s) for e, s in zip(tensor.shape, shape, strict=True)) for end in _ENDS]
            profile.set_shape(tensor.name, *ends)
    if profile:
        config.add_optimization_profile(profile)
    return config


_ENDS = (lambda extent: 1, lambda extent: extent, lambda extent: 2 * extent)


def _outputs(network, feeds, config=None):
    engine = Builder().build_engine(network, config or _config(network, feeds))
    return Engine.load(engine.serialize()).create_execution_context(1).run(feeds)


def _assert_builds_as_the_reference(network, feeds, **tolerance):
    expected = run_reference(network, feeds)
    outputs = _outputs(network, feeds)
    assert list(outputs) == list(expected)
    for name, array in expected.items():
        assert outputs[name].dtype == array.dtype
        np.testing.assert_allclose(outputs[name], array, **(tolerance or {"rtol": 1e-5, "atol": 1e-6}))


@pytest.mark.parametrize("dynamic", [(), (0, 2)])
@pytest.mark.parametrize("group_heads", [4, 2, 1])
@pytest.mark.parametrize("kind", list(CausalMaskKind))
@pytest.mark.parametrize("norm_op", list(AttentionNormalizationOp))
def test_an_attention_is_built_as_its_reference(dynamic, group_heads, kind, norm_op):
    network, layer, feeds = _attention(group_heads, dynamic)
    layer.causal_kind, layer.norm_op = kind, norm_op
    _assert_builds_as_the_reference(network, feeds, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("group_heads", [4, 2])
@pytest.mark.parametrize("is_bool", [False, True])
def test_masks_are_applied(group_heads, is_bool):
    network, layer, feeds = _attention(group_heads)
    mask = _floats(2, 1, 3, 5, seed=9)
    mask = mask > -0.5 if is_bool else mask
    mask[..., 0] = True
    layer.mask = _input(network, feeds, "mask", mask)
    _assert_builds_as_the_reference(network, feeds)
    masked = run_reference(network, feeds)["attention_out"]
    layer.mask = None
    assert layer.num_inputs == 3
    assert np.abs(masked - run_reference(network, feeds)["attention_out"]).max() > 1e-3


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FP8])
def test_normalized_scores_are_quantized_in_a_build(dtype):
    network, layer, feeds = _attention()
    layer.normalization_quantize_to_type = dtype
    scale = np.array(1 / (127 if dtype is DataType.INT8 else 448), np.float32)
    layer.normalization_quantize_scale = network.add_constant((), scale).get_output(0)
    _assert_builds_as_the_reference(network, feeds)


def test_the_plain_layers_give_the_same_bits():
    network, _, feeds = _attention()
    plain, plain_feeds = Network("plain"), {}
    q, k, v = (_input(plain, plain_feeds, name, array) for name, array in feeds.items())
    scores = plain.add_matrix_multiply(q, MatrixOperation.NONE, k, MatrixOperation.TRANSPOSE)
    softmax = plain.add_softmax(scores.get_output(0))
    softmax.axes = 1 << 3
    product = plain.add_matrix_multiply(softmax.get_output(0), MatrixOperation.NONE, v, MatrixOperation.NONE)
    plain.mark_output(product.get_output(0))
    (expected,) = _outputs(plain, plain_feeds).values()
    np.testing.assert_array_equal(_outputs(network, feeds)["attention_out"], expected)


def test_half_precision_attentions_run():
    network, _, feeds = _attention(dtype=np.float16)
    _assert_builds_as_the_reference(network, feeds, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotated", [0, 4])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("dynamic", [(), (0, 2)])
def test_a_rotary_embedding_is_built_as_its_reference(interleaved, rotated, with_positions, dynamic):
    network, feeds = Network("rope"), {}
    x = _input(network, feeds, "x", _floats(2, 3, 5, 8), dynamic)
    shape = ((7,) if with_positions else (2, 5)) + ((rotated or 8) // 2,)
    axes = () if with_positions or not dynamic else (0, 1)
    cos, sin = (_input(network, feeds, name, _floats(*shape, seed=seed), axes) for seed, name in enumerate("cs", 1))
    layer = network.add_rotary_embedding(x, cos, sin, interleaved, rotated)
    if with_positions:
        ids = np.random.default_rng(3).integers(0, 7, (2, 5))
        layer.set_input(3, _input(network, feeds, "ids", ids, (0, 1) if dynamic else ()))
    _named(layer, "rope")
    _assert_builds_as_the_reference(network, feeds)


@pytest.mark.parametrize("mode", list(KVCacheMode))
@pytest.mark.parametrize("dynamic", [(), (0, 2)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_cache_update_is_built_as_its_reference(mode, dynamic, dtype):
    network, feeds = Network("cache"), {}
    cache = _input(network, feeds, "cache", _floats(2, 3, 6, 4), dynamic[:1])
    update = _input(network, feeds, "update", _floats(2, 3, 2, 4, seed=1), dynamic)
    start = [1, 4] if mode is KVCacheMode.LINEAR else [5, 3]
    indices = _input(network, feeds, "at", np.array(start, dtype), (0,) if dynamic else ())
    _named(network.add_kv_cache_update(cache, update, indices, mode), "updated")
    _assert_builds_as_the_reference(network, feeds, atol=0)


def test_a_cache_is_updated_in_place_with_its_array_as_the_output():
    network, feeds = Network("cache"), {}
    cache, update = (
        _input(network, feeds, "cache", _floats(1, 2, 4, 3)),
        _input(network, feeds, "u", _floats(1, 2, 1, 3)),
    )
    indices = _input(network, feeds, "at", np.array([2], np.int32))
    _named(network.add_kv_cache_update(cache, update, indices), "updated")
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    array = feeds["cache"].copy()
    context.run({**feeds, "cache": array}, out={"updated_out": array})
    np.testing.assert_array_equal(array[:, :, 2], feeds["u"][:, :, 0])
    np.testing.assert_array_equal(array[:, :, 3], feeds["cache"][:, :, 3])


def test_an_engine_says_which_input_an_output_updates():
    network, feeds = Network("cache"), {}
    cache, update = (
        _input(network, feeds, "cache", _floats(1, 2, 4, 3)),
        _input(network, feeds, "u", _floats(1, 2, 1, 3)),
    )
    indices = _input(network, feeds, "at", np.array([2], np.int32))
    _named(network.add_kv_cache_update(cache, update, indices), "updated")
    other = network.add_identity(cache).get_output(0)
    network.mark_output(other)
    _named(network.add_kv_cache_update(other, update, indices), "of_a_copy")
    engine = Engine.load(Builder().build_engine(network, BuilderConfig()).serialize())
    assert engine.get_aliased_input_tensor("updated_out") == "cache"
    assert [engine.get_aliased_input_tensor(name) for name in ("cache", other.name, "of_a_copy_out")] == [None] * 3
    with pytest.raises(UnknownNameError, match="no_tensor"):
        engine.get_aliased_input_tensor("no_tensor")


def test_a_position_past_the_cache_fails_the_run():
    network, feeds = Network("cache"), {}
    cache, update = (_input(network, feeds, name, _floats(1, 2, n, 3)) for name, n in (("cache", 4), ("update", 2)))
    indices = _input(network, feeds, "at", np.array([3], np.int32))
    _named(network.add_kv_cache_update(cache, update, indices), "updated")
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    with pytest.raises(ExecutionError, match="out of range"):
        context.run(feeds)


@pytest.mark.parametrize("dynamic", [(), (0, 2)])
def test_composite_layers_follow_one_another(dynamic):
    network, feeds = Network("decoder"), {}
    query, key, value = (
        _input(network, feeds, name, _floats(2, heads, 1, 8, seed=seed), dynamic)
        for seed, (name, heads) in enumerate((("q", 4), ("k", 2), ("v", 2)))
    )
    at = _input(network, feeds, "at", np.array([3, 5], np.int64), dynamic[:1])
    ids = network.add_shuffle(at)
    ids.reshape_dims = (-1, 1)
    angles = np.arange(6)[:, None] / np.arange(1, 5)
    tables = [network.add_constant((6, 4), f(angles).astype(np.float32)).get_output(0) for f in (np.cos, np.sin)]
    rotated = []
    for tensor in (query, key):
        layer = network.add_rotary_embedding(tensor, *tables)
        layer.set_input(3, ids.get_output(0))
        rotated.append(layer.get_output(0))
    caches = []
    for name, update in (("keys", rotated[1]), ("values", value)):
        cache = _input(network, feeds, name, _floats(2, 2, 6, 8, seed=7), dynamic[:1])
        caches.append(_named(network.add_kv_cache_update(cache, update, at), f"new_{name}").get_output(0))
    _named(network.add_attention(rotated[0], *caches), "attention")
    _assert_builds_as_the_reference(network, feeds)


@pytest.mark.parametrize("dynamic", [(), (0, 2)])
def test_a_ragged_softmax_is_built_as_its_reference(dynamic):
    network, feeds = Network("ragged"), {}
    x = _input(network, feeds, "x", _floats(2, 3, 5), dynamic)
    bounds = _input(network, feeds, "n", np.array([[[5], [0], [2]], [[1], [4], [3]]], np.int32), dynamic[:1])
    _named(network.add_ragged_softmax(x, bounds), "ragged")
    _assert_builds_as_the_reference(network, feeds)


# Names, devices and settings ------------------------------------------------------------------------------------------


def test_the_users_names_survive():
    network, layer, _ = _attention()
    layer.metadata, layer.onnx_nodes = "note", ("node",)
    work = canonicalise(network, BuilderConfig()).network
    assert [one.name for one in work.layers] == ["attention [scores]", "attention [softmax]", "attention"]
    assert work.outputs[0].name == "attention_out"
    assert {one.metadata for one in work.layers} == {"note"}
    assert {one.onnx_nodes for one in work.layers} == {("node",)}
    assert [one.kind for one in network.layers] == ["attention"]  # the user's network stays


def test_a_network_without_composite_layers_is_not_copied():
    network = Network("plain")
    network.mark_output(network.add_identity(network.add_input("x", DataType.FLOAT, (1,))).get_output(0))
    assert watched(network).network is network


def test_the_device_of_a_composite_layer_is_that_of_its_parts():
    network, layer, _ = _attention()
    config = BuilderConfig()
    config.default_device_type = DeviceType.GPU
    config.set_device_type(layer, DeviceType.CPU)
    assert {one.device for one in assess(network, config).layers} == {"CPU"}


def test_each_part_is_placed_by_its_own_rules():
    network, _, _ = _attention()
    config = BuilderConfig()
    config.default_device_type = DeviceType.DLA
    config.set_flag(BuilderFlag.FP16)
    config.allow_gpu_fallback(True)
    devices = {one.layer: one.device for one in assess(network, config).layers}
    assert devices.keys() == {"attention [scores]", "attention [softmax]", "attention"}
    assert devices["attention [softmax]"] == "DLA"


def test_the_precision_of_a_composite_layer_is_that_of_its_computing_parts():
    network, layer, _ = _attention()
    layer.causal_kind = CausalMaskKind.UPPER_LEFT
    layer.precision = DataType.HALF
    config = BuilderConfig()
    config.set_flag(BuilderFlag.FP16)
    config.set_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    precisions = {one.layer: one.precision for one in assess(network, config).layers}
    assert set(precisions.values()) == {DataType.HALF}
    assert "attention [causal scores]" in precisions


def test_a_device_tells_that_a_build_decomposes_the_layer():
    _, layer, _ = _attention()
    verdict = BuilderConfig().can_run_on(layer, DeviceType.DLA)
    assert not verdict
    assert "a build decomposes it into layers of other kinds" in str(verdict)


def test_a_network_with_composite_layers_is_saved():
    network, layer, feeds = _attention(2)
    layer.causal_kind, layer.decomposable = CausalMaskKind.LOWER_RIGHT, True
    copy = network_from_dict(*network_to_dict(network))
    assert str(copy) == str(network)
    np.testing.assert_array_equal(
        run_reference(copy, feeds)["attention_out"], run_reference(network, feeds)["attention_out"]
    )


def test_a_mask_of_fixed_size_names_the_layer_where_the_profile_is_dynamic():
    network, layer, feeds = _attention(dynamic=(2,))
    layer.mask = network.add_constant((1, 1, 3, 5), np.ones((1, 1, 3, 5), np.bool_)).get_output(0)
    with pytest.raises(ConfigError, match="attention"):
        Builder().build_engine(network, _config(network, feeds))


def _projected(flags=0, dtype=np.float32):
    """x[1, 6, 16] -> products with weights -> an attention with four heads."""
    network = Network("projected", flags)
    x = network.add_input("x", DataType.from_numpy(np.dtype(dtype)), (1, 6, 16))
    heads = []
    for seed, name in enumerate("qkv"):
        weights = network.add_constant((1, 16, 16), _floats(1, 16, 16, seed=seed).astype(dtype) / 4)
        network.rename_layer(weights, f"{name}_weights")
        product = network.add_matrix_multiply(x, MatrixOperation.NONE, weights.get_output(0), MatrixOperation.NONE)
        shuffle = network.add_shuffle(product.get_output(0))
        shuffle.reshape_dims, shuffle.second_transpose = (1, 6, 4, 4), (0, 2, 1, 3)
        heads.append(shuffle.get_output(0))
    _named(network.add_attention(*heads, causal=True), "attention")
    return network, {"x": _floats(1, 6, 16, seed=5).astype(dtype)}


def test_an_engine_with_an_attention_is_refitted():
    network, feeds = _projected()
    config = BuilderConfig()
    config.set_flag(BuilderFlag.REFIT)
    engine = Builder().build_engine(network, config)
    other = _floats(1, 16, 16, seed=9)
    refitter = Refitter(engine)
    refitter.set_weights("q_weights", WeightsRole.CONSTANT, other)
    assert refitter.refit_cuda_engine()
    before = run_reference(network, feeds)["attention_out"]
    network.layer("q_weights").weights = other
    expected = run_reference(network, feeds)["attention_out"]
    outputs = engine.create_execution_context(1).run(feeds)
    np.testing.assert_allclose(outputs["attention_out"], expected, rtol=1e-4, atol=1e-5)
    assert np.abs(expected - before).max() > 0.01


def test_strongly_typed_networks_keep_their_types():
    network, feeds = _projected(1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED, np.float16)
    engine = Builder().build_engine(network, BuilderConfig())
    assert {one.precision for one in engine.plan.layers} == {DataType.HALF}
    _assert_builds_as_the_reference(network, feeds, rtol=1e-2, atol=1e-2)


class _Once(IInt8MinMaxCalibrator):
    """Gives one sample."""

    def __init__(self, sample):
        super().__init__()
        self._left = [sample]

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        del names
        return [self._left.pop()] if self._left else None

    def read_calibration_cache(self):
        return None

    def write_calibration_cache(self, cache):
        del cache


def test_a_network_with_an_attention_and_an_assertion_is_calibrated():
    network, feeds = _projected()
    zero = network.add_constant((1, 1, 1), np.full((1, 1, 1), -100, np.float32)).get_output(0)
    condition = network.add_elementwise(network.tensor("x"), zero, ElementWiseOperation.GREATER).get_output(0)
    network.add_assertion(condition, "x must be greater than -100")
    config = BuilderConfig()
    config.set_flag(BuilderFlag.INT8)
    config.int8_calibrator = _Once(feeds["x"])
    context = Builder().build_engine(network, config).create_execution_context(1)
    expected = run_reference(network, feeds)["attention_out"]
    np.testing.assert_allclose(context.run(feeds)["attention_out"], expected, atol=0.1)
    with pytest.raises(ExecutionError, match="x must be greater than -100"):
        context.run({"x": feeds["x"] - 1000})


def test_the_result_of_a_composite_layer_can_be_a_debug_tensor():
    network, layer, feeds = _attention()
    network.unmark_output(layer.get_output(0))
    network.mark_output(network.add_activation(layer.get_output(0), ActivationType.RELU).get_output(0))
    network.mark_debug(layer.get_output(0))
    seen = {}
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    context.set_debug_listener(lambda name, array, dtype, shape: seen.update({name: array}))
    context.set_all_tensors_debug_state(True)
    (output,) = context.run(feeds).values()
    assert list(seen) == ["attention_out"]
    np.testing.assert_array_equal(output, np.maximum(seen["attention_out"], 0))


# Assertions -----------------------------------------------------------------------------------------------------------


def _asserting(shape=(2,)):
    network = Network("asserting")
    x = network.add_input("x", DataType.FLOAT, shape)
    zero = network.add_constant((1,) * len(shape), np.zeros((1,) * len(shape), np.float32)).get_output(0)
    is_positive = network.add_elementwise(x, zero, ElementWiseOperation.GREATER).get_output(0)
    network.rename_tensor(is_positive, "is_positive")
    layer = network.add_assertion(is_positive, "x must be positive")
    network.rename_layer(layer, "positive")
    network.mark_output(network.add_identity(x).get_output(0))
    network.rename_tensor(network.outputs[0], "y")
    return network


@pytest.mark.parametrize("is_loaded", [False, True])
def test_an_assertion_that_fails_names_layer_and_message(is_loaded):
    engine = Builder().build_engine(_asserting(), BuilderConfig())
    engine = Engine.load(engine.serialize()) if is_loaded else engine
    context = engine.create_execution_context(1)
    good = np.array([1, 2], np.float32)
    assert list(context.run({"x": good})) == ["y"]
    target = np.zeros(2, np.float32)
    with pytest.raises(ExecutionError, match="Assertion failed: x must be positive") as caught:
        context.run({"x": np.array([1, -1], np.float32)}, out={"y": target})
    assert caught.value.where == "layer 'positive' (assertion)"
    assert caught.value.found == "1 of 2 elements of 'is_positive' are false"
    assert not target.any()  # nothing is delivered
    np.testing.assert_array_equal(context.run({"x": good})["y"], good)


def test_the_condition_is_no_output_of_the_engine():
    engine = Builder().build_engine(_asserting(), BuilderConfig())
    assert [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)] == ["x", "y"]
    assert engine.plan.hidden_outputs == ["is_positive"]


def test_the_reference_checks_assertions():
    network = _asserting()
    assert list(run_reference(network, {"x": np.ones(2, np.float32)})) == ["y"]
    with pytest.raises(ExecutionError, match="x must be positive"):
        run_reference(network, {"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize("holds", [False, True])
def test_an_assertion_that_is_known_is_decided_by_the_build(holds):
    network = _asserting()
    condition = network.add_constant((), np.array(holds)).get_output(0)
    network.rename_layer(network.add_assertion(condition, "known"), "constant")
    if not holds:
        with pytest.raises(NetworkError, match="Assertion failed: known") as caught:
            Builder().build_engine(network, BuilderConfig())
        assert caught.value.where == "layer 'constant' (assertion)"
        return
    assert [one.layer for one in Builder().build_plan(network, BuilderConfig()).assertions] == ["positive"]


def test_an_assertion_about_shapes_is_decided_for_the_shapes_of_each_run():
    network, feeds = Network("shapes"), {}
    x = _input(network, feeds, "x", np.ones((4, 2), np.float32), (0,))
    batch = network.add_slice(network.add_shape(x).get_output(0), (0,), (1,), (1,)).get_output(0)
    two = network.add_constant((1,), np.array([2])).get_output(0)
    half = network.add_elementwise(batch, two, ElementWiseOperation.FLOOR_DIV).get_output(0)
    again = network.add_elementwise(half, two, ElementWiseOperation.PROD).get_output(0)
    even = network.add_elementwise(again, batch, ElementWiseOperation.EQUAL).get_output(0)
    network.add_assertion(even, "the batch must be even")
    network.mark_output(network.add_identity(x).get_output(0))
    context = Builder().build_engine(network, _config(network, feeds)).create_execution_context(1)
    context.run(np.ones((2, 2), np.float32))
    with pytest.raises(ExecutionError, match="the batch must be even"):
        context.run(np.ones((3, 2), np.float32))


def test_an_input_can_be_the_condition():
    network = _asserting()
    flag = network.add_input("flag", DataType.BOOL, ())
    network.add_assertion(flag, "flag")
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    context.run({"x": np.ones(2, np.float32), "flag": np.array(True)})
    with pytest.raises(ExecutionError, match="Assertion failed: flag"):
        context.run({"x": np.ones(2, np.float32), "flag": np.array(False)})


def test_check_places_a_network_with_an_assertion():
    assert {one.name for one in check(_asserting(), device="GPU").layers} == {
        one.name for one in canonicalise(_asserting(), BuilderConfig()).network.layers if one.kind != "constant"
    }


# Beside and inside loops and conditionals -----------------------------------------------------------------------------


def _conditional(condition=None):
    """flag ? attention of x with itself : x."""
    network, feeds = Network("conditional"), {}
    x = _input(network, feeds, "x", _floats(1, 2, 3, 4))
    if condition is None:
        flag = _input(network, feeds, "flag", np.array(True))
    else:
        flag = network.add_constant((), np.array(condition)).get_output(0)
    conditional = network.add_if_conditional()
    conditional.set_condition(flag)
    inside = conditional.add_input(x).get_output(0)
    attention = network.add_attention(inside, inside, inside)
    network.rename_layer(attention, "attention")
    _named(conditional.add_output(attention.get_output(0), inside), "chosen")
    return network, inside, feeds


def test_the_branch_of_a_known_condition_is_decomposed():
    network, _, feeds = _conditional(condition=True)
    kinds = {one.kind for one in assess(network, BuilderConfig()).layers}
    assert {"matrix_multiply", "softmax"} <= kinds
    assert "attention" not in kinds
    _assert_builds_as_the_reference(network, feeds)


@pytest.mark.parametrize("flag", [False, True])
def test_the_branch_of_an_unknown_condition_runs_by_the_reference(flag):
    network, _, feeds = _conditional()
    feeds["flag"] = np.array(flag)
    _assert_builds_as_the_reference(network, feeds)
    chosen = run_reference(network, feeds)["chosen_out"]
    assert np.array_equal(chosen, feeds["x"]) is not flag


def test_each_iteration_of_an_unrolled_loop_is_decomposed():
    network, feeds = Network("loop"), {}
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), np.array(2, np.int32)).get_output(0), TripLimit.COUNT)
    state = loop.add_recurrence(_input(network, feeds, "x", _floats(1, 2, 3, 4)))
    inside = state.get_output(0)
    state.set_input(1, network.add_attention(inside, inside, inside).get_output(0))
    _named(loop.add_loop_output(inside, LoopOutput.LAST_VALUE, 0), "last")
    assert [one.kind for one in assess(network, BuilderConfig()).layers].count("softmax") == 2
    _assert_builds_as_the_reference(network, feeds)


def test_an_assertion_beside_a_conditional_is_checked():
    network, _, feeds = _conditional()
    bound = network.add_constant((1,) * 4, np.full((1,) * 4, 100, np.float32)).get_output(0)
    is_small = network.add_elementwise(network.tensor("x"), bound, ElementWiseOperation.LESS).get_output(0)
    network.add_assertion(is_small, "x must be less than 100")
    context = Builder().build_engine(network, _config(network, feeds)).create_execution_context(1)
    context.run(feeds)
    with pytest.raises(ExecutionError, match="x must be less than 100"):
        context.run({**feeds, "x": feeds["x"] + 1000})


def test_an_assertion_inside_a_conditional_is_refused_and_not_ignored():
    network, inside, _ = _conditional()
    is_equal = network.add_elementwise(inside, inside, ElementWiseOperation.EQUAL).get_output(0)
    network.rename_layer(network.add_assertion(is_equal, "equal"), "inner")
    with pytest.raises(NetworkError, match="An assertion must not depend on a tensor inside conditional") as caught:
        Builder().build_engine(network, BuilderConfig())
    assert "inner" in str(caught.value)


def test_debug_tensors_are_beside_conditionals_and_not_inside():
    network, inside, feeds = _conditional()
    network.mark_debug(network.tensor("x"))
    network.mark_debug(network.tensor("chosen_out"))
    network.mark_unfused_tensors_as_debug_tensors()
    seen = []
    context = Builder().build_engine(network, BuilderConfig()).create_execution_context(1)
    context.set_debug_listener(lambda name, array, dtype, shape: seen.append(name))
    context.set_all_tensors_debug_state(True)
    context.unfused_tensors_debug_state = True
    context.run(feeds)
    assert seen == ["x", "chosen_out"]
    network.mark_debug(inside)
    with pytest.raises(NetworkError, match="is inside a loop or conditional"):
        Builder().build_engine(network, BuilderConfig())

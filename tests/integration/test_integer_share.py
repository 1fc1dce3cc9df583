"""How much of quantized networks is computed in integers: multiply-accumulates by kernel, as the inspector tells."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest
from tests.integration.quantized_networks import mobilenetv2, resnet50

import dryfit


def built(network, flags=()):
    config = dryfit.Builder().create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    config.default_device_type = dryfit.DeviceType.CPU
    config.builder_optimization_level = 0
    for tensor in network.inputs:
        if -1 in tensor.shape:
            profile = dryfit.Builder().create_optimization_profile()
            profile.set_shape(tensor.name, *[tuple(max(extent, 1) for extent in tensor.shape)] * 3)
            config.add_optimization_profile(profile)
    return dryfit.Builder().build_engine(network, config)


def feeds_for(engine):
    generator = np.random.default_rng(0)
    shapes = {tensor.name: [max(extent, 1) for extent in tensor.shape] for tensor in engine.plan.network.inputs}
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def layers_of(engine):
    return json.loads(engine.create_engine_inspector().get_engine_information("json"))["Layers"]


def shares(engine):
    """Kernel to its share of the multiply-accumulates, of those that have any."""
    found = collections.Counter()
    for layer in layers_of(engine):
        found[layer["TacticName"]] += layer["MultiplyAccumulates"]
    return {kernel: count / found.total() for kernel, count in found.items() if count}


def integer_share(engine):
    return sum(share for kernel, share in shares(engine).items() if kernel.startswith("cpu.integer_"))


@pytest.mark.parametrize("network", [resnet50, mobilenetv2])
def test_a_quantized_network_multiplies_in_integers_only(network):
    engine = built(network(share=1 / 8, extent=64))
    assert integer_share(engine) == 1.0
    others = {layer["TacticName"] for layer in layers_of(engine) if not layer["TacticName"].startswith("cpu.integer_")}
    # Maxima are taken of the codes as they are.
    assert {"cpu.quantization"} <= others <= {"cpu.quantization", "cpu.pooling"}
    assert len([layer for layer in layers_of(engine) if layer["TacticName"] == "cpu.quantization"]) == 1
    image = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    (result,) = engine.create_execution_context().run({"image": image}).values()
    assert np.isfinite(result).all()
    assert result.std() > 0


@pytest.mark.parametrize(("network", "millions"), [(resnet50, 4089), (mobilenetv2, 301)])
def test_the_whole_of_a_known_network_is_counted(network, millions):
    whole = built(network())
    total = sum(layer["MultiplyAccumulates"] for layer in layers_of(whole))
    assert round(total / 1e6) == millions
    assert integer_share(whole) >= 0.95


@pytest.mark.parametrize(
    "model",
    [
        "mnist_resnet_qat_qdq",
        "squeezenet1.1-int8-qdq-sym",
        "clothing_mobilenetv2_int8-qdq-sym",
        "mobilenetv2-int8-qdq-asym-tflite",
    ],
)
def test_a_quantized_model_multiplies_in_integers_only(model, shared_models):
    network = dryfit.Network(model)
    assert dryfit.OnnxParser(network).parse_from_file(shared_models / f"{model}.onnx")
    assert integer_share(built(network)) == 1.0


def test_a_model_with_zero_points_differs_from_onnx_runtime_as_its_own_kernels_do(shared_models):
    onnxruntime = pytest.importorskip("onnxruntime")
    path = shared_models / "mobilenetv2-int8-qdq-asym-tflite.onnx"
    network = dryfit.Network("asymmetric")
    dryfit.OnnxParser(network).parse_from_file(path)
    context = built(network).create_execution_context()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    layer_by_layer, fused = onnxruntime.InferenceSession(path, options), onnxruntime.InferenceSession(path)
    generator, ours, theirs = np.random.default_rng(0), [], []
    for _ in range(3):
        # Pixels of large patches: noise of single pixels would average out to no class at all.
        patches = generator.integers(0, 256, (1, 7, 7, 3)).astype(np.uint8)
        feeds = {"input": np.kron(patches, np.ones((1, 32, 32, 1), np.uint8))}
        (result,), (whole,) = context.run(feeds).values(), fused.run(None, feeds)
        (expected,) = layer_by_layer.run(None, feeds)
        ours.append(np.abs(result.astype(int) - expected))
        theirs.append(np.abs(whole.astype(int) - expected))
    assert np.sum(ours) <= 2 * np.sum(theirs) + 8
    assert np.max(ours) <= 16


@pytest.mark.parametrize(
    ("model", "ends_in_reals"), [("mnist_resnet_qat_qdq", True), ("squeezenet1.1-int8-qdq-sym", False)]
)
@pytest.mark.parametrize("flag", [dryfit.BuilderFlag.FP16, dryfit.BuilderFlag.BF16])
def test_a_narrower_type_for_the_rest_leaves_integers_and_results_alone(model, ends_in_reals, flag, shared_models):
    plain, narrow = (built(dryfit.network_from_onnx(shared_models / f"{model}.onnx"), flags) for flags in ((), (flag,)))
    assert integer_share(narrow) == 1.0
    feeds = feeds_for(plain)
    (expected,) = plain.create_execution_context().run(feeds).values()
    (result,) = narrow.create_execution_context().run(feeds).values()
    if ends_in_reals:
        # The codes are the same: what differs is the one rounding of the output.
        rounded = dryfit.DataType.HALF if flag is dryfit.BuilderFlag.FP16 else dryfit.DataType.BF16
        expected = expected.astype(rounded.numpy).astype(np.float32)
    assert np.array_equal(result, expected)


def test_a_layer_that_is_constrained_to_half_is_computed_in_integers_all_the_same(shared_models):
    path = shared_models / "mnist_resnet_qat_qdq.onnx"
    plain, constrained = dryfit.network_from_onnx(path), dryfit.network_from_onnx(path)
    for layer in constrained.layers:
        if layer.kind == "convolution":
            layer.precision = dryfit.DataType.HALF
    flags = dryfit.BuilderFlag.FP16, dryfit.BuilderFlag.OBEY_PRECISION_CONSTRAINTS
    engines = built(plain, flags[:1]), built(constrained, flags)
    assert [integer_share(engine) for engine in engines] == [1.0, 1.0]
    feeds = feeds_for(engines[0])
    (expected,), (result,) = (engine.create_execution_context().run(feeds).values() for engine in engines)
    assert np.array_equal(result, expected)

"""Networks between UINT8 quantizations, as ONNX Runtime's quantizer writes them by default: native integers here."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit

OFFSETS = {np.uint8: 0, np.int8: 128}
"""By how much the codes of a type are lower."""


def model(code_type):
    """A convolution, a maximum, a depthwise one and a sum, each result quantized, as a model's bytes."""
    generator, nodes, constants = np.random.default_rng(0), [], {}

    def quantized(x, name, scale, zero_point):
        constants[f"{name}_scale"] = np.array(scale, np.float32)
        constants[f"{name}_zero"] = np.array(zero_point - OFFSETS[code_type], code_type)
        numbers = [f"{name}_scale", f"{name}_zero"]
        nodes.append(helper.make_node("QuantizeLinear", [x, *numbers], [f"{name}_codes"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_codes", *numbers], [name]))
        return name

    def convolved(x, name, groups):
        constants[f"{name}_weights"] = generator.integers(-127, 128, (32, 32 // groups, 3, 3)).astype(np.int8)
        constants[f"{name}_scale_w"] = generator.uniform(0.002, 0.006, 32).astype(np.float32)
        constants[f"{name}_zero_w"] = np.zeros(32, np.int8)
        parts = [f"{name}_weights", f"{name}_scale_w", f"{name}_zero_w"]
        nodes.append(helper.make_node("DequantizeLinear", parts, [f"{name}_real"], axis=0))
        nodes.append(helper.make_node("Conv", [x, f"{name}_real"], [name], name, pads=[1] * 4, group=groups))
        return name

    x = quantized("x", "in", 0.03, 119)
    first = quantized(convolved(x, "first", 1), "first_q", 0.05, 0)
    nodes.append(helper.make_node("MaxPool", [first], ["pooled"], kernel_shape=[3, 3], pads=[1] * 4))
    pooled = quantized("pooled", "pooled_q", 0.05, 0)
    second = quantized(convolved(pooled, "second", 32), "second_q", 0.09, 131)
    nodes.append(helper.make_node("Add", [second, x], ["total"]))
    quantized("total", "y", 0.1, 144)
    shape = [1, 32, 9, 14]
    graph = helper.make_graph(
        nodes,
        "unsigned",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def built(code_type, flag=None):
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    if flag is not None:
        config.set_flag(flag)
    return dryfit.Builder().build_engine(dryfit.network_from_onnx(model(code_type)), config)


def output(engine, x):
    return engine.create_execution_context().run({"x": x})["y"]


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(5).standard_normal((1, 32, 9, 14)).astype(np.float32)


def test_unsigned_codes_run_by_the_kernels_of_signed_ones_and_give_the_same_bits(picture, tmp_path):
    unsigned, signed = built(np.uint8), built(np.int8)
    assert [one.kernel for one in unsigned.plan.operations] == [one.kernel for one in signed.plan.operations]
    # Which of the two convolves 3x3 depends on the processor; their bits are the same.
    assert {one.kernel.replace("winograd", "convolution") for one in unsigned.plan.operations} == {
        "cpu.quantization",
        "cpu.integer_convolution",
        "cpu.integer_pooling",
        "cpu.integer_depthwise_convolution",
    }
    expected = output(signed, picture)
    assert len(np.unique(expected)) > 100
    np.testing.assert_array_equal(output(unsigned, picture), expected)
    unsigned.save(tmp_path / "unsigned.engine")
    np.testing.assert_array_equal(output(dryfit.Engine.load(tmp_path / "unsigned.engine"), picture), expected)


def test_results_are_those_of_onnx_runtime_but_for_ties(picture):
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model(np.uint8), options, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": picture})
    difference = np.abs(output(built(np.uint8), picture) - expected)
    assert difference.max() <= 0.11
    assert (difference > 1e-6).mean() < 0.02


def test_a_refit_moves_codes_as_the_build_did(picture):
    engine = built(np.uint8, dryfit.BuilderFlag.REFIT)
    refitter, weights = dryfit.Refitter(engine), onnx.load_from_string(model(np.uint8)).graph.initializer
    kernel = next(numpy_helper.to_array(one) for one in weights if one.name == "first_weights")
    before = output(engine, picture)
    assert refitter.set_named_weights("first_weights", np.ascontiguousarray(kernel[::-1]))
    assert refitter.refit_cuda_engine()
    after = output(engine, picture)
    assert (after != before).mean() > 0.5
    assert refitter.set_named_weights("first_weights", kernel)
    refitter.refit_cuda_engine()
    np.testing.assert_array_equal(output(engine, picture), before)

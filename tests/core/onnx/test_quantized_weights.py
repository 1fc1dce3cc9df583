"""Weights of Gemm and MatMul that are quantized: stored so, or quantized in the graph; turned or not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.core.onnx.quantized_models import assert_close, dequantize, kinds, model_of, quantize, reference_of

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx

K, C = 5, 8
X = np.random.default_rng(0).standard_normal((3, C)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((K, C)).astype(np.float32)
"""`[outputs, inputs]`, as PyTorch has them."""
SCALES = {
    "tensor": np.asarray(0.02, np.float32),
    "channel": np.linspace(0.01, 0.03, K).astype(np.float32),
    "block": np.linspace(0.01, 0.03, K * 2).astype(np.float32).reshape(K, 2),
}
"""By granularity; blocks are 4 inputs of one output."""


def gemm(granularity: str, *, transposed: bool, is_stored: bool, node: str = "Gemm") -> Any:
    """`x @ weights.T` with quantized weights; `transposed` as PyTorch writes it, else as TensorFlow does."""
    axes = {"tensor": {}, "channel": {"axis": 0}, "block": {"axis": 1, "block_size": 4}}[granularity]
    weights, scale = WEIGHTS, SCALES[granularity]
    if not transposed:
        weights, scale = weights.T, scale.T
        axes |= {"axis": 1 - axes["axis"]} if axes else {}
    constants = {"s": scale, "z": np.zeros(scale.shape, np.int8), "b": np.linspace(-1, 1, K).astype(np.float32)}
    nodes = []
    if is_stored:
        spread = np.repeat(scale, 4, axis=axes["axis"]) if granularity == "block" else scale
        spread = spread[:, None] if granularity == "channel" and transposed else spread
        constants["q"] = np.clip(np.rint(weights / spread), -128, 127).astype(np.int8)
    else:
        constants["w"] = weights
        nodes = [quantize("w", "s", "q", "z", **axes)]
    nodes.append(dequantize("q", "s", "d", "z", **axes))
    if node == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "d", "b"], ["y"], "y", transB=int(transposed)))
    else:
        turned = [helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0])] if transposed else []
        nodes += [*turned, helper.make_node("MatMul", ["x", turned[0].output[0] if turned else "d"], ["y"], "y")]
        del constants["b"]
    return model_of(nodes, {"x": X}, constants)


def connected(network: Network) -> FullyConnected:
    (layer,) = (layer for layer in network if isinstance(layer, FullyConnected))
    return layer


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "quantized"])
@pytest.mark.parametrize("transposed", [True, False], ids=["PyTorch", "TensorFlow"])
@pytest.mark.parametrize("granularity", SCALES)
def test_gemm_is_fully_connected_with_one_scale_an_output(granularity: str, transposed: bool, is_stored: bool) -> None:
    model = gemm(granularity, transposed=transposed, is_stored=is_stored)
    assert_close(model, {"x": X})
    kernel = connected(network_from_onnx(model)).get_input(1)
    assert kernel.shape == (K, C)
    layers = [kernel.producer]
    if not is_stored:
        layers.append(kernel.producer.get_input(0).producer)
        assert isinstance(layers[1], Quantize)
    for layer, name in zip(layers, ("d", "q"), strict=False):
        assert isinstance(layer, Quantize | Dequantize)
        assert layer.onnx_nodes == (name,)
        assert layer.axis == {"tensor": -1, "channel": 0, "block": 1}[granularity]
        np.testing.assert_array_equal(layer.get_input(1).spec.value, SCALES[granularity])
    constant = layers[-1].get_input(0).producer
    assert constant.kind == "constant"
    assert constant.get_output(0).dtype.numpy == (np.int8 if is_stored else np.float32)


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "quantized"])
@pytest.mark.parametrize("transposed", [True, False], ids=["PyTorch", "TensorFlow"])
@pytest.mark.parametrize("granularity", SCALES)
def test_matmul_takes_quantized_weights_with_and_without_a_transpose(
    granularity: str, transposed: bool, is_stored: bool
) -> None:
    model = gemm(granularity, transposed=transposed, is_stored=is_stored, node="MatMul")
    assert_close(model, {"x": X})
    assert kinds(network_from_onnx(model)).count("shuffle") == transposed


def test_gemm_on_a_quantized_input_keeps_both_dequantizations_beside_it() -> None:
    model = gemm("channel", transposed=False, is_stored=False)
    nodes = [quantize("x", "sx", "qx", "zx"), dequantize("qx", "sx", "dx", "zx"), *model.graph.node]
    nodes[-1].input[0] = "dx"
    constants = {"sx": np.float32(0.03), "zx": np.int8(0)}
    more = model_of(nodes, {"x": X}, constants)
    more.graph.initializer.extend(model.graph.initializer)
    assert_close(more, {"x": X})
    assert [tensor.producer.kind for tensor in connected(network_from_onnx(more)).inputs] == ["dequantize"] * 2


def test_scales_that_are_dequantized_themselves_stay_so() -> None:
    """FP4 weights with FP8 scales and a scale of scales, as Model Optimizer stores them."""
    generator = np.random.default_rng(2)
    codes = generator.standard_normal((16, 32)).astype(ml_dtypes.float4_e2m1fn)
    scales = generator.uniform(10, 200, (16, 2)).astype(ml_dtypes.float8_e4m3fn)
    x = generator.standard_normal((3, 32)).astype(np.float32)
    nodes = [
        dequantize("scales", "global", "s"),
        dequantize("codes", "s", "w", axis=-1, block_size=16),
        helper.make_node("Gemm", ["x", "w"], ["y"], transB=1),
    ]
    constants = {"codes": codes, "scales": scales, "global": np.float32(0.001)}
    model = model_of(nodes, {"x": x}, constants, opset=23)
    wide = np.repeat(scales.astype(np.float32) * np.float32(0.001), 16, axis=1) * codes.astype(np.float32)
    np.testing.assert_allclose(reference_of(model, {"x": x})[0], x @ wide.T, rtol=1e-5, atol=1e-5)
    weights = connected(network_from_onnx(model)).get_input(1).producer
    assert weights.get_input(1).producer.kind == "dequantize"


def test_turned_weights_with_computed_scales_are_multiplied_as_a_matrix() -> None:
    generator = np.random.default_rng(2)
    codes = generator.standard_normal((32, 16)).astype(ml_dtypes.float4_e2m1fn)
    scales = generator.uniform(10, 200, (2, 16)).astype(ml_dtypes.float8_e4m3fn)
    x = generator.standard_normal((3, 32)).astype(np.float32)
    nodes = [
        dequantize("scales", "global", "s"),
        dequantize("codes", "s", "w", axis=0, block_size=16),
        helper.make_node("Gemm", ["x", "w"], ["y"]),
    ]
    model = model_of(nodes, {"x": x}, {"codes": codes, "scales": scales, "global": np.float32(0.001)}, opset=23)
    wide = np.repeat(scales.astype(np.float32) * np.float32(0.001), 16, axis=0) * codes.astype(np.float32)
    np.testing.assert_allclose(reference_of(model, {"x": x})[0], x @ wide, rtol=1e-5, atol=1e-5)
    assert "matrix_multiply" in kinds(network_from_onnx(model))


@pytest.mark.parametrize("transposed", [True, False])
def test_weights_of_fp16_models_are_dequantized_to_fp16(transposed: bool) -> None:
    codes = np.random.default_rng(3).integers(-127, 128, (K, C) if transposed else (C, K)).astype(np.int8)
    nodes = [
        dequantize("q", "s", "w", axis=0 if transposed else 1),
        helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(transposed)),
    ]
    constants = {"q": codes, "s": SCALES["channel"].astype(np.float16), "b": np.ones(K, np.float16)}
    model = model_of(nodes, {"x": X.astype(np.float16)}, constants)
    assert_close(model, {"x": X.astype(np.float16)})
    assert connected(network_from_onnx(model)).get_input(1).dtype.numpy == np.float16


@pytest.mark.parametrize("is_raw", [True, False], ids=["raw_data", "int32_data"])
def test_four_bit_weights_are_read_from_packed_initializers(is_raw: bool) -> None:
    codes = np.arange(K * C) % 16 - 8
    low, high = codes[::2] & 15, codes[1::2] & 15
    tensor = TensorProto(name="q", data_type=TensorProto.INT4, dims=(K, C))
    if is_raw:
        tensor.raw_data = (low | high << 4).astype(np.uint8).tobytes()
    else:
        tensor.int32_data.extend(int(byte) for byte in low | high << 4)
    nodes = [
        dequantize("q", "s", "w", axis=1, block_size=4),
        helper.make_node("Gemm", ["x", "w"], ["y"], transB=1),
    ]
    model = model_of(nodes, {"x": X}, {"s": np.linspace(0.1, 0.5, K * 2).astype(np.float32).reshape(K, 2)})
    model.graph.initializer.append(tensor)
    assert_close(model, {"x": X})
    constant = connected(network_from_onnx(model)).get_input(1).producer.get_input(0)
    assert constant.dtype is DataType.INT4
    np.testing.assert_array_equal(constant.spec.value.astype(int).reshape(-1), codes)

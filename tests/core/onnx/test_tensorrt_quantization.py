"""The `trt` domain's quantization, as Model Optimizer writes it, held against the same model in ONNX's own words."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.core.onnx.quantized_models import dequantize, model_of, quantize, reference_of, runtime_of

from dryfit.network.data_types import DataType
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ModelRefusedError

X = (np.random.default_rng(0).standard_normal((4, 64)) * 9).astype(np.float32)
FP8 = np.zeros((), ml_dtypes.float8_e4m3fn)


def trt(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, outputs[0], domain="trt", **attributes)


def fp8_bits(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(), (64,)])
def test_fp8_operators_are_onnxs_with_an_fp8_zero_point(dtype: Any, shape: tuple[int, ...]) -> None:
    x, scale = X.astype(dtype), np.full(shape, 0.0123, dtype)
    own = [trt("TRT_FP8QuantizeLinear", ["x", "s"], ["q"]), trt("TRT_FP8DequantizeLinear", ["q", "s"], ["y"])]
    standard = [quantize("x", "s", "q", "z"), dequantize("q", "s", "y", "z")]
    (output,) = reference_of(model_of(own, {"x": x}, {"s": scale}), {"x": x})
    zero = np.zeros(shape, FP8.dtype)
    (expected,) = runtime_of(model_of(standard, {"x": x}, {"s": scale, "z": zero}), {"x": x})
    assert output.dtype == dtype
    np.testing.assert_array_equal(output, expected)


def test_constants_may_hold_fp8_as_uint8() -> None:
    numbers = X[:2] / 4
    scale = np.float32(0.5)
    nodes = [trt("TRT_FP8DequantizeLinear", ["w", "s"], ["y"])]
    (output,) = reference_of(model_of(nodes, {}, {"w": fp8_bits(numbers), "s": scale}), {})
    np.testing.assert_array_equal(output, numbers.astype(FP8.dtype).astype(np.float32) * scale)


@pytest.mark.parametrize("states_blocks", [True, False])
def test_int4_operators_are_onnxs_with_int4(states_blocks: bool) -> None:
    scale = np.random.default_rng(1).uniform(0.5, 3, (2, 64)).astype(np.float32)
    blocks = {"axis": 0, "block_size": 2}
    stated = blocks if states_blocks else {}  # Model Optimizer once left them to the shapes
    zero = np.zeros(scale.shape, ml_dtypes.int4)
    own = [
        trt("TRT_INT4QuantizeLinear", ["x", "s", "z"], ["q"], **stated),
        trt("TRT_INT4DequantizeLinear", ["q", "s", "z"], ["y"], **stated),
    ]
    standard = [quantize("x", "s", "q", "z", **blocks), dequantize("q", "s", "y", "z", **blocks)]
    constants = {"s": scale, "z": zero}
    (output,) = reference_of(model_of(own, {"x": X}, constants), {"x": X})
    np.testing.assert_array_equal(output, runtime_of(model_of(standard, {"x": X}, constants), {"x": X})[0])


def test_onnxs_names_in_the_trt_domain_quantize_to_int8_by_themselves() -> None:
    own = [
        quantize("x", "s", "q", domain="trt"),
        dequantize("q", "s", "y", domain="trt"),
    ]
    standard = [quantize("x", "s", "q", "z"), dequantize("q", "s", "y", "z")]
    (output,) = reference_of(model_of(own, {"x": X}, {"s": np.float32(0.1)}), {"x": X})
    constants = {"s": np.float32(0.1), "z": np.int8(0)}
    np.testing.assert_array_equal(output, runtime_of(model_of(standard, {"x": X}, constants), {"x": X})[0])


def nvfp4(x: np.ndarray, global_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Codes and FP8 scales by the chapter's formulas, as FP32 numbers."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, 16)
    scales = np.abs(blocks).max(axis=-1) / (np.float32(6) * np.float32(global_scale))
    scales = np.minimum(scales, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    ratio = blocks / (scales * np.float32(global_scale))[..., None]
    return np.clip(ratio, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32).reshape(x.shape), scales


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_fp4_activations_come_back_through_two_dequantizations(dtype: Any) -> None:
    x, global_scale = X.astype(dtype), np.float32(np.abs(X).max() / 6 / 448)
    nodes = [
        trt(
            "TRT_FP4DynamicQuantize",
            ["x", "g"],
            ["q", "qs"],
            axis=-1,
            block_size=16,
            scale_type=TensorProto.FLOAT8E4M3FN,
        ),
        trt("DequantizeLinear", ["qs", "g"], ["s"]),
        trt("DequantizeLinear", ["q", "s"], ["y"], axis=-1, block_size=16),
    ]
    model = model_of(nodes, {"x": x}, {"g": global_scale}, ("q", "qs", "y"))
    codes, scales, output = reference_of(model, {"x": x})
    assert (codes.dtype, scales.dtype) == (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn)
    expected, expected_scales = nvfp4(x, global_scale)
    np.testing.assert_array_equal(codes.astype(np.float32), expected)
    np.testing.assert_array_equal(scales.astype(np.float32), expected_scales)
    np.testing.assert_array_equal(output, expected * np.repeat(expected_scales * global_scale, 16, axis=1))


def test_mxfp8_activations_come_back_by_powers_of_two() -> None:
    nodes = [
        trt(
            "TRT_MXFP8DynamicQuantize",
            ["x"],
            ["q", "s"],
            axis=-1,
            block_size=32,
            output_dtype=TensorProto.FLOAT8E4M3FN,
        ),
        trt(
            "TRT_MXFP8DequantizeLinear",
            ["q", "s"],
            ["y"],
            axis=-1,
            block_size=32,
            output_dtype=TensorProto.FLOAT16,
        ),
    ]
    codes, scales, output = reference_of(model_of(nodes, {"x": X}, {}, ("q", "s", "y")), {"x": X})
    largest = np.abs(X).reshape(4, 2, 32).max(axis=-1)
    powers = np.exp2(np.ceil(np.log2(largest / 448)))
    np.testing.assert_array_equal(scales.astype(np.float32), powers)
    spread = np.repeat(powers, 32, axis=1)
    np.testing.assert_array_equal(codes.astype(np.float32), (X / spread).astype(FP8.dtype).astype(np.float32))
    assert output.dtype == np.float16
    np.testing.assert_array_equal(output, (codes.astype(np.float32) * spread).astype(np.float16))


def test_mxfp8_weights_have_their_scales_as_uint8() -> None:
    powers = np.array([[120, 127], [130, 125]], np.uint8)
    numbers = X[:2] * 4
    nodes = [trt("TRT_MXFP8DequantizeLinear", ["w", "s"], ["y"], axis=-1, block_size=32)]
    for weights in (numbers.astype(FP8.dtype), fp8_bits(numbers)):
        (output,) = reference_of(model_of(nodes, {}, {"w": weights, "s": powers}), {})
        spread = np.repeat(np.exp2(powers.astype(np.float32) - 127), 32, axis=1)
        assert output.dtype == np.float32
        np.testing.assert_array_equal(output, numbers.astype(FP8.dtype).astype(np.float32) * spread)


def test_weights_are_quantized_to_mxfp8_by_stored_powers() -> None:
    powers = np.array([[120, 127], [130, 125], [127, 127], [128, 126]], np.uint8)
    nodes = [
        trt("TRT_MXFP8QuantizeLinear", ["x", "s"], ["q"], axis=1, block_size=32),
        trt("TRT_MXFP8DequantizeLinear", ["q", "s"], ["y"], axis=1, block_size=32),
    ]
    (output,) = reference_of(model_of(nodes, {"x": X}, {"s": powers}), {"x": X})
    spread = np.repeat(np.exp2(powers.astype(np.float32) - 127), 32, axis=1)
    codes = np.clip(X / spread, -448, 448).astype(FP8.dtype).astype(np.float32)
    np.testing.assert_array_equal(output, codes * spread)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "message"),
    [
        ("TRT_FP4DynamicQuantize", ["x", "s"], {"axis": -1, "block_size": 32}, "in blocks of 32"),
        (
            "TRT_FP4DynamicQuantize",
            ["x", "s"],
            {"axis": -1, "scale_type": TensorProto.FLOAT},
            "found FLOAT; allowed: FP8",
        ),
        ("TRT_FP4DynamicQuantize", ["x", "x"], {"axis": -1}, "The scale of the scales must be known"),
        ("TRT_FP4DynamicQuantize", ["x"], {"axis": -1}, "Required input 1 is missing"),
        ("TRT_FP4DynamicQuantize", ["x", "s"], {"axis": 0}, "multiple of the block size"),
        ("TRT_MXFP8DynamicQuantize", ["x"], {"block_size": 16}, "in blocks of 16"),
        ("TRT_MXFP8DynamicQuantize", ["x"], {"output_dtype": TensorProto.INT8}, "found INT8; allowed: FP8"),
    ],
)
def test_a_form_that_tensorrt_lacks_is_refused(
    operator: str, inputs: list[str], attributes: dict[str, Any], message: str
) -> None:
    model = model_of([trt(operator, inputs, ["y", "ys"], **attributes)], {"x": X}, {"s": np.float32(0.1)})
    with pytest.raises(ModelRefusedError, match=message):
        network_from_onnx(model)


def test_fp8_layers_are_a_devices_affair() -> None:
    nodes = [trt("TRT_FP8QuantizeLinear", ["x", "s"], ["q"]), trt("TRT_FP8DequantizeLinear", ["q", "s"], ["y"])]
    network = network_from_onnx(model_of(nodes, {"x": X}, {"s": np.float32(0.1)}))
    assert network.layer("q").to_type is DataType.FP8
    assert not any(layer.is_host_only for layer in network)

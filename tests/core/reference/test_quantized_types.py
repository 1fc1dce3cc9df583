"""Quantize and dequantize bit for bit as ONNX Runtime has them; FP4, which it lacks, as onnx's evaluator has it.

The values are ties, their neighbours, infinities, NaN, denormals and random ones, for each type, each granularity and
each type of data and scales. FP16 and BF16 are computed in FP32: their oracle is what comes out for the same numbers.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.reference.precision import limits
from dryfit.reference.registry import evaluate

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

Array = np.ndarray[Any, Any]

DEVICE_TYPES = {
    DataType.INT8: TensorProto.INT8,
    DataType.FP8: TensorProto.FLOAT8E4M3FN,
    DataType.INT4: TensorProto.INT4,
    DataType.FP4: TensorProto.FLOAT4E2M1,
}
HOST_TYPES = {
    DataType.UINT8: TensorProto.UINT8,
    DataType.INT16: TensorProto.INT16,
    DataType.UINT4: TensorProto.UINT4,
    DataType.FP8_E5M2: TensorProto.FLOAT8E5M2,
    DataType.INT2: TensorProto.INT2,
}
TYPES = DEVICE_TYPES | HOST_TYPES
SCALES = (1.0, 0.0371, 2.0**-5, 3.1)
HIGH_PRECISION = [np.float32, np.float16, ml_dtypes.bfloat16]
GRANULARITIES: list[tuple[int, int, tuple[int, ...]]] = [
    (0, 0, (16,)),
    (1, 0, (96,)),
    (0, 4, (4, 96)),
    (1, 32, (16, 3)),
]
"""(axis, block size or 0, shape of the scales) for data of (16, 96)."""


def values(dtype: DataType) -> Array:
    """FP32 values in units of a scale of 1: `float32[16, 96]`, with every tie of the type and its neighbours."""
    generator = np.random.default_rng(0)
    largest = float(limits(dtype)[1])
    if dtype.is_floating_point:
        codes = np.arange(2**dtype.bits, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
        steps = np.unique(codes[np.isfinite(codes)])
        ties = (steps[1:] + steps[:-1]) / 2
    else:
        ties = np.arange(-20, 20) + 0.5
    ties = np.concatenate([ties, [largest, -largest, largest * 1.03, largest + 0.5, -largest - 0.5, -largest - 1.5]])
    ties = ties.astype(np.float32)
    special = np.float32([np.inf, -np.inf, np.nan, 0, -0.0, 1e-45, -1e-45, 1e-40, 3e4, -3e4])
    near = [np.nextafter(ties, np.float32(bound)) for bound in (-np.inf, np.inf)]
    found = np.concatenate([special, ties, *near])
    random = generator.standard_normal(16 * 96) * np.exp2(generator.uniform(-4, 4, 16 * 96)) * largest / 8
    return np.concatenate([found, random.astype(np.float32)])[: 16 * 96].reshape(16, 96)


def one_node(operator: str, x: Array, scale: Array, number: int, **attributes: Any) -> onnx.ModelProto:
    """`x` quantized, and its codes as real numbers; or `x`, which is codes, dequantized."""
    if operator == "QuantizeLinear":
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=number, **attributes),
            helper.make_node("DequantizeLinear", ["q", "one"], ["y"]),
        ]
    else:
        nodes = [helper.make_node("DequantizeLinear", ["x", "s"], ["y"], **attributes)]
    constants = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(np.float32(1).reshape(()), "one")]
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    if operator == "DequantizeLinear":
        constants.append(numpy_helper.from_array(x, "x"))
        inputs = []
    outputs = [helper.make_empty_tensor_value_info("y")]
    opset = 23 if number == TensorProto.FLOAT4E2M1 else 25 if number == TensorProto.INT2 else 21
    graph = helper.make_graph(nodes, "one", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def oracle(operator: str, x: Array, scale: Array, number: int, **attributes: Any) -> Array:
    """What ONNX Runtime computes; for FP4 what onnx's evaluator does."""
    model = one_node(operator, x, scale, number, **attributes)
    feeds = {"x": x} if operator == "QuantizeLinear" else {}
    if number == TensorProto.FLOAT4E2M1:
        with np.errstate(all="ignore"):
            result: Array = ReferenceEvaluator(model).run(None, feeds)[0]
        return result
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def quantized(x: Array, scale: Array, dtype: DataType, axis: int = -1, block: tuple[int, ...] = ()) -> Array:
    """The reference's codes as FP32 numbers."""
    layer = Quantize(axis=axis, to_type=dtype, block_shape=block)
    with np.errstate(all="ignore"):
        return evaluate(layer, [x, scale])[0].astype(np.float32)


def assert_same(output: Array, expected: Array, message: str = "") -> None:
    """The same numbers, zeros with the same sign."""
    np.testing.assert_array_equal(output, expected, message)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(output)[numbers], np.signbit(expected)[numbers], f"signs, {message}")


def block_of(axis: int, size: int) -> tuple[int, ...]:
    return () if not size else (size, 1) if axis == 0 else (1, size)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_quantization_by_one_scale_is_onnx_runtimes(dtype: DataType) -> None:
    for number in SCALES:
        scale = np.float32(number).reshape(())
        x = values(dtype) * scale
        if dtype is DataType.INT2:
            x = np.clip(x, -1e6, 1e6)  # beyond 2**31 its conversion to an integer overflows
        assert_same(quantized(x, scale, dtype), oracle("QuantizeLinear", x, scale, TYPES[dtype]))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("axis", "size", "shape"), GRANULARITIES)
def test_quantization_by_axis_and_block_is_onnx_runtimes(
    dtype: DataType, axis: int, size: int, shape: tuple[int, ...]
) -> None:
    scale = np.exp2(np.random.default_rng(1).uniform(-6, 2, shape)).astype(np.float32)
    scale.reshape(-1)[::2] = 0.25
    x = np.nan_to_num(values(dtype), posinf=3e4, neginf=-3e4)
    attributes = {"axis": axis, **({"block_size": size} if size else {})}
    expected = oracle("QuantizeLinear", x, scale, TYPES[dtype], **attributes)
    assert_same(quantized(x, scale, dtype, axis, block_of(axis, size)), expected)


@pytest.mark.parametrize("dtype", DEVICE_TYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("scale_type", HIGH_PRECISION, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("data_type", HIGH_PRECISION, ids=lambda dtype: dtype.__name__)
def test_data_and_scales_of_16_bits_are_divided_in_fp32(dtype: DataType, scale_type: Any, data_type: Any) -> None:
    for number in (*SCALES, float(np.nextafter(scale_type(0), scale_type(1)))):
        scale = np.asarray(number, scale_type)
        with np.errstate(all="ignore"):
            x = (values(dtype) * scale.astype(np.float32)).astype(data_type)
        wide = x.astype(np.float32), scale.astype(np.float32)
        assert_same(quantized(x, scale, dtype), oracle("QuantizeLinear", *wide, DEVICE_TYPES[dtype]), f"scale {number}")


@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if dtype is not DataType.FP4], ids=lambda dtype: dtype.name)
def test_fp16_data_and_scales_are_quantized_as_onnx_runtime_does(dtype: DataType) -> None:
    for number in SCALES:
        scale = np.asarray(number, np.float16)
        # It saturates FP32 data only: FP16 infinities become the lowest integer there.
        x = np.clip(values(dtype) * number, -6e4, 6e4).astype(np.float16)
        assert_same(quantized(x, scale, dtype), oracle("QuantizeLinear", x, scale, TYPES[dtype]))


@pytest.mark.parametrize("dtype", DEVICE_TYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("number", SCALES)
def test_dequantization_of_every_code_is_onnx_runtimes(dtype: DataType, number: float) -> None:
    low, high = limits(dtype)
    codes = np.arange(2**dtype.bits, dtype=np.uint8)
    x = codes.view(dtype.numpy) if dtype.is_floating_point else np.arange(low, high + 1).astype(dtype.numpy)
    for target in (np.float32, np.float16):
        scale = np.asarray(number, target)
        if dtype is DataType.FP4 and target is np.float16:
            continue  # onnx's evaluator multiplies in FP16, and ONNX Runtime has no FP4
        output = evaluate(Dequantize(to_type=DataType.from_numpy(target)), [x, scale])[0]
        assert output.dtype == target
        assert_same(output, oracle("DequantizeLinear", x, scale, DEVICE_TYPES[dtype]))


@pytest.mark.parametrize("dtype", DEVICE_TYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("axis", "size", "shape"), GRANULARITIES)
def test_dequantization_by_axis_and_block_is_onnx_runtimes(
    dtype: DataType, axis: int, size: int, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(2).integers(-6, 7, (16, 96)).astype(np.float32).astype(dtype.numpy)
    scale = np.exp2(np.random.default_rng(1).uniform(-6, 2, shape)).astype(np.float32)
    attributes = {"axis": axis, **({"block_size": size} if size else {})}
    expected = oracle("DequantizeLinear", x, scale, DEVICE_TYPES[dtype], **attributes)
    layer = Dequantize(axis=axis, block_shape=block_of(axis, size))
    assert_same(evaluate(layer, [x, scale])[0], expected)


@pytest.mark.parametrize("dtype", DEVICE_TYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("target", [DataType.HALF, DataType.BF16], ids=lambda dtype: dtype.name)
def test_dequantized_16_bit_values_are_rounded_once(dtype: DataType, target: DataType) -> None:
    low, high = limits(dtype)
    codes = np.arange(2**dtype.bits, dtype=np.uint8)
    x = codes.view(dtype.numpy) if dtype.is_floating_point else np.arange(low, high + 1).astype(dtype.numpy)
    scales = np.exp2(np.random.default_rng(3).uniform(-8, 4, (50, 1))).astype(target.numpy)
    exact = x.astype(np.float64) * scales.astype(np.float64)
    output = evaluate(Dequantize(axis=0, to_type=target), [np.tile(x, (50, 1)), scales[:, 0]])[0]
    assert output.dtype == target.numpy
    np.testing.assert_array_equal(output.astype(np.float64), exact.astype(target.numpy).astype(np.float64))


def test_blocks_of_three_dimensional_data_are_onnx_runtimes() -> None:
    x, scale = np.random.default_rng(4).standard_normal((3, 8, 5)).astype(np.float32), np.full((3, 2, 5), 0.07)
    scale = (scale * np.arange(1, 31).reshape(3, 2, 5)).astype(np.float32)
    for dtype, number in DEVICE_TYPES.items():
        expected = oracle("QuantizeLinear", x, scale, number, axis=1, block_size=4)
        assert_same(quantized(x, scale, dtype, 1, (1, 4, 1)), expected)


def test_scales_that_are_powers_of_two_multiply_exactly() -> None:
    scale = np.array([1, 127, 140], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    x = np.array([[448, -1.75], [0.015625, 2], [-448, 3]], np.float32).astype(ml_dtypes.float8_e4m3fn)
    output = evaluate(Dequantize(axis=0), [x, scale])[0]
    np.testing.assert_array_equal(output, x.astype(np.float32) * np.exp2([[-126], [0], [13]]).astype(np.float32))
    back = evaluate(Quantize(axis=0, to_type=DataType.FP8), [output, scale])[0]
    np.testing.assert_array_equal(back.view(np.uint8), x.view(np.uint8))

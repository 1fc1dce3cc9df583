"""The references of quantize, dequantize and cast layers, held against ONNX Runtime, onnx.reference and arithmetic."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Cast, CastRounding, Dequantize, DynamicQuantize, Quantize
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

STANDARD = [
    np.float32,
    np.float16,
    np.float64,
    np.int8,
    np.uint8,
    np.int32,
    np.int64,
    np.int16,
    np.uint16,
    np.uint32,
    np.uint64,
    bool,
]


@pytest.mark.parametrize("source", STANDARD)
@pytest.mark.parametrize("target", STANDARD)
def test_values_in_range_agree_with_onnx_runtime(source, target):
    x = np.array([0, 1, 2, 3, 100, 127]).astype(source)
    if np.issubdtype(source, np.floating):
        x[2:4] = [1.5, 2.75]
    if source not in (bool, np.uint8, np.uint16, np.uint32, np.uint64) and target not in (
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
    ):
        x[4] = -100
    (expected,) = onnx_runtime("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(target)))
    (output,) = run(Cast(to_type=DataType.from_numpy(np.dtype(target))), x)
    assert output.dtype == expected.dtype
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("dtype", ["FP8", "FP8_E4M3FNUZ", "FP8_E5M2", "FP8_E5M2FNUZ", "BF16"])
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("source", [np.float32, np.float16])
def test_every_code_and_every_midpoint_of_a_narrow_type_agrees_with_onnx_runtime(dtype, saturate, source):
    target = DataType[dtype]
    codes = (
        np.arange(256 if target.bits == 8 else 65536).astype(f"uint{target.bits}").view(target.numpy).astype(np.float32)
    )
    finite = np.unique(codes[np.isfinite(codes)])
    with np.errstate(over="ignore"):
        x = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, [1e9, -1e9, np.inf, -np.inf, np.nan]]).astype(
            source
        )
    number = helper.np_dtype_to_tensor_dtype(target.numpy)
    graph_attributes = {"to": number} | ({"saturate": int(saturate)} if target.bits == 8 else {})
    # ONNX Runtime gives narrow types as raw bytes to nobody: a second node makes them floats again.
    expected = _through_onnx_runtime(x, graph_attributes)
    output = run(Cast(to_type=target, saturate=saturate), x)[0].astype(np.float32)
    np.testing.assert_array_equal(output, expected)


def _through_onnx_runtime(x, attributes):
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["n"], **attributes),
            helper.make_node("Cast", ["n"], ["y"], to=onnx.TensorProto.FLOAT),
        ],
        "cast",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    # The optimizer would take the two casts for one that does nothing.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        (DataType.INT32, [3e9, -3e9, np.nan, np.inf], [2**31 - 1, -(2**31), 0, 2**31 - 1]),
        (DataType.INT64, [1e20, -1e20, np.nan], [2**63 - 1, -(2**63), 0]),
        (DataType.UINT64, [1e20, -1.0, 2.0**63], [2**64 - 1, 0, 2**63]),
        (DataType.UINT32, [5e9, -1.0], [2**32 - 1, 0]),
        (DataType.INT8, [300.0, -129.0, 127.9], [44, 127, 127]),
        (DataType.UINT8, [-1.0, 256.0, 255.9], [255, 0, 255]),
    ],
)
def test_what_onnx_leaves_open_is_the_same_everywhere(target, values, expected):
    output = evaluate(Cast(to_type=target), [np.array(values, np.float64)])[0]
    assert output.tolist() == expected


@pytest.mark.parametrize("target", [DataType.INT4, DataType.UINT4, DataType.INT2, DataType.UINT2])
def test_integers_keep_their_low_bits(target):
    x = np.arange(-300, 300)
    output = evaluate(Cast(to_type=target), [x])[0].astype(np.int64)
    np.testing.assert_array_equal(output % 2**target.bits, x % 2**target.bits)
    low = -(2 ** (target.bits - 1)) if target.name.startswith("INT") else 0
    assert output.min() == low
    assert output.max() == low + 2**target.bits - 1


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        (CastRounding.UP, [2.0**-127, 1, 2, 2, 2, 4, 2.0**127]),
        (CastRounding.DOWN, [2.0**-127, 1, 1, 1, 1, 2, 2.0**127]),
        (CastRounding.NEAREST, [2.0**-127, 1, 1, 2, 2, 4, 2.0**127]),
    ],
)
def test_powers_of_two_are_rounded_as_asked(rounding, expected):
    x = np.array([0, 1, 1.25, 1.5, 1.75, 3, np.inf], np.float32)
    output = evaluate(Cast(to_type=DataType.E8M0, e8m0_rounding=rounding), [x])[0]
    np.testing.assert_array_equal(output.astype(np.float32), expected)
    negative = evaluate(Cast(to_type=DataType.E8M0), [np.array([-1, np.nan], np.float32)])[0]
    assert np.isnan(negative.astype(np.float32)).all()


def test_a_bool_is_one_or_zero_in_every_type():
    for target in DataType:
        output = evaluate(Cast(to_type=target), [np.array([True, False])])[0]
        assert output.dtype == target.numpy
        expected = [1, 2.0**-127 if target is DataType.E8M0 else 0]
        np.testing.assert_array_equal(output.astype(np.float64), expected)


def test_the_same_type_is_no_copy():
    x = np.ones(3, ml_dtypes.bfloat16)
    assert evaluate(Cast(to_type=DataType.BF16), [x])[0] is x


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("source", [np.float32, np.float16])
@pytest.mark.parametrize("zero_point", [0, 7, 100])
def test_per_tensor_agrees_with_onnx_runtime_for_quantize(dtype, source, zero_point):
    x = np.concatenate([random_array((1000,)) * 200, np.arange(-40, 40) / 8]).astype(source)
    scale, zero = np.asarray(0.25, source), np.asarray(zero_point, dtype)
    (expected,) = onnx_runtime("QuantizeLinear", [x, scale, zero])
    (output,) = run(Quantize(to_type=DataType.from_numpy(np.dtype(dtype))), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis_agrees_with_onnx_runtime_for_quantize(axis):
    x = random_array((3, 4, 5)) * 30
    scale = np.abs(random_array((x.shape[axis],), seed=1)) + np.float32(0.1)
    zero = np.arange(x.shape[axis], dtype=np.int8)
    (expected,) = onnx_runtime("QuantizeLinear", [x, scale, zero], axis=axis)
    (output,) = run(Quantize(axis=axis), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(("extent", "block"), [(6, 3), (7, 3), (5, 5)])
def test_blocks_agree_with_onnx_runtime_for_quantize(extent, block):
    x = random_array((2, extent, 3)) * 30
    scale = np.abs(random_array((2, -(-extent // block), 3), seed=1)) + np.float32(0.1)
    (expected,) = onnx_runtime("QuantizeLinear", [x, scale, np.zeros(scale.shape, np.int8)], axis=1, block_size=block)
    (output,) = run(Quantize(block_shape=(1, block, 1)), x, scale)
    np.testing.assert_array_equal(output, expected)
    if extent % block == 0:
        np.testing.assert_array_equal(run(Quantize(), x, scale)[0], expected)


@pytest.mark.parametrize("target", [DataType.FP8, DataType.FP8_E5M2, DataType.FP4, DataType.INT4, DataType.UINT4])
def test_narrow_types_agree_with_the_onnx_reference(target):
    x = np.concatenate([random_array((500,)) * 3, random_array((500,)) * 400])
    scale = np.float32(0.5)
    node = helper.make_node(
        "QuantizeLinear", ["x", "s"], ["y"], output_dtype=helper.np_dtype_to_tensor_dtype(target.numpy)
    )
    expected = ReferenceEvaluator(node).run(None, {"x": x, "s": np.asarray(scale)})[0]
    (output,) = run(Quantize(to_type=target), x, np.asarray(scale))
    np.testing.assert_array_equal(output.astype(np.float32), np.asarray(expected).astype(np.float32))


def test_ties_go_to_the_even_number_before_the_zero_point_is_added():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    (output,) = run(Quantize(), x, np.float32(1), np.int8(1))
    assert output.tolist() == [1, 3, 3, 1, -1]


def test_what_is_out_of_range_saturates_and_nan_is_the_lowest_number():
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 3e38], np.float32)
    assert evaluate(Quantize(), [x, np.float32(0.1)])[0].tolist() == [127, -128, 127, -128, -128, 127]
    (fp8,) = run(Quantize(to_type=DataType.FP8), x, np.float32(0.1))
    np.testing.assert_array_equal(fp8.astype(np.float32), [448, -448, 448, -448, np.nan, 448])


@given(st.floats(2.0**-10, 2.0**10, width=32), st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=20))
def test_a_value_in_range_comes_back_within_half_a_step(scale, values):
    x = np.array(values, np.float32)
    q = evaluate(Quantize(), [x, np.float32(scale)])[0].astype(np.float64)
    inside = np.abs(x) <= 127 * scale
    assert (np.abs(q * scale - x)[inside] <= scale * (0.5 + 1e-5)).all()
    assert (np.abs(q)[~inside] >= 127).all()


def test_bfloat16_is_divided_in_single_precision():
    x = np.array([1.0, 3.0], ml_dtypes.bfloat16)
    output = evaluate(Quantize(), [x, np.float32(1 / 3)])[0]
    assert output.tolist() == [3, 9]


def test_a_zero_point_counts_for_floating_point_outputs_too():
    x, zero = np.array([1.0, 2.0], np.float32), np.asarray(3, ml_dtypes.float8_e4m3fn)
    (output,) = run(Quantize(to_type=DataType.FP8), x, np.asarray(0.5, np.float32), zero)
    assert output.astype(np.float32).tolist() == [5, 7]


def test_a_zero_point_of_0_keeps_the_sign_of_zeros():
    x, zero = np.array([-0.0, 0.0], np.float32), np.asarray(0, ml_dtypes.float8_e4m3fn)
    (output,) = run(Quantize(to_type=DataType.FP8), x, np.asarray(0.5, np.float32), zero)
    assert output.view(np.uint8).tolist() == [0x80, 0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32])
@pytest.mark.parametrize("target", [np.float32, np.float16])
def test_per_tensor_agrees_with_onnx_runtime_for_dequantize(dtype, target):
    limits = np.iinfo(dtype)
    x = np.linspace(limits.min, limits.max, 1000).astype(dtype)
    scale = np.asarray(0.0003, target)
    zero = None if dtype is np.int32 else np.asarray(7, dtype)
    (expected,) = onnx_runtime("DequantizeLinear", [x, scale, zero])
    output = evaluate(Dequantize(to_type=DataType.from_numpy(np.dtype(target))), [x, scale, zero])[0]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis_agrees_with_onnx_runtime_for_dequantize(axis):
    x = random_array((3, 4, 5), np.int8)
    scale = np.abs(random_array((x.shape[axis],), seed=1))
    zero = np.arange(x.shape[axis], dtype=np.int8)
    (expected,) = onnx_runtime("DequantizeLinear", [x, scale, zero], axis=axis)
    (output,) = run(Dequantize(axis=axis), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(("extent", "block"), [(6, 3), (7, 3)])
def test_blocks_agree_with_onnx_runtime_for_dequantize(extent, block):
    x = random_array((2, extent, 3), np.int8)
    scale = np.abs(random_array((2, -(-extent // block), 3), seed=1))
    (expected,) = onnx_runtime("DequantizeLinear", [x, scale], axis=1, block_size=block)
    (output,) = run(Dequantize(block_shape=(1, block, 1)), x, scale)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("source", [DataType.FP8, DataType.FP8_E5M2, DataType.FP4, DataType.INT4, DataType.UINT4])
def test_every_code_of_a_narrow_type_agrees_with_the_onnx_reference(source):
    codes = np.arange(2**source.bits, dtype=np.uint8)
    if source is DataType.INT4:
        x = (codes.astype(np.int8) - 8).astype(source.numpy)
    elif source is DataType.UINT4:
        x = codes.astype(source.numpy)
    else:
        x = codes.view(source.numpy)
    scale = np.asarray(0.3, np.float32)
    expected = ReferenceEvaluator(helper.make_node("DequantizeLinear", ["x", "s"], ["y"])).run(
        None, {"x": x, "s": scale}
    )[0]
    np.testing.assert_array_equal(run(Dequantize(), x, scale)[0], expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_fp4_scales_are_the_blocks_maximum_over_six_as_fp8(axis):
    x, outer = random_array((32, 48)) * 5, np.float32(0.01)
    data, scales = run(DynamicQuantize(axis=axis, block_size=16), x, outer)
    blocks = x.reshape(2, 16, 48) if axis == 0 else x.reshape(32, 3, 16)
    expected = (np.abs(blocks).max(axis=axis if axis == 0 else 2) if axis else np.abs(blocks).max(axis=1)) / (6 * outer)
    np.testing.assert_array_equal(scales, expected.astype(ml_dtypes.float8_e4m3fn))
    assert data.dtype == ml_dtypes.float4_e2m1fn
    wide = evaluate(Dequantize(), [scales, outer])[0]
    restored = evaluate(Dequantize(), [data, wide])[0]
    # The widest gap of FP4 is 2 of 6, so the error is at most a sixth of the largest value, and the scale's rounding.
    limit = np.repeat(np.abs(blocks).max(axis=1 if axis == 0 else 2), 16, axis=axis)
    assert (np.abs(restored - x) <= limit * (1 / 6 + 1 / 16)).all()


def test_fp8_scales_are_powers_of_two_that_reach_every_value():
    x = random_array((4, 64)) * 1000
    layer = DynamicQuantize(axis=1, block_size=32, to_type=DataType.FP8, scale_type=DataType.E8M0)
    data, scales = run(layer, x)
    largest = np.abs(x.reshape(4, 2, 32)).max(axis=2)
    powers = scales.astype(np.float32)
    assert (powers * 448 >= largest).all()
    assert (powers / 2 * 448 < largest).all()
    restored = evaluate(Dequantize(), [data, powers])[0]
    np.testing.assert_allclose(restored, x, rtol=2**-4, atol=2**-9 * powers.max())


def test_a_block_of_zeros_stays_zero():
    data, _ = run(DynamicQuantize(axis=0, block_size=16), np.zeros(16, np.float32), np.float32(1))
    assert not data.astype(np.float32).any()

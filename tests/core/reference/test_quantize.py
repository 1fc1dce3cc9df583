"""The reference of quantize layers, held against ONNX Runtime, onnx.reference and arithmetic."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantize import Quantize
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("source", [np.float32, np.float16])
@pytest.mark.parametrize("zero_point", [0, 7, 100])
def test_per_tensor_agrees_with_onnx_runtime(dtype, source, zero_point):
    x = np.concatenate([random_array((1000,)) * 200, np.arange(-40, 40) / 8]).astype(source)
    scale, zero = np.asarray(0.25, source), np.asarray(zero_point, dtype)
    (expected,) = onnx_runtime("QuantizeLinear", [x, scale, zero])
    (output,) = run(Quantize(to_type=DataType.from_numpy(np.dtype(dtype))), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis_agrees_with_onnx_runtime(axis):
    x = random_array((3, 4, 5)) * 30
    scale = np.abs(random_array((x.shape[axis],), seed=1)) + np.float32(0.1)
    zero = np.arange(x.shape[axis], dtype=np.int8)
    (expected,) = onnx_runtime("QuantizeLinear", [x, scale, zero], axis=axis)
    (output,) = run(Quantize(axis=axis), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(("extent", "block"), [(6, 3), (7, 3), (5, 5)])
def test_blocks_agree_with_onnx_runtime(extent, block):
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

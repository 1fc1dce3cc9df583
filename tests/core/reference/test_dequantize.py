"""The reference of dequantize layers, held against ONNX Runtime and onnx.reference."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32])
@pytest.mark.parametrize("target", [np.float32, np.float16])
def test_per_tensor_agrees_with_onnx_runtime(dtype, target):
    limits = np.iinfo(dtype)
    x = np.linspace(limits.min, limits.max, 1000).astype(dtype)
    scale = np.asarray(0.0003, target)
    zero = None if dtype is np.int32 else np.asarray(7, dtype)
    (expected,) = onnx_runtime("DequantizeLinear", [x, scale, zero])
    output = evaluate(Dequantize(to_type=DataType.from_numpy(np.dtype(target))), [x, scale, zero])[0]
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_axis_agrees_with_onnx_runtime(axis):
    x = random_array((3, 4, 5), np.int8)
    scale = np.abs(random_array((x.shape[axis],), seed=1))
    zero = np.arange(x.shape[axis], dtype=np.int8)
    (expected,) = onnx_runtime("DequantizeLinear", [x, scale, zero], axis=axis)
    (output,) = run(Dequantize(axis=axis), x, scale, zero)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(("extent", "block"), [(6, 3), (7, 3)])
def test_blocks_agree_with_onnx_runtime(extent, block):
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

"""The reference of casts, held against ONNX's own cases, ONNX Runtime, and values worked out by hand."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from dryfit.network.data_types import DataType
from dryfit.network.layers.cast import Cast, CastRounding
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, run

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

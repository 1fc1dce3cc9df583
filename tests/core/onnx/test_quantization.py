"""QuantizeLinear and DequantizeLinear of every opset: what differs between them, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.core.onnx.quantized_models import assert_equal, dequantize, kinds, model_of, quantize, reference_of

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ErrorCode, ModelRefusedError

X = (np.random.default_rng(0).standard_normal((4, 6, 8)) * 5).astype(np.float32)
VECTOR = np.linspace(0.02, 0.09, 6).astype(np.float32)
BLOCKS = np.linspace(0.02, 0.09, 4 * 2 * 8).astype(np.float32).reshape(4, 2, 8)
ONE = np.float32(0.05)


def pair(scale: Any, zero_point: Any = None, opset: int = 21, x: Any = X, **attributes: Any) -> Any:
    """A model that quantizes and dequantizes, and its input."""
    constants = {"s": np.asarray(scale), **({} if zero_point is None else {"z": np.asarray(zero_point)})}
    factors = ["s", *(["z"] if zero_point is not None else [])]
    back = {name: value for name, value in attributes.items() if name in ("axis", "block_size")}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *factors], ["q"], "q", **attributes),
        helper.make_node("DequantizeLinear", ["q", *factors], ["y"], "y", **back),
    ]
    return model_of(nodes, {"x": x}, constants, opset=opset), {"x": x}


def layers_of(model: Any) -> tuple[Quantize, Dequantize]:
    """The quantize and the dequantize layer."""
    network = network_from_onnx(model)
    one, other = network.layer("q"), network.layer("y")
    assert isinstance(one, Quantize)
    assert isinstance(other, Dequantize)
    return one, other


@pytest.mark.parametrize(
    ("opset", "scale", "zero_point", "attributes"),
    [
        (10, ONE, np.int8(0), {}),
        (10, ONE, np.uint8(120), {}),
        (13, ONE, None, {}),
        (13, VECTOR, np.zeros(6, np.int8), {}),
        (13, VECTOR, np.zeros(6, np.int8), {"axis": -2}),
        (13, VECTOR[:4], np.zeros(4, np.int8), {"axis": 0}),
        (13, VECTOR[:4], np.arange(4).astype(np.uint8), {"axis": 0}),
        (19, ONE, np.zeros((), ml_dtypes.float8_e4m3fn), {}),
        (19, VECTOR, np.zeros(6, ml_dtypes.float8_e4m3fn), {"saturate": 1}),
        (19, ONE, np.zeros((), ml_dtypes.float8_e5m2), {"saturate": 1}),
        (21, ONE, np.zeros((), ml_dtypes.int4), {}),
        (21, ONE, None, {"output_dtype": TensorProto.INT4}),
        (21, BLOCKS, None, {"axis": 1, "block_size": 3, "output_dtype": TensorProto.INT4}),
        (21, BLOCKS, np.zeros(BLOCKS.shape, ml_dtypes.int4), {"axis": 1, "block_size": 3}),
        (21, BLOCKS, np.zeros(BLOCKS.shape, np.int8), {"axis": -2, "block_size": 5}),
        (21, ONE, np.int16(3), {}),
        (23, ONE, None, {"output_dtype": TensorProto.INT8, "precision": TensorProto.FLOAT}),
        (25, ONE, np.zeros((), ml_dtypes.int2), {}),
    ],
)
def test_every_opsets_forms_are_quantized_as_onnx_runtime_does(
    opset: int, scale: Any, zero_point: Any, attributes: dict[str, Any]
) -> None:
    assert_equal(*pair(scale, zero_point, opset, **attributes))


def test_fp16_data_and_scales_stay_fp16() -> None:
    model, inputs = pair(np.float16(0.05), np.int8(0), 19, X.astype(np.float16))
    assert layers_of(model)[1].to_type is DataType.HALF
    assert_equal(model, inputs)


def test_a_dequantized_tensor_has_the_scales_type_or_the_stated_one() -> None:
    inputs = {"x": X.astype(np.int8)}
    for scale, stated, expected in (
        (np.float16(0.5), 0, DataType.HALF),
        (ONE, TensorProto.FLOAT16, DataType.HALF),
        (np.float16(0.5), TensorProto.FLOAT, DataType.FLOAT),
        (ml_dtypes.bfloat16(0.5), 0, DataType.BF16),
        (ml_dtypes.float8_e8m0fnu(0.5), 0, DataType.FLOAT),
    ):
        node = dequantize("x", "s", "y", **({"output_dtype": stated} if stated else {}))
        (output,) = reference_of(model_of([node], inputs, {"s": np.asarray(scale)}, opset=24), inputs)
        assert output.dtype == expected.numpy


def test_the_type_without_zero_point_and_output_dtype_is_uint8() -> None:
    assert layers_of(pair(ONE)[0])[0].to_type is DataType.UINT8


def test_before_opset_13_a_vector_of_scales_is_along_axis_0() -> None:
    scales = VECTOR[:4]
    old, inputs = pair(scales, np.zeros(4, np.int8), 10)
    new, _ = pair(scales, np.zeros(4, np.int8), 13, axis=0)
    np.testing.assert_array_equal(reference_of(old, inputs)[0], reference_of(new, inputs)[0])


def test_a_vector_needs_no_axis() -> None:
    scales = np.linspace(0.1, 1, 8).astype(np.float32)
    model, inputs = pair(scales, np.zeros(8, np.int8), 13, X[0, 0])
    expected = np.clip(np.rint(X[0, 0] / scales), -128, 127) * scales
    np.testing.assert_array_equal(reference_of(model, inputs)[0], expected)


def test_blocks_follow_from_shapes_where_no_size_is_stated() -> None:
    stated, inputs = pair(BLOCKS, np.zeros(BLOCKS.shape, ml_dtypes.int4), axis=1, block_size=3)
    implied, _ = pair(BLOCKS, np.zeros(BLOCKS.shape, ml_dtypes.int4))
    np.testing.assert_array_equal(reference_of(implied, inputs)[0], reference_of(stated, inputs)[0])
    assert not layers_of(implied)[0].is_host_only


@pytest.mark.parametrize("zero", ["initializer", "cast", "constant of shape", "identity"])
def test_a_zero_point_that_is_known_to_be_0_is_left_out(zero: str) -> None:
    nodes, constants = [], {"s": VECTOR, "shape": np.array([6])}
    if zero == "initializer":
        constants["z"] = np.zeros(6, np.int8)
    elif zero == "identity":
        constants["zeros"] = np.zeros(6, np.int8)
        nodes = [helper.make_node("Identity", ["zeros"], ["z"])]
    elif zero == "cast":  # PyTorch's exporter writes it so
        constants["zeros"] = np.zeros(6, np.float32)
        nodes = [helper.make_node("Cast", ["zeros"], ["z"], to=TensorProto.INT8)]
    else:  # and tf2onnx so
        value = helper.make_tensor("value", TensorProto.INT8, [1], [0])
        nodes = [helper.make_node("ConstantOfShape", ["shape"], ["z"], value=value)]
    nodes += [quantize("x", "s", "q", "z"), dequantize("q", "s", "y", "z")]
    model = model_of(nodes, {"x": X}, constants, opset=13)
    assert [layer.num_inputs for layer in layers_of(model)] == [2, 2]
    assert kinds(network_from_onnx(model)) == ["constant", "quantize", "dequantize"]
    assert_equal(model, {"x": X})


@pytest.mark.parametrize("way", ["initializer", "constant", "identity", "cast", "transpose", "reshape", "chain"])
def test_a_scale_may_come_through_nodes_that_only_move_it(way: str) -> None:
    scales = VECTOR.astype(np.float16).astype(np.float32)
    before = {
        "initializer": [],
        "constant": [helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(scales))],
        "identity": [helper.make_node("Identity", ["c"], ["s"])],
        "cast": [helper.make_node("Cast", ["half"], ["s"], to=TensorProto.FLOAT)],
        "transpose": [
            helper.make_node("Transpose", ["row"], ["column"], perm=[1, 0]),
            helper.make_node("Squeeze", ["column", "last"], ["s"]),
        ],
        "reshape": [helper.make_node("Reshape", ["row", "flat"], ["s"])],
        "chain": [
            helper.make_node("Identity", ["half"], ["a"]),
            helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
            helper.make_node("Reshape", ["b", "flat"], ["s"]),
        ],
    }[way]
    constants = {
        "c": scales,
        "half": scales.astype(np.float16),
        "row": scales.reshape(1, 6),
        "last": np.array([1]),
        "flat": np.array([-1]),
        "z": np.zeros(6, np.int8),
    }
    if way == "initializer":
        constants["s"] = scales
    nodes = [*before, quantize("x", "s", "q", "z"), dequantize("q", "s", "y", "z")]
    model = model_of(nodes, {"x": X}, constants, opset=13)
    network = network_from_onnx(model)
    assert kinds(network) == ["constant", "quantize", "dequantize"]
    assert network.layer("q").get_input(1) is network.layer("y").get_input(1)
    assert_equal(model, {"x": X})


def refusals(model: Any) -> list[Any]:
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(model)
    return list(caught.value.problems)


@pytest.mark.parametrize("value", [0.0, -0.5, np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: dtype.__name__)
def test_a_scale_that_is_no_positive_number_is_refused_by_name_and_index(value: float, dtype: Any) -> None:
    scales = VECTOR.astype(dtype)
    scales[2] = value
    model, _ = pair(scales, np.zeros(6, np.int8))
    problem, *_ = refusals(model)
    assert (problem.code, problem.node_name) == (ErrorCode.INVALID_VALUE, "q")
    assert f"Scales must be finite and positive (found {value} at index [2], in tensor 's')" in problem.reason


def test_the_scale_of_a_folded_bias_is_refused_by_name_too() -> None:
    constants = {"bias": np.arange(3, dtype=np.int32), "bias_scale": np.float32([1, -1, 0])}
    (problem,) = refusals(model_of([dequantize("bias", "bias_scale", "y", axis=0)], {}, constants))
    assert "found -1.0 at index [1], and 1 more, in tensor 'bias_scale'" in problem.reason


@pytest.mark.parametrize(
    ("scale", "zero_point", "attributes", "message"),
    [
        (ONE, np.int8(0), {"output_dtype": TensorProto.INT4}, "found INT4; allowed: INT8, as 'z' has it"),
        (VECTOR, np.zeros(5, np.int8), {}, "as many zero points as scales (found 'z' (5,); allowed: as 's' (6,))"),
        (VECTOR, np.zeros(6, np.int8), {"axis": 3}, "axis must be an axis of the input (found 3; allowed: -3 to 2)"),
        (VECTOR, np.zeros(6, np.int8), {"axis": 2}, "one element per index of `axis`"),
        (BLOCKS[0], np.zeros((2, 8), np.int8), {"axis": 1}, "scale 's' (2, 8) for 'x' (4, 6, 8), block size 0"),
        (BLOCKS, np.zeros(BLOCKS.shape, np.int8), {"block_size": -3}, "one value per block"),
        (BLOCKS, np.zeros(BLOCKS.shape, np.int8), {"axis": 1, "block_size": 2}, "one element per block"),
        (np.asarray(1, ml_dtypes.float8_e4m3fn), None, {}, "Dequantize the scales first"),
        (ONE, None, {"output_dtype": TensorProto.FLOAT16}, "Quantization to this type is not supported"),
    ],
)
def test_what_does_not_fit_is_refused(scale: Any, zero_point: Any, attributes: dict[str, Any], message: str) -> None:
    model, _ = pair(scale, zero_point, **attributes)
    assert re.search(re.escape(message), str(refusals(model)[0]))


def test_an_asymmetric_zero_point_is_kept_for_the_host() -> None:
    for zero_point in (np.uint8(3), np.int8(-4)):
        for layer in layers_of(pair(ONE, zero_point)[0]):
            assert "a zero point that is not 0 (tensor 'z')" in layer.host_only_reason


def test_uint8_codes_are_for_the_host_even_where_their_zero_point_is_0() -> None:
    first, second = layers_of(pair(ONE, np.uint8(0))[0])
    assert first.host_only_reason == second.host_only_reason == "values of type UINT8 (tensor 'q')"

"""Shapes, types and checks of quantize, dequantize and cast layers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.core.network.layers.inferring import assert_refused, known, scalar, shape_of, spec

from dryfit.errors import NetworkError, UnfinishedLayerError
from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import QUANTIZED_TYPES, Dequantize, DynamicQuantize, Quantize
from dryfit.network.layers.scale_granularity import SCALE_TYPES
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec


@pytest.mark.parametrize(
    ("shape", "scale", "parameters"),
    [
        ((2, 3), (), {}),
        ((2, 3), (1,), {}),
        ((2, 3), (3,), {"axis": 1}),
        ((2, -1), (3,), {"axis": 1}),
        ((2, 6), (2, 2), {}),
        ((2, 7), (2, 3), {"block_shape": (1, 3)}),
        ((-1, 6), (-1, 2), {"block_shape": (1, 3)}),
        ((4,), (2,), {}),
    ],
)
def test_a_scale_serves_a_tensor_an_axis_or_a_block(shape, scale, parameters):
    assert shape_of(Quantize(**parameters), spec(*shape), spec(*scale)) == shape


@pytest.mark.parametrize(
    ("shape", "scale", "parameters", "message"),
    [
        ((2, 3), (2,), {"axis": 1}, "one element per index"),
        ((2, 3), (3,), {}, "`axis` must be set"),
        ((2, 3), (3,), {"axis": 2}, "`axis` must be an axis of the input"),
        ((2, 7), (2, 3), {}, "divide the input into blocks"),
        ((2, 7), (2, 3, 1), {}, "divide the input into blocks"),
        ((2, 7), (2, 2), {"block_shape": (1, 3)}, "one element per block"),
        ((2, 7), (2, 2), {"block_shape": (3,)}, "one extent per axis"),
        ((2, 7), (2, 2), {"block_shape": (1, 0)}, "one extent per axis"),
    ],
)
def test_a_scale_of_another_shape_is_refused(shape, scale, parameters, message):
    assert_refused(Quantize(**parameters), [spec(*shape), spec(*scale)], message)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf])
def test_a_scale_is_finite_and_positive(value, dtype):
    layer = Quantize(axis=0, name="asked")
    assert_refused(
        layer, [spec(2), known(1.0, value, dtype=dtype)], "finite and positive", found=f"{value} at index [1]"
    )
    assert_refused(Quantize(), [spec(2), scalar(value, dtype)], "finite and positive", found=str(value))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: dtype.__name__)
def test_the_smallest_positive_scale_is_one(dtype):
    smallest = np.nextafter(dtype(0), dtype(1))
    assert shape_of(Quantize(), spec(2), scalar(smallest, dtype)) == (2,)


def test_not_a_number_is_no_power_of_two():
    codes = np.array([0, 127, 255], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    layer = Dequantize(axis=0)
    assert_refused(layer, [spec(3, dtype=DataType.FP8), TensorSpec.of(codes)], "finite", found="nan at index [2]")


def test_a_wrong_scale_is_told_with_its_tensor_and_its_place():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (4, 6))
    scales = network.add_constant((4, 2), np.array([[1, 2], [3, 4], [5, -6], [0, 8]], np.float32)).get_output(0)
    scales.name = "weight_scales"
    with pytest.raises(NetworkError, match=r"-6.0 at index \[2, 1\], and 1 more \(tensor 'weight_scales'\)"):
        network.add_quantize(x, scales)


@pytest.mark.parametrize("dtype", DataType)
def test_scales_are_of_high_precision_or_powers_of_two(dtype):
    if dtype in SCALE_TYPES:
        assert shape_of(Quantize(), spec(2), spec(dtype=dtype)) == (2,)
    else:
        remedy = "Dequantize the scales first, with the scale of the scales" if dtype is DataType.FP8 else None
        assert_refused(
            Quantize(),
            [spec(2), spec(dtype=dtype)],
            "This type is not supported for scales",
            found=dtype.text,
            remedy=remedy,
        )


@pytest.mark.parametrize("dtype", DataType)
def test_narrow_types_are_quantized_to_and_others_are_refused(dtype):
    if dtype in QUANTIZED_TYPES:
        (output,) = Quantize(to_type=dtype).infer_outputs([spec(2), scalar(1, np.float32)])
        assert output.dtype is dtype
    else:
        assert_refused(
            Quantize(to_type=dtype), [spec(2), spec()], "Quantization to this type is not supported", found=dtype.text
        )


def test_types_of_data_and_zero_point_are_checked():
    data = spec(2, dtype=DataType.INT8)
    assert_refused(Quantize(), [data, spec()], "floating point or INT32", found="INT8")
    zero = spec(dtype=DataType.UINT8)
    assert_refused(
        Quantize(),
        [spec(2), spec(), zero],
        "The zero point must have the type of the output",
        found="UINT8",
        allowed="INT8",
    )
    long = spec(2, dtype=DataType.INT8)
    assert_refused(
        Quantize(), [spec(2), spec(), long], "The zero point must have the shape of the scale", found=(2,), allowed=()
    )


def test_the_axis_may_be_set_after_the_layer_was_added():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    scale = network.add_constant((3,), np.ones(3, np.float32)).get_output(0)
    layer = network.add_quantize(x, scale)
    with pytest.raises(UnfinishedLayerError, match="Set `axis` to the axis of the channels"):
        layer.get_output(0).spec  # noqa: B018
    layer.axis = 1
    assert layer.get_output(0).dtype is DataType.INT8


def a_layer(shape, scale, zero_point=None, to_type=DataType.INT8, **parameters):
    """A quantize layer in a network, with the scale 1."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, shape)
    layer = network.add_quantize(x, network.add_constant(scale, np.ones(scale, np.float32)).get_output(0), to_type)
    for name, value in parameters.items():
        setattr(layer, name, value)
    layer.outputs[0].name = "q"
    if zero_point is not None:
        offsets = network.add_constant(scale, np.full(scale, zero_point, to_type.numpy)).get_output(0)
        offsets.name = "z"
        layer.set_input(2, offsets)
    return layer


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (lambda: a_layer((2, 3), (), to_type=DataType.UINT8), "values of type UINT8 (tensor 'q')"),
        (lambda: a_layer((3, 5), (), to_type=DataType.INT4), "an odd number of 4-bit values, 15 (tensor 'q')"),
        (lambda: a_layer((2, 3), (), to_type=DataType.FP8, saturate=False), "values that do not saturate"),
        (lambda: a_layer((2, 3), (), 3), "a zero point that is not 0 (tensor 'z')"),
        (lambda: a_layer((2, 3, 4, 6), (2, 3, 4, 2)), "blocks of data with 4 axes (tensor 'x')"),
        (
            lambda: a_layer((4, 6), (2, 2), block_shape=(2, 3)),
            "blocks of shape (2, 3), along more than one axis (tensor 'constant_0_output')",
        ),
    ],
)
def test_what_no_device_has_is_told_with_its_tensor(layer, reason):
    layer = layer()
    assert layer.is_host_only
    assert layer.host_only_reason.replace(layer.inputs[1].name, "constant_0_output") == reason


@pytest.mark.parametrize(
    "layer",
    [
        lambda: a_layer((2, 3), (), to_type=DataType.FP8),
        lambda: a_layer((2, 3), (), 0),
        lambda: a_layer((2, 3, 4, 6), (3,), axis=1),
        lambda: a_layer((2, 4, 6), (2, 4, 2), to_type=DataType.INT4),
        lambda: a_layer((6,), (2,), to_type=DataType.FP4),
        lambda: a_layer((4, 6), (2, 6)),
    ],
)
def test_tensorrts_forms_are_a_devices_affair(layer):
    assert not layer().is_host_only


def test_a_dequantize_layer_says_the_same_of_itself():
    layer = a_layer((2, 3), (), 3)
    back = layer.network.add_dequantize(layer.get_output(0), layer.get_input(1))
    assert not back.is_host_only
    back.set_input(2, layer.get_input(2))
    assert back.host_only_reason == "a zero point that is not 0 (tensor 'z')"


@pytest.mark.parametrize("dtype", DataType)
def test_quantized_types_and_those_of_biases_are_taken(dtype):
    if dtype in (*QUANTIZED_TYPES, DataType.INT32, DataType.INT64):
        (output,) = Dequantize(to_type=DataType.HALF).infer_outputs([spec(2, dtype=dtype), spec()])
        assert (output.shape, output.dtype) == ((2,), DataType.HALF)
    else:
        assert_refused(
            Dequantize(), [spec(2, dtype=dtype), spec()], "The input must have a quantized type", found=dtype.text
        )


def test_what_does_not_fit_is_refused_for_dequantize():
    x = spec(2, 3, dtype=DataType.INT8)
    assert_refused(Dequantize(to_type=DataType.FP8), [x, spec()], "wider", found="FP8")
    assert_refused(
        Dequantize(),
        [x, spec(3)],
        "`axis` must be set for a per-channel scale",
        remedy="Set `axis` to the axis of the channels",
    )
    zero = spec(dtype=DataType.UINT8)
    assert_refused(
        Dequantize(), [x, spec(), zero], "The zero point must have the type of the input", found="UINT8", allowed="INT8"
    )
    assert_refused(Dequantize(), [x], "Input 1 is not connected")


def test_there_is_a_scale_for_each_block():
    data, scales = DynamicQuantize(axis=1, block_size=16).infer_outputs([spec(-1, 48), spec()])
    assert (data.shape, data.dtype) == ((-1, 48), DataType.FP4)
    assert (scales.shape, scales.dtype) == ((-1, 3), DataType.FP8)
    layer = DynamicQuantize(axis=0, block_size=32, to_type=DataType.FP8, scale_type=DataType.E8M0)
    _, scales = layer.infer_outputs([spec(-1, 4)])
    assert (scales.shape, scales.dtype) == ((-1, 4), DataType.E8M0)


def test_what_does_not_fit_is_refused_for_dynamic_quantize():
    layer = DynamicQuantize(axis=1, block_size=16)
    assert_refused(layer, [spec(2, 24), spec()], "multiple of the block size", found="24 in blocks of 16")
    assert_refused(layer, [spec(2, 16, dtype=DataType.INT8), spec()], "wrong type", found="INT8")
    assert_refused(layer, [spec(2, 16), spec(2)], "Input 1 must be a floating-point scalar", found="FP32 (2,)")
    assert_refused(layer, [spec(16), spec()], "`axis` must be an axis of the input", found=1)
    assert_refused(layer, [spec(2, 16, 2, 2), spec()], "`axis` must be the last or the second-last axis", found=1)
    assert_refused(
        DynamicQuantize(axis=1, block_size=32), [spec(2, 32)], "combination of types and block size is not supported"
    )


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_the_scale_of_scales_is_finite_and_positive(value):
    layer = DynamicQuantize(axis=0, block_size=16)
    assert_refused(layer, [spec(16), scalar(value, np.float32)], "finite and positive", found=str(value))


def test_the_scale_of_scales_may_be_connected_after_the_layer_was_added():
    network = Network()
    layer = network.add_dynamic_quantize(network.add_input("x", DataType.FLOAT, (2, 32)), 1, 16)
    with pytest.raises(UnfinishedLayerError, match="input 1"):
        layer.get_output(1).spec  # noqa: B018
    layer.set_input(1, network.add_constant((), np.float32(1)).get_output(0))
    assert layer.get_output(1).shape == (2, 2)


@pytest.mark.parametrize("dtype", DataType)
def test_the_output_has_the_type_that_is_asked_for(dtype):
    network = Network()
    layer = network.add_cast(network.add_input("x", DataType.HALF, (2, -1)), dtype)
    assert (layer.get_output(0).shape, layer.get_output(0).dtype) == ((2, -1), dtype)
    layer.to_type = DataType.INT8
    assert layer.get_output(0).dtype is DataType.INT8


@pytest.mark.parametrize(("extents", "axis"), [((1, 32), 1), ((32, 1), 0)])
def test_a_block_shape_gives_axis_and_block_size(extents, axis):
    network = Network("blocks")
    x = network.add_input("x", DataType.FLOAT, (64, 64))
    layer = network.add_dynamic_quantize_v2(x, extents, DataType.FP8, DataType.E8M0)
    assert (layer.axis, layer.block_size, layer.block_shape) == (axis, 32, extents)
    shapes = [(64, 64), (2, 64) if axis == 0 else (64, 2)]
    assert [tensor.shape for tensor in layer.outputs] == shapes
    layer.block_shape = extents[::-1]
    assert layer.axis == 1 - axis
    assert layer.outputs[1].shape == shapes[1][::-1]


@pytest.mark.parametrize(("extents", "message"), [((32,), "one extent per axis"), ((4, 8), "exactly one axis")])
def test_a_block_of_another_shape_is_refused(extents, message):
    network = Network("blocks")
    x = network.add_input("x", DataType.FLOAT, (64, 64))
    with pytest.raises(NetworkError, match=message) as caught:
        network.add_dynamic_quantize_v2(x, extents, DataType.FP8, DataType.E8M0)
    assert caught.value.found == extents
    assert not network.layers

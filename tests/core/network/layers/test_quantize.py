"""Quantize and dequantize: scales of a tensor, an axis, a block; and refusals."""

import numpy as np
import pytest
from tests.core.network.layers.inferring import assert_refused, known, scalar, shape_of, spec

from dryfit.errors import UnfinishedLayerError
from dryfit.network.data_types import DataType
from dryfit.network.layers.quantize import QUANTIZED_TYPES, Quantize
from dryfit.network.network import Network


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
        ((2, 3), (2,), {"axis": 1}, "one element for each index"),
        ((2, 3), (3,), {}, "does not say of which axis"),
        ((2, 3), (3,), {"axis": 2}, "not an axis"),
        ((2, 7), (2, 3), {}, "divide the input into blocks"),
        ((2, 7), (2, 3, 1), {}, "divide the input into blocks"),
        ((2, 7), (2, 2), {"block_shape": (1, 3)}, "one element a block"),
        ((2, 7), (2, 2), {"block_shape": (3,)}, "one extent an axis"),
        ((2, 7), (2, 2), {"block_shape": (1, 0)}, "one extent an axis"),
    ],
)
def test_a_scale_of_another_shape_is_refused(shape, scale, parameters, message):
    assert_refused(Quantize(**parameters), [spec(*shape), spec(*scale)], message)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_is_finite_and_positive(value):
    layer = Quantize(axis=0, name="asked")
    assert_refused(layer, [spec(2), known(1.0, value, dtype=np.float32)], "finite and positive")


@pytest.mark.parametrize("dtype", DataType)
def test_narrow_types_are_quantized_to_and_others_are_refused(dtype):
    if dtype in QUANTIZED_TYPES:
        (output,) = Quantize(to_type=dtype).infer_outputs([spec(2), scalar(1, np.float32)])
        assert output.dtype is dtype
    else:
        assert_refused(Quantize(to_type=dtype), [spec(2), spec()], "Nothing can be quantized", found=dtype.name)


def test_types_of_data_and_zero_point_are_checked():
    data = spec(2, dtype=DataType.INT8)
    assert_refused(Quantize(), [data, spec()], "floating point or INT32", found="INT8")
    zero = spec(dtype=DataType.UINT8)
    assert_refused(Quantize(), [spec(2), spec(), zero], "output's type", found="UINT8", allowed="INT8")
    long = spec(2, dtype=DataType.INT8)
    assert_refused(Quantize(), [spec(2), spec(), long], "scale's shape", found=(2,), allowed=())
    assert_refused(Quantize(), [spec(2), spec(dtype=DataType.BOOL)], "A scale is a number", found="BOOL")


def test_the_axis_may_be_set_after_the_layer_was_added():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    scale = network.add_constant((3,), np.ones(3, np.float32)).get_output(0)
    layer = network.add_quantize(x, scale)
    with pytest.raises(UnfinishedLayerError, match="Set `axis`"):
        layer.get_output(0).spec  # noqa: B018
    layer.axis = 1
    assert layer.get_output(0).dtype is DataType.INT8


def test_only_tensorrts_forms_are_a_devices_affair():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    scale = network.add_constant((), np.float32(1)).get_output(0)
    zero = network.add_constant((), np.int8(3)).get_output(0)
    assert not network.add_quantize(x, scale, DataType.FP8).is_host_only
    assert network.add_quantize(x, scale, DataType.UINT8).is_host_only
    layer = network.add_quantize(x, scale)
    layer.set_input(2, zero)
    assert layer.is_host_only
    back = network.add_dequantize(layer.get_output(0), scale)
    assert not back.is_host_only
    back.set_input(2, zero)
    assert back.is_host_only

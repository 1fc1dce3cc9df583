import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.resize import (
    InterpolationMode,
    Resize,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.network.tensor import TensorSpec

from .building import network_with


def test_parameters_have_tensorrts_names_and_defaults():
    network, x = network_with((1, 3, 8, 8))
    layer = network.add_resize(x)
    assert layer.resize_mode is InterpolationMode.NEAREST
    assert layer.coordinate_transformation is ResizeCoordinateTransformation.ASYMMETRIC
    assert layer.selector_for_single_pixel is ResizeSelector.FORMULA
    assert layer.nearest_rounding is ResizeRoundMode.FLOOR
    assert (layer.exclude_outside, layer.cubic_coeff) == (False, -0.75)
    assert layer.get_output(0).shape == (1, 3, 8, 8)


def test_extents_follow_from_scales_or_are_given():
    network, x = network_with((-1, 3, 5, 8))
    layer = network.add_resize(x)
    layer.scales = (1, 1, 1.5, 2)
    assert layer.get_output(0).shape == (-1, 3, 7, 16)
    layer.scales = ()
    layer.shape = (4, 3, 9, 9)
    assert layer.get_output(0).shape == (4, 3, 9, 9)


def test_an_input_gives_the_extents_where_its_value_is_known():
    layer = Resize()
    x = TensorSpec((1, 3, 8, 8), DataType.FLOAT)
    assert layer.infer_outputs([x, TensorSpec((4,), DataType.INT64)])[0].shape == (-1,) * 4
    assert layer.infer_outputs([x, TensorSpec.of(np.array([1, 3, 4, 4]))])[0].shape == (1, 3, 4, 4)
    assert layer.infer_outputs([x, None, TensorSpec((4,), DataType.FLOAT)])[0].shape == (-1,) * 4
    scales = TensorSpec.of(np.array([1, 1, 2, 0.5], np.float32))
    assert layer.infer_outputs([x, None, scales])[0].shape == (1, 3, 16, 4)


@pytest.mark.parametrize(
    ("change", "is_host_only"),
    [
        ({"scales": (1, 1, 2, 2)}, False),
        ({"coordinate_transformation": ResizeCoordinateTransformation.HALF_PIXEL}, False),
        ({"coordinate_transformation": ResizeCoordinateTransformation.PYTORCH_HALF_PIXEL}, True),
        ({"antialias": True}, True),
        ({"scales": (1, 1, 2, 2), "shape": (1, 3, 16, 16)}, True),
    ],
)
def test_what_tensorrt_lacks_is_host_only(change, is_host_only):
    assert Resize(**change).is_host_only == is_host_only


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": (1, 2)}, r"`scales` has the wrong number.*found \(1.0, 2.0\); allowed: 4 values"),
        ({"shape": (1, 2, 3)}, "`shape` has the wrong number.*allowed: 4 values"),
        ({"roi": (0, 1)}, "`roi` has the wrong number.*allowed: 8 values"),
        ({"scales": (1, 1, 0, 1)}, "greater than 0"),
        ({"scales": (1, 1, float("inf"), 1)}, "finite"),
        ({"shape": (1, 1, -2, 1)}, "at least 0.*-2"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(change, message):
    network, x = network_with((1, 3, 8, 8))
    layer = network.add_resize(x)
    for name, value in change.items():
        setattr(layer, name, value)
    with pytest.raises(NetworkError, match=message):
        _ = layer.get_output(0).shape

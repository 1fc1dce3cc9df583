import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.resize import InterpolationMode
from dryfit.network.layers.slice import SampleMode

from .building import network_with


def test_parameters_have_tensorrts_names_and_defaults():
    network, x, grid = network_with((-1, 3, 8, 8), (2, 5, 6, 2))
    layer = network.add_grid_sample(x, grid)
    assert layer.interpolation_mode is InterpolationMode.LINEAR
    assert (layer.align_corners, layer.sample_mode) == (False, SampleMode.FILL)
    assert layer.get_output(0).shape == (2, 3, 5, 6)
    assert not layer.is_host_only


def test_volumes_are_host_only_and_not_cubic():
    network, x, grid = network_with((2, 3, 8, 8, 8), (2, 5, 6, 7, 3))
    layer = network.add_grid_sample(x, grid)
    assert layer.is_host_only
    assert layer.get_output(0).shape == (2, 3, 5, 6, 7)
    layer.interpolation_mode = InterpolationMode.CUBIC
    with pytest.raises(NetworkError, match=r"two spatial axes.*3 spatial axes"):
        _ = layer.get_output(0).shape


@pytest.mark.parametrize(
    ("grid_shape", "dtype", "message"),
    [
        ((2, 5, 6, 3), DataType.FLOAT, r"grid \(2, 5, 6, 3\) for an input of \(2, 3, 8, 8\)"),
        ((2, 5, 2), DataType.FLOAT, r"grid \(2, 5, 2\)"),
        ((1, 5, 6, 2), DataType.FLOAT, "2 and 1"),
        ((2, 5, 6, 2), DataType.INT32, "found INT32"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(grid_shape, dtype, message):
    network, x, grid = network_with((2, 3, 8, 8), grid_shape, dtype=[DataType.FLOAT, dtype])
    with pytest.raises(NetworkError, match=message):
        network.add_grid_sample(x, grid)


def test_a_mode_of_slices_is_refused():
    network, x, grid = network_with((2, 3, 8, 8), (2, 5, 6, 2))
    layer = network.add_grid_sample(x, grid)
    layer.sample_mode = SampleMode.WRAP
    with pytest.raises(NetworkError, match="found WRAP"):
        _ = layer.get_output(0).shape

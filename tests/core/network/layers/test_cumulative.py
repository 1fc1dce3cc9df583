import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.cumulative import Cumulative, CumulativeOperation
from dryfit.network.tensor import TensorSpec

from .building import network_with


def test_only_products_are_host_only():
    network, x, axis = network_with((2, -1), (), dtype=[DataType.FLOAT, DataType.INT32])
    layer = network.add_cumulative(x, axis, CumulativeOperation.SUM, True, False)
    assert (layer.exclusive, layer.reverse, layer.is_host_only) == (True, False, False)
    assert layer.get_output(0).shape == (2, -1)
    assert network.add_cumulative(x, axis, CumulativeOperation.PROD, False, False).is_host_only


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (TensorSpec.of(np.array(2)), "found 2; allowed: -2 to 1"),
        (TensorSpec((2,), DataType.INT64), r"one integer.*INT64\[2\]"),
        (TensorSpec((), DataType.FLOAT), r"FLOAT\[\]"),
        (None, "Input 1 is not connected"),
    ],
)
def test_an_axis_that_does_not_fit_is_refused(axis, message):
    with pytest.raises(NetworkError, match=message):
        Cumulative().infer_outputs([TensorSpec((3, 3), DataType.FLOAT), axis])

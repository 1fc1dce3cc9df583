"""The reference of identities."""

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.identity import Identity

from .oracle import random_array, run


def test_it_is_the_input_and_no_copy():
    x = random_array((2, 3))
    assert run(Identity(), x)[0] is x


@pytest.mark.parametrize(
    ("values", "to_type", "expected"),
    [
        (np.array([True, False]), DataType.HALF, np.array([1, 0], np.float16)),
        (np.array([3, -300], np.int32), DataType.FLOAT, np.array([3, -300], np.float32)),
        (np.array([2.75, -2.75], np.float32), DataType.INT32, np.array([2, -2], np.int32)),
        (np.array([0, 0.5], np.float16), DataType.BOOL, np.array([False, True])),
    ],
)
def test_with_an_output_type_it_is_a_cast(values, to_type, expected):
    layer = Identity()
    layer.set_output_type(0, to_type)
    (y,) = run(layer, values)
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(y, expected)

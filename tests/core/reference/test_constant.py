"""The reference of constants."""

import numpy as np

from dryfit.network.layers.constant import Constant

from .oracle import run


def test_it_is_the_weights_in_their_shape_and_no_copy():
    weights = np.arange(6, dtype=np.float32)
    (output,) = run(Constant(shape=(2, 3), weights=weights))
    np.testing.assert_array_equal(output, [[0, 1, 2], [3, 4, 5]])
    assert np.shares_memory(output, weights)

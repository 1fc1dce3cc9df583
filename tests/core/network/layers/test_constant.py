"""Constant: shape, type and value."""

import ml_dtypes
import numpy as np
from tests.core.network.layers.inferring import assert_refused, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network


def test_its_value_is_known_and_no_copy():
    weights = np.arange(6).astype(ml_dtypes.float8_e4m3fn)
    layer = Network().add_constant((2, 3), weights)
    output = layer.get_output(0).spec
    assert (output.shape, output.dtype) == ((2, 3), DataType.FP8)
    assert np.shares_memory(output.value, weights)


def test_a_scalar_is_an_array_without_axes():
    output = Network().add_constant((), np.float32(2)).get_output(0).spec
    assert (output.shape, output.dtype, float(output.value)) == ((), DataType.FLOAT, 2)


def test_what_does_not_fit_is_refused():
    weights = np.zeros(6, np.float32)
    assert_refused(Constant(shape=(2, 2), weights=weights), [], "as many elements", found="(2, 2) for 6 weights")
    assert_refused(Constant(shape=(-2, -3), weights=weights), [], "as many elements")
    assert_refused(Constant(shape=(6,), weights=weights), [spec(1)], "no inputs")

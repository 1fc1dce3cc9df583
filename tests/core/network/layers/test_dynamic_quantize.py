"""Dynamic quantize: its two forms, and refusals."""

import numpy as np
import pytest
from tests.core.network.layers.inferring import assert_refused, scalar, spec

from dryfit.errors import UnfinishedLayerError
from dryfit.network.data_types import DataType
from dryfit.network.layers.dynamic_quantize import DynamicQuantize
from dryfit.network.network import Network


def test_there_is_a_scale_for_each_block():
    data, scales = DynamicQuantize(axis=1, block_size=16).infer_outputs([spec(-1, 48), spec()])
    assert (data.shape, data.dtype) == ((-1, 48), DataType.FP4)
    assert (scales.shape, scales.dtype) == ((-1, 3), DataType.FP8)
    layer = DynamicQuantize(axis=0, block_size=32, to_type=DataType.FP8, scale_type=DataType.E8M0)
    _, scales = layer.infer_outputs([spec(-1, 4)])
    assert (scales.shape, scales.dtype) == ((-1, 4), DataType.E8M0)


def test_what_does_not_fit_is_refused():
    layer = DynamicQuantize(axis=1, block_size=16)
    assert_refused(layer, [spec(2, 24), spec()], "whole number of blocks", found="24 in blocks of 16")
    assert_refused(layer, [spec(2, 16, dtype=DataType.INT8), spec()], "wrong type", found="INT8")
    assert_refused(layer, [spec(2, 16), spec(2)], "one floating-point number", found="FLOAT (2,)")
    assert_refused(layer, [spec(16), spec()], "not an axis", found=1)
    assert_refused(layer, [spec(2, 16, 2, 2), spec()], "last or the second last", found=1)
    assert_refused(DynamicQuantize(axis=1, block_size=32), [spec(2, 32)], "no such form")


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

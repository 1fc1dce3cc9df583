"""Shapes, types and checks of reductions and running sums."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.reduction import Cumulative, CumulativeOperation, ReduceOperation
from dryfit.network.layers.shape_inference import axes_in, mask_of
from dryfit.network.tensor import TensorSpec

from .building import network_with


@pytest.mark.parametrize(
    ("axes", "keep", "shape"),
    [
        ((1,), True, (2, 1, 4)),
        ((1,), False, (2, 4)),
        ((0, 2), True, (1, -1, 1)),
        ((0, 1, 2), False, ()),
    ],
)
def test_reduced_axes_are_1_or_gone(axes, keep, shape):
    network, x = network_with((2, -1, 4))
    layer = network.add_reduce(x, ReduceOperation.AVG, mask_of(axes), keep)
    assert layer.get_output(0).shape == shape


@pytest.mark.parametrize("mask", [0, 0b1000, -1])
def test_axes_that_are_not_there_are_refused(mask):
    network, x = network_with((2, 3, 4))
    with pytest.raises(NetworkError, match=f"found {bin(mask)}; allowed: bits 0 to 2"):
        network.add_reduce(x, ReduceOperation.SUM, mask, True)


def test_sums_of_bools_are_refused():
    network, x = network_with((2, 3), dtype=DataType.BOOL)
    with pytest.raises(NetworkError, match=r"SUM requires a numeric input.*found BOOL.*cast"):
        network.add_reduce(x, ReduceOperation.SUM, 1, True)


def test_a_mask_is_its_axes():
    assert mask_of([0, 3]) == 0b1001
    assert axes_in(0b1001) == (0, 3)


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
        (TensorSpec((2,), DataType.INT64), r"must be an integer scalar.*INT64\[2\]"),
        (TensorSpec((), DataType.FLOAT), r"must be an integer scalar.*FP32\[\]"),
        (None, "Input 1 is not connected"),
    ],
)
def test_an_axis_that_does_not_fit_is_refused(axis, message):
    with pytest.raises(NetworkError, match=message):
        Cumulative().infer_outputs([TensorSpec((3, 3), DataType.FLOAT), axis])

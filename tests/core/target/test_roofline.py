"""A roofline as a cost function: the longer of arithmetic and memory, and a start."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.target.cost import CostQuestion, combined_error
from dryfit.target.roofline import Roofline
from dryfit.target.target import Platform

PEAKS = Roofline(lambda precision: 100 if precision is DataType.INT8 else 50, 1e6, 1e6, 3e-6, source="manual")


def question(channels: int, extent: int, dtype: DataType = DataType.INT8) -> CostQuestion:
    network = Network("one")
    x = network.add_input("x", DataType.FLOAT, (1, channels, extent, extent))
    kernel = np.broadcast_to(np.float32(0), (channels, channels, 1, 1))
    layer = network.add_convolution_nd(x, channels, (1, 1), kernel)
    network.mark_output(network.add_activation(layer.outputs[0], ActivationType.RELU).outputs[0])
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    precisions = {one.name: dtype for one in network.layers}
    return CostQuestion(network.layers, specs, Platform("board", "board", "Board"), precisions=precisions)


@pytest.mark.parametrize(("dtype", "rate"), [(DataType.INT8, 100), (DataType.HALF, 50)])
def test_a_step_takes_the_longer_of_arithmetic_and_bytes_and_a_start(dtype, rate):
    (step,) = PEAKS(question(64, 4, dtype)).steps
    assert len(step.layers) == 2
    assert step.macs == 64 * 64 * 16
    assert step.compute_microseconds == pytest.approx(step.macs / rate)
    # Input and output in FP32, the kernel in the type that is computed in.
    assert step.bytes_moved == 2 * 64 * 16 * 4 + dtype.bytes_of(64 * 64)
    assert step.microseconds == pytest.approx(max(step.macs / rate, step.bytes_moved) + 3)


def test_it_is_a_lower_bound_with_its_source_and_basis():
    found = PEAKS(question(8, 2))
    assert (found.is_lower_bound, found.is_nominal, found.source, found.error_factor) == (True, False, "manual", None)
    assert found.basis
    assert found.microseconds == pytest.approx(sum(step.microseconds for step in found.steps))


def test_errors_of_parts_are_weighed_by_their_amounts():
    assert combined_error([(90.0, 1.1), (10.0, 2.0)]) == pytest.approx(1.19)
    assert combined_error([(1.0, 1.5), (0.0, None)]) == pytest.approx(1.5)
    assert combined_error([(1.0, 1.5), (1.0, None)]) is None
    assert combined_error([]) is None

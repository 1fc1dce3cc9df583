"""The roofline of the GPU: the longer of arithmetic and memory at published peaks."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.target.cost import CostQuestion
from dryfit_gpu.cost import LAUNCH_SECONDS, PARAMETERS, STAND_IN, STAND_IN_PARAMETERS, estimate_cost
from dryfit_gpu.platforms import PLATFORMS

BOARDS = [one for one in PLATFORMS if one.power_modes]


def question(board, channels=64, extent=8, dtype=DataType.INT8):
    network = Network("one")
    x = network.add_input("x", DataType.FLOAT, (1, channels, extent, extent))
    kernel = np.broadcast_to(np.float32(0), (channels, channels, 3, 3))
    layer = network.add_convolution_nd(x, channels, (3, 3), kernel)
    layer.padding_nd = (1, 1)
    network.mark_output(network.add_activation(layer.outputs[0], ActivationType.RELU).outputs[0])
    specs = {tensor.name: TensorSpec(tensor.shape, dtype) for tensor in network.tensors}
    return CostQuestion(network.layers, specs, board, precisions={one.name: dtype for one in network.layers})


def test_a_gpu_without_a_board_is_reckoned_as_one_whose_peaks_are_published():
    found = estimate_cost(question(PLATFORMS[0]))
    assert (found.is_nominal, found.is_lower_bound, found.energy) == (True, True, None)
    assert "NVIDIA T4" in found.basis
    assert "data sheet" in found.source
    assert not any(estimate_cost(question(board)).is_nominal for board in BOARDS)


@pytest.mark.parametrize(("dtype", "peak"), [(DataType.INT8, 130), (DataType.HALF, 65), (DataType.FLOAT, 8.1)])
def test_the_published_peaks_of_the_stand_in_come_back(dtype, peak):
    assert 2 * STAND_IN_PARAMETERS.macs(dtype) * STAND_IN.clock_hz / 1e12 == pytest.approx(peak, rel=0.01)
    assert STAND_IN_PARAMETERS.memory_bytes * STAND_IN.memory_clock_hz == pytest.approx(320e9)


def test_every_board_has_a_peak():
    assert {board.name for board in BOARDS} == set(PARAMETERS)


@pytest.mark.parametrize(("mode", "tops"), [("MAXN", 171), ("50W", 109), ("30W", 41), ("15W", 14)])
def test_the_published_peaks_of_agx_orin_come_back(mode, tops):
    board = BOARDS[0]
    dense = PARAMETERS[board.name].macs(DataType.INT8) * board.power_mode(mode).clock_hz * 2
    assert 2 * dense / 1e12 == pytest.approx(tops, rel=0.01)


@pytest.mark.parametrize(
    ("channels", "extent", "bound"), [(512, 64, "compute"), (4, 2048, "memory"), (4, 4, "overhead")]
)
def test_a_step_takes_the_longer_of_arithmetic_and_memory_and_a_launch(channels, extent, bound):
    (step,) = estimate_cost(question(BOARDS[0], channels, extent)).steps
    assert step.bound == bound
    longer = max(step.compute_microseconds, step.memory_microseconds)
    assert step.microseconds == pytest.approx(longer + LAUNCH_SECONDS * 1e6)


def test_bytes_are_those_of_input_weights_and_output():
    assert estimate_cost(question(BOARDS[0], 8, 4)).bytes_moved == 2 * 8 * 16 + 8 * 8 * 9
    assert estimate_cost(question(BOARDS[0], 8, 4, DataType.HALF)).bytes_moved == 2 * (2 * 8 * 16 + 8 * 8 * 9)


def test_narrower_types_are_quicker():
    types = (DataType.INT8, DataType.HALF, DataType.FLOAT)
    times = [estimate_cost(question(BOARDS[0], 512, 64, dtype)).microseconds for dtype in types]
    assert times == sorted(times)
    assert len(set(times)) == 3

"""The formula of the cost model, on steps whose cycles and bytes are reckoned by hand."""

from __future__ import annotations

import pytest

from dryfit.network.data_types import DataType
from dryfit.target.power_mode import PowerMode
from dryfit_dla.cost.formula import CostStep, FeatureMap, Kernels, bytes_from_dram, step_cost
from dryfit_dla.cost.parameters import PARAMETERS

ORIN, XAVIER = PARAMETERS["agx-orin-64"], PARAMETERS["agx-xavier"]
MODE = PowerMode("1 GHz", 1e9, ORIN.memory_clock_hz)
MIB = 1 << 20


def cycles(kernels, parameters=ORIN, dtype=DataType.INT8):
    return kernels.cycles(parameters.rates[dtype], parameters.sparse_gain)


def step(*sizes, kernels=None, dtype=DataType.INT8):
    maps = [FeatureMap(1, 32, size // 32, dtype) for size in sizes]
    return CostStep(("one",), dtype, maps[:-1], maps[-1:], kernels)


def test_full_blocks_take_one_cycle_for_as_many_products_as_the_rate():
    assert cycles(Kernels(3, 3, 64, 128, 1, positions=100)) == 100 * 9 * 64 * 128 / 8192


@pytest.mark.parametrize(
    ("channels", "maps", "padded"), [(65, 64, (128, 64)), (64, 65, (64, 128)), (1, 1, (64, 64)), (128, 128, (128, 128))]
)
def test_channels_and_maps_are_rounded_up_to_whole_blocks(channels, maps, padded):
    assert cycles(Kernels(1, 1, channels, maps, 1, positions=8192)) == padded[0] * padded[1]


@pytest.mark.parametrize(("maps", "padded"), [(32, 32), (33, 64)])
def test_xavier_rounds_maps_up_to_32(maps, padded):
    assert cycles(Kernels(1, 1, 64, maps, 1, positions=2048), XAVIER) == 64 * padded


@pytest.mark.parametrize("groups", [2, 32, 64])
def test_each_map_of_a_grouped_convolution_takes_one_block_of_channels(groups):
    assert cycles(Kernels(3, 3, 64 * groups, 64, 1, 8192)) == groups * cycles(
        Kernels(3, 3, 64 * groups, 64, groups, 8192)
    )


@pytest.mark.parametrize(("window", "row"), [(7, 64), (5, 64), (3, 32), (1, 32)])
def test_a_row_of_the_window_over_an_image_is_rounded_up_as_one(window, row):
    kernels = Kernels(window, window, 3, 64, 1, positions=8192, is_image=True)
    assert cycles(kernels) == window * row * 64


def test_sparse_weights_gain_on_orin_and_nothing_on_xavier():
    dense, sparse = (Kernels(3, 3, 128, 128, 1, 4096, is_sparse=chosen) for chosen in (False, True))
    assert cycles(dense) / cycles(sparse) == pytest.approx(ORIN.sparse_gain)
    assert cycles(dense, XAVIER) == cycles(sparse, XAVIER)


@pytest.mark.parametrize(("size", "moved"), [(MIB - 32, 0), (MIB, 0), (MIB + 32, 32), (3 * MIB, 2 * MIB)])
def test_what_is_beyond_one_mebibyte_of_each_tensor_goes_through_dram(size, moved):
    assert bytes_from_dram(step(size, 32), ORIN) == moved
    assert bytes_from_dram(step(size, size, size), ORIN) == 3 * moved


def test_all_weights_go_through_dram():
    kernels = Kernels(3, 3, 33, 31, 1, positions=1)
    assert bytes_from_dram(step(32, 32, kernels=kernels), ORIN) == 9 * 64 * 32


@pytest.mark.parametrize(("dtype", "size"), [(DataType.INT8, 32), (DataType.HALF, 32)])
def test_a_tensor_of_few_channels_takes_whole_blocks_in_memory(dtype, size):
    assert FeatureMap(1, 1, 1, dtype).size_bytes(ORIN.rates[dtype]) == size


@pytest.mark.parametrize(("channels", "size"), [(1, 100), (3, 400), (4, 400)])
def test_an_image_takes_one_or_four_channels_a_pixel(channels, size):
    assert FeatureMap(1, channels, 100, DataType.INT8, is_image=True).size_bytes(ORIN.rates[DataType.INT8]) == size


def test_multipliers_memory_and_overhead_are_added():
    kernels = Kernels(1, 1, 64, 64, 1, positions=20_000)
    found = step_cost(step(2 * MIB, 2 * MIB, kernels=kernels), ORIN, MODE)
    assert found.compute_microseconds == pytest.approx(20_000 * 64 * 64 / 8192 / 1e3)
    assert found.memory_microseconds == pytest.approx((2 * MIB + 64 * 64) / 54.62e9 * 1e6)
    assert found.overhead_microseconds == pytest.approx(7.501 + 7.389)
    parts = (found.compute_microseconds, found.memory_microseconds, found.overhead_microseconds)
    assert found.microseconds == pytest.approx(sum(parts))


def test_a_slower_memory_slows_the_bytes_and_nothing_else():
    slow = PowerMode("slow memory", MODE.clock_hz, MODE.memory_clock_hz / 2)
    before, after = (step_cost(step(9 * MIB, 9 * MIB), ORIN, mode) for mode in (MODE, slow))
    assert after.memory_microseconds == pytest.approx(2 * before.memory_microseconds)
    assert after.overhead_microseconds == before.overhead_microseconds

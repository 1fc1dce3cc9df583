"""The native histogram: the same bits as the reference, for any values, layout and number of threads."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, Guarded

from dryfit.network.data_types import DataType
from dryfit.network.layers.ranking import RECORD_WORDS
from dryfit.network.network import Network
from dryfit.reference.reduction import histogram_record
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels.histogram import count_magnitudes
from dryfit_cpu.schedule import create_schedule


def record_of(array, threads=1, runs=1):
    """What the kernel writes, into memory that had other contents."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, array.shape)
    layer = network.add_histogram(x)
    record = layer.get_output(0)
    group, specs = LayerGroup([layer]), {"x": x.spec, record.name: record.spec}
    size = count_magnitudes.workspace_bytes(group, specs, threads)
    workspace = np.full(size + 64, 0xA5, np.uint8)
    workspace = workspace[-workspace.ctypes.data % 64 :][:size]
    found = np.full(RECORD_WORDS, -7, np.int64)
    binding = Binding(group, specs, {"x": array, record.name: found}, {}, workspace, threads)
    schedule = create_schedule([count_magnitudes.bind(binding)], threads)
    for _ in range(runs):
        schedule.run()
    return found


def bits(pattern):
    return np.array(pattern, np.uint32).view(np.float32)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=80))
@example([0x80000000] * 40)  # minus zero
@example([0x00000001, 0x80000001] * 20)  # the smallest denormals
@example([0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001] * 6)
def test_any_bits_are_counted_as_the_reference_counts_them(pattern):
    values = bits(pattern)
    np.testing.assert_array_equal(record_of(values), histogram_record(values))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 20_000),
    st.floats(-140, 120),
    st.floats(0, 40),
    st.sampled_from(["both", "positive", "negative", "mostly zero"]),
    st.integers(0, 2**32 - 1),
)
def test_values_of_any_growth_are_counted_as_the_reference_counts_them(count, power, growth, sign, seed):
    random = np.random.default_rng(seed)
    values = random.standard_normal(count) * np.exp2(np.linspace(power, min(power + growth, 124), count))
    if sign in ("positive", "negative"):
        values = np.abs(values) * (1 if sign == "positive" else -1)
    elif sign == "mostly zero":
        values *= random.random(count) < 0.01
    values = values.astype(np.float32)
    np.testing.assert_array_equal(record_of(values), histogram_record(values))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_neither_layout_nor_threads_change_the_record(layout, threads):
    values = np.random.default_rng(3).standard_normal((2, 37, 41, 43)).astype(np.float32)
    guarded = Guarded.new(values.shape, np.float32, layout)
    guarded.array[...] = values
    np.testing.assert_array_equal(record_of(guarded.array, threads, runs=2), histogram_record(values))
    assert guarded.is_intact()


def test_a_block_with_one_nan_is_counted_but_for_it():
    values = np.random.default_rng(4).standard_normal(10_000).astype(np.float32)
    values[[17, 5_000]] = np.nan, -np.inf
    np.testing.assert_array_equal(record_of(values, 2), histogram_record(values))

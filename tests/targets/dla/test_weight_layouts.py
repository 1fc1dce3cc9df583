"""How weights lie in the DLA's global DRAM."""

import itertools

import attrs
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tests.targets.dla.questions import activation, convolution, scale

from dryfit.network.data_types import DataType
from dryfit.target.memory_pools import WeightsOfLayer
from dryfit_dla.weight_layouts import (
    FP19_OF_16,
    FP19_OF_32,
    KERNEL_GROUPS,
    LAYOUTS,
    ROW_MAJOR,
    layout_of,
    stored_bytes,
)

TYPES = st.sampled_from([DataType.HALF, DataType.INT8])
SHAPES = st.tuples(st.integers(1, 70), st.integers(1, 130), st.integers(1, 3), st.integers(1, 3))


def values_of(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(dtype.numpy)


@pytest.mark.parametrize(("dtype", "group"), [(DataType.HALF, 16), (DataType.INT8, 32)])
def test_kernels_lie_group_by_group_block_by_block_position_by_position(dtype, group):
    values = values_of((group + 3, 70, 2, 3), dtype)
    expected = []
    for kernels in (range(group), range(group, group + 3)):
        for channels in (range(64), range(64, 70)):
            for row, column in itertools.product(range(2), range(3)):
                for kernel, channel in itertools.product(kernels, channels):
                    expected.append(values[kernel, channel, row, column])
    memory = KERNEL_GROUPS.pack(values).view(dtype.numpy)
    assert memory[: len(expected)].tolist() == expected
    assert not memory[len(expected) :].any()
    assert memory.nbytes % 128 == 0
    assert memory.nbytes - values.nbytes < 128


@settings(max_examples=40, deadline=None)
@given(SHAPES, TYPES, st.sampled_from(sorted(LAYOUTS)))
def test_unpacking_gives_what_was_packed_on_any_shape(shape, dtype, name):
    layout, values = LAYOUTS[name], values_of(shape, dtype)
    memory = layout.pack(values)
    assert memory.dtype == np.uint8
    assert memory.nbytes == layout.size_bytes(shape, dtype)
    unpacked = layout.unpack(memory, shape, dtype)
    assert unpacked.dtype == values.dtype
    np.testing.assert_array_equal(unpacked, values)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 5), (1, 5, 1, 1), (5, 4, 4)])
def test_containers_of_four_bytes_take_any_rank(shape):
    values = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) / 3
    np.testing.assert_array_equal(FP19_OF_16.unpack(FP19_OF_16.pack(values), shape, DataType.FLOAT), values)


@pytest.mark.parametrize(
    ("layout", "channels", "expected"),
    [(FP19_OF_16, 16, 16), (FP19_OF_16, 17, 32), (FP19_OF_32, 17, 32), (FP19_OF_32, 33, 64), (FP19_OF_32, 32, 32)],
)
def test_channels_are_filled_up_to_the_next_multiple(layout, channels, expected):
    assert layout.size_bytes((1, channels, 2, 3), DataType.HALF) == 4 * expected * 6
    memory = layout.pack(np.ones((1, channels, 2, 3), np.float32)).view(np.float32).reshape(1, expected, 2, 3)
    assert memory[:, :channels].all()
    assert not memory[:, channels:].any()


def weights(layer, dtype, precision, family, shape=(8, 20, 3, 3), parameter="kernel", index=-1):
    return WeightsOfLayer(layer, parameter, index, shape, dtype, precision, family)


def test_a_kernel_has_the_type_that_is_computed_in_on_every_family():
    layer = convolution((1, 20, 8, 8))
    for family, precision in itertools.product(("orin", "xavier"), (DataType.HALF, DataType.INT8)):
        for own in (weights(layer, DataType.FLOAT, precision, family), weights(layer, precision, precision, family)):
            assert layout_of(own) == (KERNEL_GROUPS, precision)
            assert stored_bytes(own) == -(-8 * 20 * 9 * precision.bits // 8 // 128) * 128


def test_a_bias_keeps_the_type_of_the_accumulator():
    layer = convolution((1, 20, 8, 8))
    own = weights(layer, DataType.FLOAT, DataType.INT8, "orin", (8,), "bias")
    assert layout_of(own) == (ROW_MAJOR, DataType.FLOAT)
    assert stored_bytes(own) == 32


@pytest.mark.parametrize(
    ("family", "precision", "expected"),
    [
        ("orin", DataType.HALF, 4 * 32 * 9),
        ("orin", DataType.INT8, 4 * 32 * 9),
        ("xavier", DataType.HALF, 2 * 20 * 9),
    ],
)
def test_what_is_no_kernel_grows_on_orin_only(family, precision, expected):
    own = weights(activation(), DataType.HALF, precision, family, (1, 20, 3, 3), "", 1)
    assert stored_bytes(own) == expected


@pytest.mark.parametrize(("precision", "expected"), [(DataType.HALF, 16 * 64 * 4), (DataType.INT8, 32 * 64 * 4)])
@pytest.mark.parametrize("shape", [(192,), (3, 8, 8), (1, 3, 8, 8)])
def test_an_elementwise_scale_takes_its_channels_however_its_weights_were_given(precision, expected, shape):
    layer = scale("ELEMENTWISE", (1, 3, 8, 8), scales=np.arange(192, dtype=np.float32).reshape(shape))
    own = weights(layer, DataType.FLOAT, precision, "orin", shape, "scale")
    assert stored_bytes(own) == expected
    assert stored_bytes(attrs.evolve(own, family="xavier")) == 192 * 4

"""Gathers, paddings, slices beyond their input and selects copy elements of every type, as their references do."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, chosen_kernel, run_group

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Select
from dryfit.network.layers.indexing import Gather
from dryfit.network.layers.movement import Concatenation, Padding
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import Resize
from dryfit.network.layers.slice import SampleMode, Slice
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.reference.registry import evaluate

SHAPE = (2, 20, 5, 9)


def assert_copied(layer, kernel_name, dtype=DataType.INT8, layout="channels_last", others=(), shape=SHAPE, inputs=1):
    """The layer gives what its reference gives, by this kernel, with one thread and with three."""
    network, generator = Network(), np.random.default_rng(3)
    values = [generator.integers(-128, 128, shape).astype(dtype.numpy) for _ in range(inputs)]
    tensors = [network.add_input(f"x{index}", dtype, shape) for index in range(inputs)]
    tensors += [network.add_constant(value.shape, value).get_output(0) for value in others]
    added = network.add_layer(layer, tensors)
    assert chosen_kernel(network, [added]).name == kernel_name
    feeds = {}
    for tensor, value in zip(network.inputs, values, strict=True):
        feeds[tensor.name] = Guarded.new(shape, dtype.numpy, layout).array
        feeds[tensor.name][...] = value
    (expected,) = evaluate(added, [*values, *others])
    for threads in (1, 3):
        actual = run_group(network, [added], feeds, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT, DataType.HALF, DataType.INT64])
def test_a_gather_along_an_axis_copies_elements(dtype, axis, layout):
    indices = np.array([1, 0, -1, 0, 1], np.int64)
    assert_copied(Gather(axis=axis), "cpu.picking", dtype, layout, [indices])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sides", [((1, 2), (0, 3)), ((-1, 2), (2, -3)), ((0, 0), (0, 0))])
def test_a_padding_writes_zeros_around_and_crops(sides, layout):
    assert_copied(Padding(pre_padding_nd=sides[0], post_padding_nd=sides[1]), "cpu.picking", layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", [SampleMode.FILL, SampleMode.CLAMP, SampleMode.WRAP, SampleMode.REFLECT])
def test_a_slice_beyond_its_input_is_filled_as_its_mode_says(mode, layout):
    layer = Slice(start=(0, -3, 1, 12), shape=(2, 26, 6, 8), stride=(1, 1, 2, -1), mode=mode)
    assert_copied(layer, "cpu.picking", layout=layout)


def test_an_index_past_the_end_is_an_error():
    with pytest.raises(Exception, match="An index is out of range"):
        assert_copied(Gather(axis=1), "cpu.picking", others=[np.array([20], np.int64)])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT])
def test_a_select_takes_elements_by_its_condition(dtype, layout):
    network, generator = Network(), np.random.default_rng(1)
    condition = generator.random((2, 1, 5, 9)) > 0.5
    values = [generator.integers(-128, 128, shape).astype(dtype.numpy) for shape in (SHAPE, (1, 20, 1, 1))]
    tensors = [network.add_input("condition", DataType.BOOL, condition.shape)]
    tensors += [network.add_input(name, dtype, value.shape) for name, value in zip("ab", values, strict=True)]
    layer = network.add_layer(Select(), tensors)
    assert chosen_kernel(network, [layer]).name == "cpu.select"
    feeds = {"condition": condition, "a": values[0], "b": values[1]}
    for threads in (1, 3):
        actual = run_group(network, [layer], feeds, layout=layout, threads=threads)
        np.testing.assert_array_equal(actual, np.where(condition, *values))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quantized_values_are_resized_to_the_nearest_as_they_are(layout):
    assert_copied(Resize(shape=(2, 20, 11, 7)), "cpu.resize", layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_maxima_of_quantized_values_are_values(layout):
    sides = {"pre_padding": (1, 1), "post_padding": (0, 1), "stride_nd": (2, 1)}
    assert_copied(Pooling(pooling_type=PoolingType.MAX, window_size_nd=(3, 3), **sides), "cpu.pooling", layout=layout)
    reduce = Reduce(op=ReduceOperation.MAX, axes=0b1100, keep_dims=True)
    assert_copied(reduce, "cpu.global_pooling", layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quantized_tensors_of_one_scale_are_concatenated_as_they_are(layout):
    assert_copied(Concatenation(axis=1), "cpu.concatenation", layout=layout, inputs=3)

"""Ids, masks and positions: whole numbers, questions about real ones and rows by index, as the references give them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.targets.cpu.group_runner import LAYOUTS, Guarded, chosen_kernel, run_group

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select, Unary, UnaryOperation
from dryfit.network.layers.indexing import Gather, GatherMode
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.slice import Shuffle
from dryfit.network.network import Network
from dryfit.reference.registry import evaluate

SHAPE, ONE = (2, 20, 5, 9), (1, 1, 1, 1)
OPERATION = ElementWiseOperation
COMPARISONS = [OPERATION.EQUAL, OPERATION.GREATER, OPERATION.LESS, OPERATION.GREATER_EQUAL, OPERATION.LESS_EQUAL]
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 2.0**31, -(2.0**31) - 512, 2.0**63, -3e38, 1e-40])


def values_of(dtype, shape, seed=0):
    """Values over a type's whole range, its ends and small ones among them; of real ones what is special."""
    generator = np.random.default_rng(seed)
    if dtype is DataType.BOOL:
        return generator.random(shape) > 0.5
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        wide = generator.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
        small = generator.integers(-2, 3, shape, dtype.numpy)
        ends = generator.choice(np.array([limits.min, limits.max], dtype.numpy), shape)
        return np.choose(generator.integers(0, 3, shape), [wide, small, ends])
    normal = (generator.standard_normal(shape) * 3).round(1)
    with np.errstate(over="ignore"):
        return np.where(generator.random(shape) < 0.4, generator.choice(SPECIAL, shape), normal).astype(dtype.numpy)


def assert_like_reference(layers, values, kernel_name, layout="channels_last", threads=(1, 3)):
    """A chain of layers gives what the references give; a layer reads values by number, or what is before it."""
    network = Network()
    tensors = [
        network.add_input(f"x{index}", DataType.from_numpy(value.dtype), value.shape)
        for index, value in enumerate(values)
    ]
    feeds, known = {}, {}
    for tensor, value in zip(tensors, values, strict=True):
        feeds[tensor.name] = Guarded.new(value.shape, value.dtype, layout).array
        feeds[tensor.name][...] = known[tensor.name] = value
    added = []
    for layer, places in layers:
        read = [tensors[place] if isinstance(place, int) else added[-1].outputs[0] for place in places]
        added.append(network.add_layer(layer, read))
        with np.errstate(all="ignore"):
            (known[added[-1].outputs[0].name],) = evaluate(added[-1], [known[tensor.name] for tensor in read])
    assert chosen_kernel(network, added).name == kernel_name
    expected = known[added[-1].outputs[0].name]
    for count in threads:
        actual = run_group(network, added, feeds, layout=layout, threads=count)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


ARITHMETIC = [OPERATION.SUM, OPERATION.SUB, OPERATION.PROD, OPERATION.MAX, OPERATION.MIN]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operation", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64])
def test_whole_numbers_wrap_around_and_are_compared_as_numpy_does(dtype, operation, layout):
    others = values_of(dtype, (1, 20, 1, 9), seed=1)
    values = [values_of(dtype, SHAPE), others]
    assert_like_reference([(Elementwise(op=operation), (0, 1))], values, "cpu.whole_numbers", layout)


@pytest.mark.parametrize("given", [DataType.BOOL, DataType.INT32, DataType.INT64, DataType.FLOAT])
@pytest.mark.parametrize("wanted", [DataType.BOOL, DataType.INT32, DataType.INT64, DataType.FLOAT])
def test_casts_of_whole_numbers_round_cut_and_saturate_as_the_references_do(given, wanted):
    if given is wanted:
        pytest.skip("no cast")
    kernel = "cpu.pointwise" if {given, wanted} == {DataType.BOOL, DataType.FLOAT} else "cpu.whole_numbers"
    assert_like_reference([(Cast(to_type=wanted), (0,))], [values_of(given, (3, 701))], kernel)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64])
@pytest.mark.parametrize("axes", [0b0001, 0b1000, 0b0101, 0b1111])
@pytest.mark.parametrize(
    "operation", [ReduceOperation.SUM, ReduceOperation.PROD, ReduceOperation.MAX, ReduceOperation.MIN]
)
def test_whole_numbers_are_reduced_in_their_own_type(operation, axes, dtype):
    layer = Reduce(op=operation, axes=axes, keep_dims=axes == 0b0101)
    assert_like_reference([(layer, (0,))], [values_of(dtype, SHAPE)], "cpu.whole_number_reduction")


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF])
@pytest.mark.parametrize("operation", COMPARISONS)
def test_real_numbers_are_compared(operation, dtype):
    values = [values_of(dtype, SHAPE), values_of(dtype, (1, 1, 5, 9), seed=1)]
    assert_like_reference([(Elementwise(op=operation), (0, 1))], values, "cpu.pointwise")
    negated = [(Elementwise(op=operation), (0, 1)), (Unary(op=UnaryOperation.NOT), ("before",))]
    assert_like_reference(negated, values, "cpu.pointwise")


@pytest.mark.parametrize("operation", [OPERATION.AND, OPERATION.OR, OPERATION.XOR])
def test_truths_are_combined(operation):
    values = [values_of(DataType.BOOL, SHAPE), values_of(DataType.BOOL, (1, 20, 1, 9), seed=1)]
    assert_like_reference([(Elementwise(op=operation), (0, 1))], values, "cpu.pointwise")


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF, DataType.BF16])
@pytest.mark.parametrize("operation", [UnaryOperation.ISNAN, UnaryOperation.ISINF])
def test_real_numbers_are_asked_what_they_are(operation, dtype):
    assert_like_reference([(Unary(op=operation), (0,))], [values_of(dtype, SHAPE)], "cpu.pointwise")


@pytest.mark.parametrize("shape", [SHAPE, (1, 20, 1, 1), (1, 1, 1, 1)])
def test_what_is_no_number_is_replaced_in_one_pass(shape):
    layers = [(Unary(op=UnaryOperation.ISNAN), (0,)), (Select(), ("before", 1, 0))]
    assert_like_reference(layers, [values_of(DataType.FLOAT, SHAPE), np.full(shape, 7, np.float32)], "cpu.pointwise")


@pytest.mark.parametrize("shapes", [(SHAPE, SHAPE), (SHAPE, ONE), (ONE, SHAPE), (ONE, ONE), ((1, 20, 1, 1), SHAPE)])
@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.INT32])
def test_a_select_of_four_bytes_copies_bits_whatever_is_repeated(dtype, shapes):
    values = [values_of(DataType.BOOL, SHAPE), *(values_of(dtype, shape, seed) for seed, shape in enumerate(shapes))]
    assert_like_reference([(Select(), (0, 1, 2))], values, "cpu.select", "linear")


TYPES = [DataType.FLOAT, DataType.HALF, DataType.INT8, DataType.INT32, DataType.INT64, DataType.BOOL]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_gathered_by_indices_of_the_run(dtype, kind, layout):
    generator = np.random.default_rng(3)
    data = values_of(dtype, SHAPE)
    for axis in range(4):
        indices = generator.integers(-SHAPE[axis], SHAPE[axis], (3, 2), kind)
        assert_like_reference([(Gather(axis=axis), (0, 1))], [data, indices], "cpu.gathering", layout)
    for width in (1, 3):
        vectors = np.stack([generator.integers(-extent, extent, (4, 3), kind) for extent in SHAPE[:width]], axis=-1)
        layer = Gather(mode=GatherMode.ND)
        assert_like_reference([(layer, (0, 1))], [data, vectors], "cpu.gathering", layout)


@pytest.mark.parametrize("mode", [GatherMode.DEFAULT, GatherMode.ND])
def test_an_index_outside_is_refused_and_the_next_run_is_right(mode):
    data, indices = values_of(DataType.FLOAT, (6, 3)), np.array([[1], [-6], [5]], np.int64)
    for wrong in (6, -7, 2**62):
        with pytest.raises(ExecutionError, match=rf"An index is out of range \(found {wrong};"):
            run_gather(mode, data, np.where(indices == 1, wrong, indices))
    assert_like_reference([(Gather(mode=mode), (0, 1))], [data, indices], "cpu.gathering", "linear")


def run_gather(mode, data, indices):
    """Run a gather alone; returns what it gives."""
    network = Network()
    tensors = [
        network.add_input("x", DataType.FLOAT, data.shape),
        network.add_input("i", DataType.INT64, indices.shape),
    ]
    layer = network.add_layer(Gather(mode=mode), tensors)
    return run_group(network, [layer], {"x": data, "i": indices}, layout="linear")


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64, DataType.BOOL])
def test_whole_numbers_are_moved_and_concatenated_as_they_are(dtype):
    value = values_of(dtype, SHAPE)
    turned = Shuffle(first_transpose=(3, 1, 0, 2), reshape_dims=(9, 40, 5))
    assert_like_reference([(turned, (0,))], [value], "cpu.movement")
    values = [value, values_of(dtype, (2, 3, 5, 9), seed=1)]
    assert_like_reference([(Concatenation(axis=1), (0, 1))], values, "cpu.concatenation")

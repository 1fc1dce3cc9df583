"""Shuffle: shapes, also dynamic ones, and refusals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.network.layers.inferring import assert_refused, indices, known, shape_of, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.slice import Shuffle
from dryfit.network.tensor import TensorSpec


@pytest.mark.parametrize(
    ("shape", "dims", "expected"),
    [
        ((2, 3, 4), (0, -1), (2, 12)),
        ((-1, 3, 4), (0, -1), (-1, 12)),
        ((-1, 3, 4), (-1, 12), (-1, 12)),
        ((-1, 3, 4), (0, 3, 2, -1), (-1, 3, 2, 2)),
        ((-1, -1, 4), (0, 0, 2, -1), (-1, -1, 2, 2)),
        ((-1, -1, 4), (0, -1), (-1, -1)),
        ((-1, 3), (4, 3), (4, 3)),
        ((1,), (), ()),
        ((0, 3), (0, 5, 3), (0, 5, 3)),
        ((2, 3), (5, -1), None),
        ((2, 3), (7,), None),
        ((2, 3), (-1, -1), None),
        ((2, 3), (2, -2), None),
        ((2,), (2, 0), None),
        ((-1, 3), (4, 4), None),
        ((-1, 4), (0, 3, -1), None),
        ((0, 3), (0, -1), None),
    ],
)
def test_a_reshape_keeps_the_number_of_elements(shape, dims, expected):
    layer = Shuffle(reshape_dims=dims)
    if expected is None:
        assert_refused(layer, [TensorSpec(shape, DataType.INT8)], "")
    else:
        assert shape_of(layer, TensorSpec(shape, DataType.INT8)) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_dynamic_extents_never_contradict_the_static_ones(shape, data):
    dims = data.draw(st.permutations(shape))
    dims = [0 if axis < len(shape) and dims[axis] == shape[axis] else dims[axis] for axis in range(len(dims))]
    if data.draw(st.booleans()):
        dims[data.draw(st.integers(0, len(dims) - 1))] = -1
    static = shape_of(Shuffle(reshape_dims=dims), spec(*shape))
    assert math.prod(static) == math.prod(shape)
    hidden = [-1 if data.draw(st.booleans()) else extent for extent in shape]
    dynamic = shape_of(Shuffle(reshape_dims=dims), spec(*hidden))
    assert all(d in (-1, s) for d, s in zip(dynamic, static, strict=True))


def test_zero_is_an_extent_where_it_is_no_placeholder():
    layer = Shuffle(reshape_dims=(0, 3), zero_is_placeholder=False)
    assert shape_of(layer, spec(5, 0)) == (0, 3)
    assert_refused(layer, [spec(2, 3)], "A reshape must keep the number of elements", found="(2, 3) to (0, 3)")


def test_the_reshape_may_be_an_input():
    assert shape_of(Shuffle(), spec(-1, 4), known(0, 2, 2)) == (-1, 2, 2)
    assert shape_of(Shuffle(second_transpose=(1, 0)), spec(2, 4), indices(2)) == (-1, -1)
    assert_refused(Shuffle(), [spec(2, 4), indices(-1)], "must be a vector of static length", found=(-1,))
    assert_refused(Shuffle(), [spec(2, 4), spec(2)], "wrong type", found="FP32")


def test_transposes_are_permutations():
    assert shape_of(Shuffle(first_transpose=(2, 0, 1)), spec(2, -1, 4)) == (4, 2, -1)
    refused = Shuffle(first_transpose=(0, 0, 1))
    assert_refused(refused, [spec(2, 3, 4)], "`first_transpose` must be a permutation", found=(0, 0, 1))
    assert_refused(Shuffle(second_transpose=(0,)), [spec(2, 3)], "`second_transpose`", allowed="each of 2 axes once")

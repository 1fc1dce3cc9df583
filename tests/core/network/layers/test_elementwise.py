"""Shapes, types and checks of layers that compute element by element."""

from __future__ import annotations

import pytest
from tests.core.network.layers.inferring import assert_refused, shape_of, spec

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation, Select, UnaryOperation

from .building import network_with

Op = ElementWiseOperation
TENSORRT = {
    "SUM",
    "PROD",
    "MAX",
    "MIN",
    "SUB",
    "DIV",
    "POW",
    "FLOOR_DIV",
    "AND",
    "OR",
    "XOR",
    "EQUAL",
    "GREATER",
    "LESS",
}


@pytest.mark.parametrize("name", Op.__members__)
def test_what_tensorrt_lacks_is_host_only(name):
    assert Op[name].is_host_only == (name not in TENSORRT)


@pytest.mark.parametrize(
    ("first", "second", "output"),
    [
        ((2, 1, 4), (1, 3, 4), (2, 3, 4)),
        ((-1, 3), (1, 3), (-1, 3)),
        ((-1, 3), (5, 1), (5, 3)),
        ((-1, -1), (1, -1), (-1, -1)),
        ((0, 3), (1, 3), (0, 3)),
        ((), (), ()),
    ],
)
def test_extents_of_1_are_repeated(first, second, output):
    network, x, y = network_with(first, second)
    assert network.add_elementwise(x, y, Op.SUM).get_output(0).shape == output
    assert network.add_elementwise(y, x, Op.SUM).get_output(0).shape == output


def test_comparisons_give_bool_and_arithmetic_the_inputs_type():
    network, x, y = network_with((2,), (2,), dtype=DataType.HALF)
    assert network.add_elementwise(x, y, Op.GREATER).get_output(0).dtype is DataType.BOOL
    assert network.add_elementwise(x, y, Op.DIV).get_output(0).dtype is DataType.HALF


@pytest.mark.parametrize(
    ("shapes", "dtypes", "op", "message"),
    [
        (((2, 3), (3,)), (DataType.FLOAT,) * 2, Op.SUM, r"same rank.*\(2, 3\) and \(3,\).*shuffle"),
        (((2, 3), (2, 4)), (DataType.FLOAT,) * 2, Op.SUM, r"must be equal or 1.*\(2, 3\) and \(2, 4\)"),
        (((2,), (2,)), (DataType.FLOAT, DataType.HALF), Op.SUM, "same type.*FP32 and FP16.*cast"),
        (((2,), (2,)), (DataType.FLOAT,) * 2, Op.AND, "AND requires BOOL.*found FP32"),
        (((2,), (2,)), (DataType.FLOAT,) * 2, Op.BITWISE_AND, "BITWISE_AND requires integer.*found FP32"),
        (((2,), (2,)), (DataType.BOOL,) * 2, Op.SUM, "SUM requires numeric.*found BOOL"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(shapes, dtypes, op, message):
    network, x, y = network_with(*shapes, dtype=dtypes)
    with pytest.raises(NetworkError, match=message):
        network.add_elementwise(x, y, op)


def test_an_exponent_may_have_another_type():
    network, x, y = network_with((2,), (2,), dtype=[DataType.INT32, DataType.FLOAT])
    assert network.add_elementwise(x, y, Op.POW).get_output(0).dtype is DataType.INT32


UnaryOp = UnaryOperation


def test_functions_of_other_formats_are_host_only():
    assert [op for op in UnaryOp if op.is_host_only] == [UnaryOp.BITWISE_NOT, UnaryOp.RSQRT]


@pytest.mark.parametrize("op", [op for op in UnaryOp if op not in (UnaryOp.NOT, UnaryOp.BITWISE_NOT)])
def test_floating_point_numbers_are_taken_by_every_function(op):
    network, x = network_with((2, -1))
    output = network.add_unary(x, op).get_output(0)
    assert output.shape == (2, -1)
    assert output.dtype is (DataType.BOOL if op in (UnaryOp.ISINF, UnaryOp.ISNAN) else DataType.FLOAT)


@pytest.mark.parametrize(
    ("op", "dtype", "allowed"),
    [
        (UnaryOp.NOT, DataType.FLOAT, "BOOL"),
        (UnaryOp.BITWISE_NOT, DataType.FLOAT, "integer types"),
        (UnaryOp.EXP, DataType.INT32, "floating-point types and INT8"),
        (UnaryOp.NEG, DataType.BOOL, "numbers"),
    ],
)
def test_other_types_are_refused(op, dtype, allowed):
    network, x = network_with((2,), dtype=dtype)
    with pytest.raises(NetworkError, match=f"{op.name} does not support.*found {dtype.text}; allowed: {allowed}"):
        network.add_unary(x, op)


def test_the_three_inputs_are_broadcast():
    condition = spec(2, 1, dtype=DataType.BOOL)
    assert shape_of(Select(), condition, spec(1, 3), spec(1, 1)) == (2, 3)
    assert shape_of(Select(), condition, spec(-1, 3), spec(2, -1)) == (2, 3)


def test_what_does_not_fit_is_refused():
    condition = spec(2, dtype=DataType.BOOL)
    assert_refused(Select(), [spec(2), spec(2), spec(2)], "The condition must be BOOL", found="FP32", allowed="BOOL")
    assert_refused(
        Select(),
        [condition, spec(2), spec(2, dtype=DataType.INT8)],
        "All inputs must have the same type",
        found="FP32 and INT8",
    )
    assert_refused(Select(), [condition, spec(2), spec(3)], "The dimensions of the inputs must be equal or 1")
    assert_refused(Select(), [condition, spec(2), spec(1, 2)], "The inputs must have the same rank")

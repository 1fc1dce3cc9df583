import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.unary import UnaryOperation

from .building import network_with

Op = UnaryOperation


def test_only_bitwise_not_is_host_only():
    assert [op for op in Op if op.is_host_only] == [Op.BITWISE_NOT]


@pytest.mark.parametrize("op", [op for op in Op if op not in (Op.NOT, Op.BITWISE_NOT)])
def test_floating_point_numbers_are_taken_by_every_function(op):
    network, x = network_with((2, -1))
    output = network.add_unary(x, op).get_output(0)
    assert output.shape == (2, -1)
    assert output.dtype is (DataType.BOOL if op in (Op.ISINF, Op.ISNAN) else DataType.FLOAT)


@pytest.mark.parametrize(
    ("op", "dtype", "allowed"),
    [
        (Op.NOT, DataType.FLOAT, "BOOL"),
        (Op.BITWISE_NOT, DataType.FLOAT, "integer types"),
        (Op.EXP, DataType.INT32, "floating-point types and INT8"),
        (Op.NEG, DataType.BOOL, "numbers"),
    ],
)
def test_other_types_are_refused(op, dtype, allowed):
    network, x = network_with((2,), dtype=dtype)
    with pytest.raises(NetworkError, match=f"{op.name} does not take.*found {dtype.name}; allowed: {allowed}"):
        network.add_unary(x, op)

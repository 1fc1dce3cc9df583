import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.matrix_multiply import MatrixOperation

from .building import network_with

N, T, V = MatrixOperation.NONE, MatrixOperation.TRANSPOSE, MatrixOperation.VECTOR


@pytest.mark.parametrize(
    ("first", "op0", "second", "op1", "output"),
    [
        ((2, 3), N, (3, 4), N, (2, 4)),
        ((3, 2), T, (3, 4), N, (2, 4)),
        ((2, 3), N, (4, 3), T, (2, 4)),
        ((5, 2, 3), N, (1, 3, 4), N, (5, 2, 4)),
        ((5, 3), V, (5, 3, 4), N, (5, 4)),
        ((5, 2, 3), N, (5, 3), V, (5, 2)),
        ((3,), V, (3,), V, ()),
        ((-1, 2, -1), N, (1, 3, 4), N, (-1, 2, 4)),
    ],
)
def test_the_shape_is_the_products(first, op0, second, op1, output):
    network, x, y = network_with(first, second)
    assert network.add_matrix_multiply(x, op0, y, op1).get_output(0).shape == output


@pytest.mark.parametrize(
    ("first", "op0", "second", "op1", "message"),
    [
        ((2, 3), N, (4, 5), N, r"summed over differ.*\(2, 3\) NONE and \(4, 5\) NONE"),
        ((2, 3), T, (3, 4), N, r"\(2, 3\) TRANSPOSE"),
        ((3,), N, (3, 4), N, r"Input 0 has too few axes for NONE.*found \(3,\); allowed: rank 2"),
        ((2, 2, 3), N, (3, 4), N, r"equal ranks.*\(2,\) and \(\)"),
        ((2, 2, 3), N, (3, 3, 4), N, r"equal, or 1.*\(2,\) and \(3,\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(first, op0, second, op1, message):
    network, x, y = network_with(first, second)
    with pytest.raises(NetworkError, match=message):
        network.add_matrix_multiply(x, op0, y, op1)


def test_unequal_types_are_refused():
    network, x, y = network_with((2, 2), (2, 2), dtype=[DataType.FLOAT, DataType.HALF])
    with pytest.raises(NetworkError, match="FLOAT and HALF"):
        network.add_matrix_multiply(x, N, y, N)

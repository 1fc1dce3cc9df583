"""Shapes, types and checks of matrix products."""

from __future__ import annotations

import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.matrix import MatrixOperation

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
        ((2, 3), N, (4, 5), N, r"contracted dimensions must be equal.*\(2, 3\) NONE and \(4, 5\) NONE"),
        ((2, 3), T, (3, 4), N, r"\(2, 3\) TRANSPOSE"),
        ((3,), N, (3, 4), N, r"Input 0 has too few axes for NONE.*found \(3,\); allowed: rank 2"),
        ((2, 2, 3), N, (3, 4), N, r"same rank.*\(2,\) and \(\)"),
        ((2, 2, 3), N, (3, 3, 4), N, r"must be equal or 1.*\(2,\) and \(3,\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_values(first, op0, second, op1, message):
    network, x, y = network_with(first, second)
    with pytest.raises(NetworkError, match=message):
        network.add_matrix_multiply(x, op0, y, op1)


def test_unequal_types_are_refused_for_matrix_multiply():
    network, x, y = network_with((2, 2), (2, 2), dtype=[DataType.FLOAT, DataType.HALF])
    with pytest.raises(NetworkError, match="FP32 and FP16"):
        network.add_matrix_multiply(x, N, y, N)


@pytest.mark.parametrize(
    ("equation", "shapes", "output"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], (2, 4)),
        ("ij,jk", [(2, 3), (3, 4)], (2, 4)),
        ("bij,bjk->bik", [(-1, 2, 3), (5, 3, -1)], (5, 2, -1)),
        ("...ij,...jk->...ik", [(6, 1, 2, 3), (7, 3, 4)], (6, 7, 2, 4)),
        ("ii->", [(3, 3)], ()),
    ],
)
def test_the_shape_has_the_outputs_letters(equation, shapes, output):
    network, *inputs = network_with(*shapes)
    assert network.add_einsum(inputs, equation).get_output(0).shape == output


def test_an_ellipsis_is_host_only():
    network, x = network_with((2, 3))
    assert network.add_einsum([x], "...i->...").is_host_only
    assert not network.add_einsum([x], "ij->ji").is_host_only


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "dimensions named 'j' must be equal.*3 and 4"),
        ("ij->ik", [(2, 3)], "must occur once in the output and in an input.*ij->ik"),
        ("ij->ii", [(2, 3)], "must occur once in the output"),
        ("i1->i", [(2, 3)], "letters, commas"),
        ("ij->j->i", [(2, 3)], "letters, commas"),
        ("ijk->i", [(2, 3)], "'ijk' has another rank.*|rank 3"),
        ("ij,jk->ik", [(2, 3)], "one term per input.*1 inputs"),
        ("ij->...", [(2, 3)], "must not have an ellipsis unless an input has one"),
        ("...i,...i->...", [(2, 3), (4, 3)], "ellipsis of .* must broadcast.*2 and 4"),
    ],
)
def test_a_malformed_equation_is_refused_with_what_is_wrong(equation, shapes, message):
    network, *inputs = network_with(*shapes)
    with pytest.raises(NetworkError, match=message):
        network.add_einsum(inputs, equation)


def test_unequal_types_are_refused_for_einsum():
    network, x, y = network_with((2,), (2,), dtype=[DataType.FLOAT, DataType.HALF])
    with pytest.raises(NetworkError, match="FP32, FP16"):
        network.add_einsum([x, y], "i,i->i")

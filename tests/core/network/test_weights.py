"""Weights with a stated type, given to layers in the place of arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dryfit import DataType, Network, NetworkError, Weights


@pytest.mark.parametrize(
    ("dtype", "values"), [(DataType.INT4, [1, -8, 7, 0, -1]), (DataType.FP4, [0.5, -6.0, 3.0, 0.0, 1.5])]
)
def test_packed_weights_become_the_elements_of_a_constant(dtype: DataType, values: list[float]) -> None:
    elements = np.array(values, np.float32).astype(dtype.numpy)
    weights = Weights(dtype, Weights(elements).tobytes(), 5)
    assert (weights.size, weights.nbytes, len(weights.tobytes())) == (5, 3, 3)
    output = Network().add_constant((5,), weights).get_output(0)
    assert output.dtype is dtype
    np.testing.assert_array_equal(output.spec.value.astype(np.float32), values)


def test_the_first_of_two_packed_elements_is_in_the_low_bits() -> None:
    assert Weights(DataType.INT4, np.array([0x2F], np.uint8), 2).numpy().tolist() == [-1, 2]


def test_wider_elements_are_taken_as_they_are() -> None:
    values = np.array([1.5, -2.0], np.float16)
    weights = Weights(DataType.HALF, values.tobytes(), 2)
    np.testing.assert_array_equal(np.asarray(weights), values)
    assert Weights(values).dtype is DataType.HALF
    assert len(Weights()) == 0


def test_a_layer_takes_weights_wherever_it_takes_an_array() -> None:
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    kernel = Weights(np.ones((3, 2, 1, 1), np.float32))
    layer = network.add_convolution_nd(x, 3, (1, 1), kernel, Weights(DataType.FLOAT, bytes(12), 3))
    assert layer.kernel is kernel.numpy()
    assert layer.bias.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("count", "allowed"), [(5, "3 bytes for 5"), (2, "1 bytes for 2"), (-1, "0 bytes for -1")])
def test_a_wrong_number_of_bytes_is_refused(count: int, allowed: str) -> None:
    with pytest.raises(NetworkError, match=f"found 2 bytes; allowed: {allowed} elements of INT4.*low bits"):
        Weights(DataType.INT4, b"ab", count)


def test_numpy_holds_packed_elements_one_a_byte() -> None:
    assert Weights(DataType.INT4, b"\x10", 2).numpy().dtype == ml_dtypes.int4

import ml_dtypes
import numpy as np
import pytest

from dryfit.reference.precision import rounded, weights_for, widened

# `evaluate` silences what numpy says of casts that overflow; here the functions are called alone.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.int8, -128, 127),
        (np.uint8, 0, 255),
        (ml_dtypes.int4, -8, 7),
        (ml_dtypes.uint4, 0, 15),
        (np.int32, -(2**31), 2**31 - 1),
        (np.int64, -(2**63), 2**63 - 1),
    ],
)
def test_integers_saturate_and_ties_go_to_the_even_number(dtype, low, high):
    y = rounded(np.array([-1e30, 1e30, 0.5, 1.5, 2.5, -0.0], np.float32), np.dtype(dtype))
    assert [int(value) for value in y] == [low, high, 0, 2, 2, 0]


@pytest.mark.parametrize(("dtype", "largest"), [(ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float4_e2m1fn, 6)])
def test_types_without_infinity_saturate(dtype, largest):
    y = rounded(np.array([1e9, -1e9], np.float32), np.dtype(dtype))
    assert y.astype(np.float32).tolist() == [largest, -largest]


def test_fp16_overflows_to_infinity():
    assert rounded(np.array([1e9], np.float32), np.dtype(np.float16)).tolist() == [np.inf]


def test_integers_are_not_rounded_but_wrap_around():
    assert rounded(np.array([300], np.int32), np.dtype(np.int8)).tolist() == [44]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_weights_are_rounded_to_16_bit_inputs_only(dtype):
    weights = np.array([1 + 2**-12], np.float32)
    assert weights_for(np.zeros(1, dtype), weights).tolist() == [1]
    assert weights_for(np.zeros(1, np.float32), weights).tolist() == weights.tolist()
    assert weights_for(np.zeros(1, np.int8), weights).tolist() == weights.tolist()


def test_what_is_wide_enough_is_not_copied():
    for dtype in (np.float32, np.float64):
        x = np.zeros(3, dtype)
        assert widened(x) is x

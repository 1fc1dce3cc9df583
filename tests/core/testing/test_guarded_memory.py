"""Guarded arrays: how they lie, and that a write beside them is found."""

import ctypes

import numpy as np
import pytest

from dryfit.testing.guarded_memory import Arrangement, guarded_array

ARRANGEMENTS = [Arrangement(), Arrangement((0, 2, 3, 1)), Arrangement((3, 1, 0, 2), is_spaced=True)]
SHAPE = (2, 3, 5, 4)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_an_array_has_its_shape_and_begins_at_a_cache_line(arrangement, dtype):
    guarded = guarded_array(SHAPE, np.dtype(dtype), arrangement)
    assert (guarded.array.shape, guarded.array.dtype) == (SHAPE, dtype)
    assert guarded.array.ctypes.data % 64 == 0
    values = np.arange(120).reshape(SHAPE).astype(dtype)
    guarded.fill(values)
    np.testing.assert_array_equal(guarded.array, values)
    assert guarded.is_intact_outside


def test_axes_lie_in_the_order_that_is_asked_for():
    assert guarded_array(SHAPE, np.dtype("f4"), ARRANGEMENTS[1]).array.strides == (240, 4, 48, 12)
    spaced = guarded_array(SHAPE, np.dtype("f4"), ARRANGEMENTS[2]).array
    # W outermost, H innermost; one more element along each axis, and every second element between.
    assert spaced.strides == (6 * 2 * 4, 3 * 6 * 2 * 4, 2 * 4, 4 * 3 * 6 * 2 * 4)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (7,)])
def test_any_shape_will_do(shape):
    for is_spaced in (False, True):
        guarded = guarded_array(shape, np.dtype("f4"), Arrangement(is_spaced=is_spaced))
        guarded.fill(np.zeros(shape, np.float32))
        assert guarded.array.shape == shape
        assert guarded.is_intact_outside


@pytest.mark.parametrize("offset", [-1, 120, 127])
def test_a_write_beside_the_array_is_found(offset):
    guarded = guarded_array(SHAPE, np.dtype("f4"))
    before = guarded.contents()
    ctypes.c_float.from_address(guarded.array.ctypes.data + 4 * offset).value = 0
    assert not guarded.is_intact_outside
    assert guarded.contents() != before


def test_a_write_between_the_elements_is_found():
    guarded = guarded_array((4,), np.dtype("f4"), Arrangement(is_spaced=True))
    guarded.array[:] = 1
    assert guarded.is_intact_outside
    np.lib.stride_tricks.as_strided(guarded.array, (8,), (4,))[1] = 0
    assert not guarded.is_intact_outside


def test_what_is_not_written_is_not_a_number():
    assert np.isnan(guarded_array(SHAPE, np.dtype("f2")).array).all()

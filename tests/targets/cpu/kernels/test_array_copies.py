"""The host's copies between layouts: each element where it belongs, and nothing else touched."""

import numpy as np
import pytest

from dryfit_cpu.array_copies import copy_array
from dryfit_cpu.codes import interleavings

PIXELS = sorted({(size, planes, pitch) for size, planes, pitch, _ in interleavings()})
COLUMNS = (2, 15, 16, 17, 33, 100)


def numbers(shape, size):
    return np.random.default_rng(size).integers(1, 200, shape).astype(f"u{size}")


@pytest.mark.parametrize(("size", "planes", "pitch"), PIXELS)
def test_planes_become_pixels_and_pixels_planes(size, planes, pitch):
    for columns in COLUMNS:
        for rows in (1, 3):
            source = numbers((2, planes, rows, columns), size)
            memory = np.full((2, rows, columns + 1, pitch), 9, source.dtype)
            pixels = np.moveaxis(memory[:, :, :columns, :planes], -1, 1)
            assert copy_array(source, pixels)
            np.testing.assert_array_equal(pixels, source)
            memory[:, :, :columns, :planes] = 9
            assert (memory == 9).all()


@pytest.mark.parametrize(("size", "planes", "pitch"), PIXELS)
def test_pixels_that_end_where_their_memory_ends_are_not_read_beyond(size, planes, pitch):
    for columns in COLUMNS:
        pixels = numbers((columns * pitch,), size)
        last = columns * pitch - (pitch - planes)
        view = np.lib.stride_tricks.as_strided(pixels[:last].copy(), (planes, columns), (size, size * pitch))
        made = np.zeros((planes, columns), pixels.dtype)
        assert copy_array(view, made)
        np.testing.assert_array_equal(
            made, pixels[:last].reshape(-1)[np.add.outer(range(planes), pitch * np.arange(columns))]
        )


@pytest.mark.parametrize(
    ("shape", "order", "dtype"),
    [
        ((3, 100), (1, 0), np.float64),  # 8 bytes
        ((5, 100), (1, 0), np.int8),  # five planes
        ((2, 2, 2, 2, 3, 40), (5, 3, 1, 0, 2, 4), np.int8),  # too many axes
        ((64, 64), (0, 1), np.int8),  # nothing changes its place
    ],
)
def test_other_copies_are_left_to_numpy(shape, order, dtype):
    source = np.ones(shape, dtype)
    destination = np.zeros([shape[axis] for axis in order], dtype).transpose(np.argsort(order))
    assert not copy_array(source, destination)
    assert not destination.any()


def test_arrays_of_different_types_are_not_converted():
    assert not copy_array(np.ones((3, 100), np.int8), np.zeros((100, 3), np.float16).T)

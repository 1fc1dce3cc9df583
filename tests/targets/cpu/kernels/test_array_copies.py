"""The host's copies between layouts: each element where it belongs, and nothing else touched."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit_cpu import array_copies
from dryfit_cpu.array_copies import copy_array
from dryfit_cpu.codes import interleavings
from dryfit_cpu.kernels import copying

PIXELS = sorted({(size, planes, pitch) for size, planes, pitch, *_ in interleavings()})
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
        ((5, 12), (1, 0), np.int8),  # less than a block
        ((2, 2, 2, 2, 3, 40), (5, 3, 1, 0, 2, 4), np.int8),  # too many axes
        ((64, 64), (0, 1), np.int8),  # nothing changes its place
    ],
)
def test_other_copies_are_left_to_numpy(shape, order, dtype):
    source = np.ones(shape, dtype)
    destination = np.zeros([shape[axis] for axis in order], dtype).transpose(np.argsort(order))
    assert not copy_array(source, destination)
    assert not destination.any()


def test_types_whose_text_numpy_does_not_know_are_copied_like_others():
    planes = np.arange(3 * 40 * 50).astype(np.float32).astype(ml_dtypes.float8_e5m2).reshape(3, 40, 50)
    pixels = np.ones((40, 50, 3), planes.dtype).transpose(2, 0, 1)
    assert copy_array(planes, pixels)
    assert np.array_equal(pixels.view(np.uint8), planes.view(np.uint8))


def test_arrays_of_different_types_are_not_converted():
    assert not copy_array(np.ones((3, 100), np.int8), np.zeros((100, 3), np.float16).T)


@pytest.fixture(params=[False, True], ids=["cached", "streamed"])
def streams(request, monkeypatch):
    """Copies through the cache and, as those of many megabytes are, past it."""
    monkeypatch.setattr(copying, "STREAMED_BYTES", 0 if request.param else 1 << 60)
    array_copies.prepared_copy.cache_clear()
    yield
    array_copies.prepared_copy.cache_clear()


LINES = (1, 2, 7, 16, 31, 32, 33, 130, 700)


def guarded(shape, size, offset):
    """An array `offset` bytes behind a cache line, and all memory around it, which is 9."""
    memory = np.full(int(np.prod(shape)) * size + 512, 9, np.uint8)
    start = -memory.ctypes.data % 64 + 128 + offset
    return memory[start : start + int(np.prod(shape)) * size].view(f"u{size}").reshape(shape), memory


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("channels", [2, 3, 5, 8, 17, 32, 40, 70, 300])
def test_planes_and_pixels_of_any_number_change_places(size, channels, streams):
    for pixels in LINES:
        source = numbers((2, channels, pixels), size)
        for offset in (0, 16, 28):
            output, memory = guarded((2, pixels, channels), size, offset)
            copied = copy_array(source, output.transpose(0, 2, 1))
            assert copied or min(pixels, channels) < 4 or max(pixels, channels) <= 32
            if copied:
                np.testing.assert_array_equal(output, source.transpose(0, 2, 1))
                output[...] = 0
                assert (memory != 9).sum() == output.nbytes
            back, memory = guarded((2, channels, pixels), size, offset)
            if copy_array(np.ascontiguousarray(source.transpose(0, 2, 1)).transpose(0, 2, 1), back):
                np.testing.assert_array_equal(back, source)
                back[...] = 0
                assert (memory != 9).sum() == back.nbytes


@pytest.mark.parametrize(("size", "width"), [(1, 32), (2, 16), (2, 8), (4, 32), (1, 4), (2, 4), (4, 4)])
def test_channels_that_are_missing_in_a_vector_become_zero(size, width, streams):
    for channels in range(1, width):
        source = numbers((channels, 5, 37), size)
        output, memory = guarded((6, 40, width), size, 16)
        assert copy_array(source, output.transpose(2, 0, 1))
        expected = np.zeros_like(output)
        expected[:5, :37, :channels] = source.transpose(1, 2, 0)
        np.testing.assert_array_equal(output, expected)
        output[...] = 0
        assert (memory != 9).sum() == output.nbytes


@pytest.mark.parametrize("size", [1, 2, 4])
def test_planes_at_multiples_of_4_kib_are_copied_like_others(size, streams):
    planes = numbers((48, 4096 // size), size)
    for columns in (4096 // size, 4096 // size - 3):
        pixels = np.zeros((columns, 48), planes.dtype)
        assert copy_array(planes[:, :columns], pixels.T)
        np.testing.assert_array_equal(pixels, planes[:, :columns].T)
        back = np.zeros_like(planes)
        assert copy_array(pixels.T, back[:, :columns])
        np.testing.assert_array_equal(back[:, :columns], planes[:, :columns])
        assert not back[:, columns:].any()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_lines_move_to_where_zeros_follow_them_and_back(size):
    for columns in (16, 17, 31, 56, 200):
        source = numbers((3, 5, columns), size)
        for wide in (columns + 1, columns + 15, columns + 100):
            output, memory = guarded((3, 6, wide), size, 4)
            assert copy_array(source, output)
            expected = np.zeros_like(output)
            expected[:, :5, :columns] = source
            np.testing.assert_array_equal(output, expected)
            output[...] = 0
            assert (memory != 9).sum() == output.nbytes
            back, memory = guarded(source.shape, size, 4)
            assert copy_array(expected[:, :5, :columns], back)
            np.testing.assert_array_equal(back, source)
            back[...] = 0
            assert (memory != 9).sum() == back.nbytes


@given(
    size=st.sampled_from([1, 2, 4]),
    planes=st.integers(1, 2),
    channels=st.integers(1, 90),
    pixels=st.integers(1, 400),
    missing=st.integers(0, 40),
    behind=st.integers(0, 9),
    offset=st.integers(0, 15),
    is_streamed=st.booleans(),
)
def test_any_copy_there_and_back_is_that_of_numpy(size, planes, channels, pixels, missing, behind, offset, is_streamed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "STREAMED_BYTES", 0 if is_streamed else 1 << 60)
        array_copies.prepared_copy.cache_clear()
        source = numbers((planes, channels, pixels + behind), size)[..., :pixels]
        output, memory = guarded((planes, pixels, channels + missing), size, offset * size)
        if copy_array(source, output.transpose(0, 2, 1)):
            np.testing.assert_array_equal(output[..., :channels], source.transpose(0, 2, 1))
            assert not output[..., channels:].any()
            output[...] = 0
            assert (memory != 9).sum() == output.nbytes
        output[..., :channels] = source.transpose(0, 2, 1)
        back, memory = guarded((planes, channels, pixels + behind), size, offset * size)
        if copy_array(output[..., :channels].transpose(0, 2, 1), back[..., :pixels]):
            np.testing.assert_array_equal(back[..., :pixels], source)
            back[..., :pixels] = int("09" * size, 16)
            assert (memory == 9).all()
        array_copies.prepared_copy.cache_clear()


LAST_BYTES = """
import ctypes, itertools, mmap, sys
import numpy as np
from dryfit_cpu.array_copies import copy_array

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 64 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
protect = ctypes.CDLL(None, use_errno=True).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
assert protect(start + 63 * page, page, 0) == 0
bytes_ = np.frombuffer(memory, np.uint8, 63 * page)
for size, channels, pixels in itertools.product((1, 2, 4), (2, 3, 5, 7, 8, 17, 33, 40), (8, 17, 32, 33, 100, 515)):
    count = size * channels * pixels
    source = bytes_[-count:].view(f"u{size}")
    source[...] = np.arange(source.size) % 251
    for lines in (source.reshape(channels, pixels), source.reshape(pixels, channels)):
        output = np.zeros(lines.shape[::-1], source.dtype)
        assert not copy_array(lines, output.T) or (output == lines.T).all()
print("copied")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by mprotect")
def test_nothing_is_read_behind_the_last_byte_of_the_source():
    done = subprocess.run([sys.executable, "-c", LAST_BYTES], capture_output=True, text=True, check=False)
    assert done.stdout == "copied\n", f"it ended with {done.returncode}: {done.stderr}"


@pytest.mark.parametrize("knows_objects", [True, False])
def test_the_address_of_a_view_is_that_of_its_first_element(knows_objects, monkeypatch):
    if not knows_objects:
        monkeypatch.setattr(array_copies, "_HAS_KNOWN_OBJECTS", False)
    array = np.zeros((5, 7, 3), np.int16)
    for view in (array, array[2:], array[:, 1:, 2], array[::-1], array.transpose(2, 0, 1)):
        assert array_copies._address(view) == view.ctypes.data


def test_a_copy_that_is_run_again_goes_to_the_new_addresses():
    arrays = [numbers((40, 90), 2) + place for place in range(3)]
    outputs = [np.zeros((90, 40), np.uint16) for _ in arrays]
    for array, output in zip(arrays, outputs, strict=True):
        assert copy_array(array, output.T)
    for array, output in zip(arrays, outputs, strict=True):
        np.testing.assert_array_equal(output, array.T)

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit_dla.formats import CHW16, CHW32, DLA_HWC4, DLA_LINEAR, INPUT_FORMATS, OUTPUT_FORMATS
from dryfit_gpu.formats import FORMATS

HALF, INT8 = DataType.HALF, DataType.INT8

# Bytes of a line of DLA_HWC4: channels, type, width -> Xavier, Orin.
HWC4_LINES = [
    (3, INT8, 224, 896, 896),
    (3, INT8, 300, 1216, 1216),
    (3, INT8, 302, 1216, 1216),
    (3, INT8, 306, 1248, 1280),
    (3, HALF, 300, 2400, 2432),
    (1, INT8, 100, 128, 128),
    (1, INT8, 90, 96, 128),
    (4, INT8, 13, 64, 64),
    (4, INT8, 17, 96, 128),
]

EVERY_FORMAT = sorted(
    {one for formats in FORMATS.values() for one in formats} | {CHW16, CHW32, DLA_HWC4, DLA_LINEAR},
    key=lambda one: (one.name, len(one.data_types)),
)


@pytest.mark.parametrize(("channels", "dtype", "width", "xavier", "orin"), HWC4_LINES)
def test_a_line_of_hwc4_has_the_documented_bytes_on_each_family(channels, dtype, width, xavier, orin):
    for family, expected in (("xavier", xavier), ("orin", orin)):
        line = DLA_HWC4.array_shape((1, channels, 1, width), dtype, family)
        assert math.prod(line) * dtype.bits // 8 == expected, family


def test_hwc4_pads_three_channels_to_four_and_leaves_one_and_four():
    assert DLA_HWC4.array_shape((2, 3, 5, 64), INT8, "orin") == (2, 5, 64, 4)
    assert DLA_HWC4.array_shape((2, 1, 5, 64), INT8, "orin") == (2, 5, 64, 1)
    assert DLA_HWC4.array_shape((2, 4, 5, 64), INT8, "orin") == (2, 5, 64, 4)


def test_a_line_of_dla_linear_is_a_multiple_of_64_bytes_on_both_families():
    for family in ("xavier", "orin"):
        assert DLA_LINEAR.array_shape((1, 3, 5, 33), HALF, family) == (1, 3, 5, 64)
        assert DLA_LINEAR.array_shape((1, 3, 5, 33), INT8, family) == (1, 3, 5, 64)
        assert DLA_LINEAR.array_shape((1, 3, 5, 32), HALF, family) == (1, 3, 5, 32)


def test_vector_formats_pad_the_channels_to_32_bytes():
    assert CHW16.array_shape((2, 17, 5, 7), HALF) == (2, 2, 5, 7, 16)
    assert CHW32.array_shape((2, 33, 5, 7), INT8) == (2, 2, 5, 7, 32)
    assert CHW16.size_bytes((1, 1, 5, 7), HALF) == CHW32.size_bytes((1, 1, 5, 7), INT8) == 5 * 7 * 32


def test_strides_count_vectors_where_channels_lie_in_vectors():
    assert CHW16.strides((2, 17, 5, 7), HALF) == (2 * 5 * 7, 5 * 7, 7, 1)
    assert DLA_LINEAR.strides((2, 3, 5, 33), HALF, "orin") == (3 * 5 * 64, 5 * 64, 64, 1)
    assert DLA_HWC4.strides((2, 3, 5, 17), INT8, "orin") == (5 * 32 * 4, 1, 32 * 4, 4)
    assert LINEAR.strides((2, 3, 5), DataType.FLOAT) == (15, 5, 1)


def test_linear_takes_any_rank():
    assert LINEAR.array_shape((), DataType.FLOAT) == ()
    assert LINEAR.size_bytes((3,), DataType.INT4) == 2
    assert LINEAR.strides((), DataType.FLOAT) == ()


def test_the_batch_of_a_tensor_of_rank_five_is_its_first_two_axes():
    assert CHW16.array_shape((2, 3, 20, 5, 7), HALF) == (2, 3, 2, 5, 7, 16)


@pytest.mark.parametrize(
    ("one", "shape", "dtype", "found", "allowed"),
    [
        (CHW16, (1, 3, 4, 4), INT8, "INT8", "HALF"),
        (DLA_HWC4, (1, 2, 4, 4), INT8, "2 channels", "1, 3, 4"),
        (CHW32, (1, 3), INT8, "shape (1, 3)", "at least 3 axes"),
        (LINEAR, (-1, 3), INT8, "(-1, 3)", "extents that are known"),
    ],
)
def test_a_tensor_that_the_format_is_not_defined_for_is_refused(one, shape, dtype, found, allowed):
    assert not one.allows(shape, dtype)
    with pytest.raises(ConfigError, match=one.name) as error:
        one.size_bytes(shape, dtype)
    assert (str(error.value.found), error.value.allowed) == (found, allowed)


def test_a_memory_of_other_extents_is_refused():
    with pytest.raises(ConfigError, match="does not hold a CHW16 tensor") as error:
        CHW16.unpack(np.zeros((1, 1, 4, 4, 16), np.float16), (1, 17, 4, 4))
    assert "(1, 2, 4, 4, 16)" in str(error.value)


def test_the_dla_reads_four_formats_and_writes_three():
    assert {one.name for formats in INPUT_FORMATS.values() for one in formats} == {
        "DLA_LINEAR",
        "DLA_HWC4",
        "CHW16",
        "CHW32",
    }
    assert {one.name for formats in OUTPUT_FORMATS.values() for one in formats} == {"DLA_LINEAR", "CHW16", "CHW32"}
    assert [one.name for one in OUTPUT_FORMATS[HALF]] == ["CHW16", "DLA_LINEAR"]
    assert [one.name for one in OUTPUT_FORMATS[INT8]] == ["CHW32", "DLA_LINEAR"]


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_unpack_is_the_inverse_of_pack(one: TensorFormat, data):
    dtype = data.draw(st.sampled_from(sorted(one.data_types or {HALF, INT8, DataType.FLOAT}, key=lambda d: d.name)))
    channels = data.draw(st.sampled_from(one.channel_counts) if one.channel_counts else st.integers(1, 70))
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    spatial = data.draw(st.lists(st.integers(1, 40), min_size=one.spatial_axes, max_size=one.spatial_axes))
    family = data.draw(st.sampled_from(["", "orin", "xavier"]))
    shape = (*batch, channels, *(min(extent, 6) for extent in spatial[:-1]), spatial[-1])
    array = (np.arange(math.prod(shape)) % 100 + 1).reshape(shape).astype(dtype.numpy)
    memory = one.pack(array, family)
    assert memory.shape == one.array_shape(shape, dtype, family)
    assert memory.nbytes == one.size_bytes(shape, dtype, family)
    np.testing.assert_array_equal(one.unpack(memory, shape, family), array)
    # What is not the tensor is zero.
    assert np.count_nonzero(memory) == array.size


@pytest.mark.parametrize("one", [LINEAR, DLA_LINEAR, DLA_HWC4, CHW16, CHW32], ids=lambda one: one.name)
def test_an_element_lies_where_the_strides_say(one):
    shape, dtype = (2, 3, 4, 9), INT8 if one in (CHW32, LINEAR) else HALF
    array = np.arange(1, math.prod(shape) + 1).reshape(shape).astype(dtype.numpy)
    flat = one.pack(array, "orin").reshape(-1)
    strides = one.strides(shape, dtype, "orin")
    vectors = one.channels_vector > 1 and not one.channels_last
    for n, c, h, w in itertools.product(*map(range, shape)):
        if vectors:
            outer = (n, c // one.channels_vector, h, w)
            offset = sum(i * s for i, s in zip(outer, strides, strict=True)) * one.channels_vector
            offset += c % one.channels_vector
        else:
            offset = sum(i * s for i, s in zip((n, c, h, w), strides, strict=True))
        assert flat[offset] == array[n, c, h, w]

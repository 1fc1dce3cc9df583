import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.errors import ConfigError, UnknownNameError
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


@pytest.mark.parametrize("family", ["Xavier", "XAVIER", "agx-xavier", "thor"])
def test_an_unknown_family_is_refused_where_the_format_tells_families_apart(family):
    with pytest.raises(UnknownNameError, match=r"Unknown platform family: .*allowed: orin, xavier") as caught:
        DLA_HWC4.array_shape((1, 1, 4, 90), INT8, family)
    assert ("Did you mean 'xavier'?" in str(caught.value)) is ("avier" in family.lower())
    assert DLA_LINEAR.array_shape((1, 1, 4, 90), INT8, family) == (1, 1, 4, 128)


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@pytest.mark.parametrize("empty", [0, 1, 2, -1])
def test_a_tensor_without_elements_has_empty_memory(one: TensorFormat, empty):
    shape = [2] * one.spatial_axes
    shape = [1, (one.channel_counts or [5])[0], *shape]
    if empty != 1 or not one.channel_counts:
        shape[empty] = 0
        dtype = min(one.data_types or {HALF}, key=lambda dtype: dtype.name)
        array = np.zeros(shape, dtype.numpy)
        memory = one.pack(array)
        assert memory.size == 0
        assert one.pack(array, out=memory) is memory
        assert one.unpack(memory, shape).shape == tuple(shape)


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
        (CHW16, (1, 3, 4, 4), INT8, "INT8", "FP16"),
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
    with pytest.raises(ConfigError, match="must hold a CHW16 tensor") as error:
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


@st.composite
def tensors(draw, one):
    """A tensor without zeros in a format, and a platform family."""
    dtype = draw(st.sampled_from(sorted(one.data_types or {HALF, INT8, DataType.FLOAT}, key=lambda d: d.name)))
    channels = draw(st.sampled_from(one.channel_counts) if one.channel_counts else st.integers(0, 70))
    batch = draw(st.lists(st.integers(0, 3), max_size=2))
    spatial = draw(st.lists(st.integers(0, 40), min_size=one.spatial_axes, max_size=one.spatial_axes))
    shape = (*batch, channels, *(min(extent, 6) for extent in spatial[:-1]), spatial[-1])
    array = (np.arange(math.prod(shape)) % 100 + 1).reshape(shape).astype(dtype.numpy)
    return array, dtype, draw(st.sampled_from(["", "orin", "xavier"]))


def poison(shape, dtype):
    """Memory whose every element is NaN, or the largest."""
    pattern = (1 << (dtype.bits - 1)) - 1
    return np.full(shape, pattern, f"uint{dtype.bits}").view(dtype.numpy)


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_unpack_is_the_inverse_of_pack(one: TensorFormat, data):
    array, dtype, family = data.draw(tensors(one))
    memory = one.pack(array, family)
    assert memory.shape == one.array_shape(array.shape, dtype, family)
    assert memory.nbytes == one.size_bytes(array.shape, dtype, family)
    np.testing.assert_array_equal(one.unpack(memory, array.shape, family), array)
    # What is not the tensor is zero.
    assert np.count_nonzero(memory) == array.size


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_pack_clears_the_padding_of_memory_that_is_used_again(one: TensorFormat, data):
    array, dtype, family = data.draw(tensors(one))
    memory = poison(one.array_shape(array.shape, dtype, family), dtype)
    assert one.pack(array, family, out=memory) is memory
    assert memory.tobytes() == one.pack(array, family).tobytes()


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_unpack_never_reads_padding(one: TensorFormat, data):
    array, dtype, family = data.draw(tensors(one))
    memory = one.pack(array, family)
    memory[memory == 0] = poison((), dtype)
    np.testing.assert_array_equal(one.unpack(memory, array.shape, family), array)
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    one.unpack(memory, array.shape, family, out=wide[..., ::2])
    np.testing.assert_array_equal(wide[..., ::2], array)
    assert not wide[..., 1::2].any()


@pytest.mark.parametrize("one", EVERY_FORMAT, ids=lambda one: one.name)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_an_element_lies_where_the_strides_say(one: TensorFormat, data):
    array, dtype, family = data.draw(tensors(one))
    memory = one.pack(array, family)
    unit = one.channels_vector if one.has_vectors else 1
    steps = [step * unit for step in one.strides(array.shape, dtype, family)]
    places = np.indices(array.shape).reshape(array.ndim, -1)
    within = 0
    if one.has_vectors:
        axis = array.ndim - 1 - one.spatial_axes
        within, places[axis] = places[axis] % unit, places[axis] // unit
    offsets = sum(place * step for place, step in zip(places, steps, strict=True)) + within
    assert len(set(offsets.tolist())) == array.size
    np.testing.assert_array_equal(memory.reshape(-1)[offsets], array.reshape(-1))


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "extents", "strides"),
    [
        ("LINEAR", HALF, (2, 3, 5, 7), (2, 3, 5, 7), (105, 35, 7, 1)),
        ("CHW2", HALF, (2, 3, 5, 7), (2, 2, 5, 7, 2), (70, 35, 7, 1)),
        ("CHW4", INT8, (2, 3, 5, 7), (2, 1, 5, 7, 4), (35, 35, 7, 1)),
        ("CHW16", HALF, (2, 17, 5, 7), (2, 2, 5, 7, 16), (70, 35, 7, 1)),
        ("CHW32", INT8, (2, 64, 5, 7), (2, 2, 5, 7, 32), (70, 35, 7, 1)),
        ("HWC", INT8, (2, 3, 5, 7), (2, 5, 7, 3), (105, 1, 21, 3)),
        ("HWC8", HALF, (2, 3, 5, 7), (2, 5, 7, 8), (280, 1, 56, 8)),
        ("HWC16", INT8, (2, 17, 5, 7), (2, 5, 7, 32), (1120, 1, 224, 32)),
        ("DHWC", DataType.FLOAT, (2, 3, 4, 5, 7), (2, 4, 5, 7, 3), (420, 1, 105, 21, 3)),
        ("DHWC8", HALF, (2, 3, 4, 5, 7), (2, 4, 5, 7, 8), (1120, 1, 280, 56, 8)),
        ("CDHW32", INT8, (2, 33, 4, 5, 7), (2, 2, 4, 5, 7, 32), (280, 140, 35, 7, 1)),
    ],
)
def test_tensorrts_formats_have_its_extents_and_strides(name, dtype, shape, extents, strides):
    one = next(each for each in FORMATS[dtype] if each.name == name)
    assert one.array_shape(shape, dtype) == extents
    assert one.strides(shape, dtype) == strides
    assert one.size_bytes(shape, dtype) == math.prod(extents) * dtype.bits // 8


def test_a_memory_that_is_written_has_to_be_the_tensors():
    array = np.ones((1, 17, 4, 4), np.float16)
    with pytest.raises(ConfigError, match="must hold a CHW16 tensor"):
        CHW16.pack(array, out=np.zeros((1, 1, 4, 4, 16), np.float16))
    with pytest.raises(ConfigError, match="must hold a CHW16 tensor") as error:
        CHW16.pack(array, out=np.zeros((1, 2, 4, 4, 16), np.float32))
    assert "float32" in str(error.value)
    with pytest.raises(ConfigError, match="The array must have the shape of the tensor in memory") as error:
        CHW16.unpack(CHW16.pack(array), array.shape, out=np.zeros((1, 17, 16), np.float16))
    assert (error.value.found, error.value.allowed) == ("shape (1, 17, 16)", "shape (1, 17, 4, 4)")

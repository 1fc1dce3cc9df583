import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.errors import NetworkError
from dryfit.network.layers.resize import (
    InterpolationMode,
    Resize,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run

Coordinates = ResizeCoordinateTransformation
ONNX_ROUNDING = {
    ResizeRoundMode.HALF_UP: "round_prefer_ceil",
    ResizeRoundMode.HALF_DOWN: "round_prefer_floor",
    ResizeRoundMode.FLOOR: "floor",
    ResizeRoundMode.CEIL: "ceil",
}
# Scales of which no extent up to 8 makes a place that FP32 rounding decides.
SCALES = st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])
SAMPLED = [
    kind for kind in Coordinates if kind not in (Coordinates.TF_HALF_PIXEL_FOR_NN, Coordinates.TF_CROP_AND_RESIZE)
]


def onnx_resize(x, *, shape=None, scales=None, roi=None, **attributes):
    floats = [None if values is None else np.array(values, np.float32) for values in (roi, scales)]
    return onnx_runtime(
        "Resize", [x, *floats, None if shape is None else np.array(shape, np.int64)], opset=19, **attributes
    )[0]


def is_common_ground(kind, extents, scales):
    """Whether ONNX Runtime follows ONNX: with aligned corners only where extents are whole numbers before rounding,
    and where an output of the input's extents is no copy of it because the scales are not 1."""
    lengths = [extent * scale for extent, scale in zip(extents, scales, strict=True)]
    is_whole = all(length == int(length) for length in lengths)
    is_copied = [int(length) for length in lengths] == list(extents) and set(scales) != {1.0}
    return not is_copied and (is_whole or kind is not Coordinates.ALIGN_CORNERS)


@given(
    extents=st.tuples(st.integers(2, 8), st.integers(2, 8)),
    scales=st.tuples(SCALES, SCALES),
    kind=st.sampled_from(SAMPLED),
    rounding=st.sampled_from(ResizeRoundMode),
)
def test_nearest_elements_agree_with_onnx_runtime(extents, scales, kind, rounding):
    x = random_array((1, 2, *extents))
    assume(is_common_ground(kind, extents, scales))
    layer = Resize(scales=(1, 1, *scales), coordinate_transformation=kind, nearest_rounding=rounding)
    expected = onnx_resize(
        x,
        scales=(1, 1, *scales),
        mode="nearest",
        coordinate_transformation_mode=kind.value,
        nearest_mode=ONNX_ROUNDING[rounding],
    )
    np.testing.assert_array_equal(run(layer, x)[0], expected)


@given(
    extents=st.tuples(st.integers(2, 8), st.integers(2, 8)),
    scales=st.tuples(SCALES, SCALES),
    kind=st.sampled_from(SAMPLED),
    mode=st.sampled_from([InterpolationMode.LINEAR, InterpolationMode.CUBIC]),
    excludes=st.booleans(),
    antialias=st.booleans(),
)
def test_interpolated_elements_agree_with_onnx_runtime(extents, scales, kind, mode, excludes, antialias):
    assume(is_common_ground(kind, extents, scales))
    # ONNX Runtime's antialiasing leaves out what is outside, and of an axis that grows it has other weights.
    assume(not antialias or (excludes and max(scales) <= 1 and kind is Coordinates.HALF_PIXEL))
    excludes = excludes and mode is InterpolationMode.CUBIC
    x = random_array((2, 3, *extents))
    layer = Resize(
        scales=(1, 1, *scales),
        resize_mode=mode,
        coordinate_transformation=kind,
        exclude_outside=excludes or antialias,
        cubic_coeff=-0.5,
        antialias=antialias,
    )
    expected = onnx_resize(
        x,
        scales=(1, 1, *scales),
        mode=mode.value,
        coordinate_transformation_mode=kind.value,
        exclude_outside=int(excludes),
        cubic_coeff_a=-0.5,
        antialias=int(antialias),
    )
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


@given(
    extents=st.tuples(*[st.integers(1, 8)] * 4),
    mode=st.sampled_from([InterpolationMode.LINEAR, InterpolationMode.CUBIC, InterpolationMode.NEAREST]),
    kind=st.sampled_from([Coordinates.ALIGN_CORNERS, Coordinates.HALF_PIXEL, Coordinates.PYTORCH_HALF_PIXEL]),
)
def test_given_extents_agree_with_onnx_runtime(extents, mode, kind):
    x = random_array((1, 1, *extents[:2]))
    shape = (1, 1, *extents[2:])
    # Where a place is exactly between two elements, FP32 decides: other roundings are tested with exact scales.
    assume(
        mode is not InterpolationMode.NEAREST or all(b % a == 0 for a, b in zip(extents[:2], extents[2:], strict=True))
    )
    layer = Resize(
        shape=shape, resize_mode=mode, coordinate_transformation=kind, nearest_rounding=ResizeRoundMode.FLOOR
    )
    expected = onnx_resize(
        x, shape=shape, mode=mode.value, coordinate_transformation_mode=kind.value, nearest_mode="floor"
    )
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", [InterpolationMode.NEAREST, InterpolationMode.LINEAR, InterpolationMode.CUBIC])
@pytest.mark.parametrize("roi", [(0.25, 0.25, 0.75, 1.0), (-0.5, 0.2, 0.9, 1.5), (0.9, 0.8, 0.1, 0.2)])
def test_a_crop_agrees_with_onnx_runtime(mode, roi):
    x = random_array((1, 1, 4, 5))
    regions = (0, 0, *roi[:2], 1, 1, *roi[2:])
    layer = Resize(
        shape=(1, 1, 3, 6),
        resize_mode=mode,
        coordinate_transformation=Coordinates.TF_CROP_AND_RESIZE,
        nearest_rounding=ResizeRoundMode.HALF_DOWN,
        extrapolation_value=7.0,
        roi=regions,
    )
    expected = onnx_resize(
        x,
        shape=(1, 1, 3, 6),
        roi=regions,
        mode=mode.value,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-5)


def test_extents_scales_and_regions_may_be_inputs():
    x = random_array((1, 1, 4, 4))
    by_scales = run(Resize(scales=(1, 1, 2, 2)), x)[0]
    np.testing.assert_array_equal(run(Resize(), x, np.array([1, 1, 8, 8]))[0], by_scales)
    np.testing.assert_array_equal(run(Resize(), x, None, np.array([1, 1, 2, 2], np.float32))[0], by_scales)


def test_a_scale_that_fp32_rounds_down_still_meets_the_integer():
    # 3 / float32(0.6) is 4.9999998 in FP64 and 5 in FP32: ONNX Runtime and devices take element 5.
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 1, 6)
    layer = Resize(scales=(1, 1, 1, float(np.float32(0.6))), shape=(1, 1, 1, 4))
    assert run(layer, x)[0].ravel().tolist() == [0, 1, 3, 5]


def test_aligned_corners_count_the_extent_before_it_was_rounded_down():
    # ONNX's own example: 4 elements by 0.6 are 2, whose places are 3 / (2.4 - 1) apart.
    x = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4)
    layer = Resize(
        scales=(1, 1, 1, 0.6),
        resize_mode=InterpolationMode.LINEAR,
        coordinate_transformation=Coordinates.ALIGN_CORNERS,
    )
    np.testing.assert_allclose(run(layer, x)[0].ravel(), [1, 1 + 3 / 1.4], rtol=1e-6)


def test_the_upper_selector_takes_the_first_element_for_one_output():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    layer = Resize(shape=(1, 1, 1, 1), coordinate_transformation=Coordinates.HALF_PIXEL)
    assert run(layer, x)[0].item() == 1  # place 1.5, rounded down
    layer.selector_for_single_pixel = ResizeSelector.UPPER
    assert run(layer, x)[0].item() == 0


def test_nearest_copies_every_type():
    x = np.arange(4, dtype=np.int64).reshape(1, 1, 2, 2) + 2**60
    (y,) = run(Resize(scales=(1, 1, 2, 2)), x)
    assert y[0, 0, 0].tolist() == [2**60, 2**60, 2**60 + 1, 2**60 + 1]
    assert run(Resize(scales=(2,)), np.array([True, False]))[0].tolist() == [True, True, False, False]


def test_fp16_is_interpolated_in_fp32():
    x = random_array((1, 1, 5, 5), np.float16)
    layer = Resize(
        scales=(1, 1, 1.5, 2), resize_mode=InterpolationMode.CUBIC, coordinate_transformation=Coordinates.HALF_PIXEL
    )
    np.testing.assert_array_equal(run(layer, x)[0], run(layer, x.astype(np.float32))[0].astype(np.float16))


@pytest.mark.parametrize("scales", [[1, 1, 0, 2], [1, 1, np.nan, 2], [1, 1, -1, 2]])
def test_hostile_scales_in_an_input_are_refused(scales):
    with pytest.raises(NetworkError, match="finite and greater than 0"):
        evaluate(Resize(), [random_array((1, 1, 2, 2)), None, np.array(scales, np.float32)])

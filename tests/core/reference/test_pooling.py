import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.network.layers.window_layer import PaddingMode, Pooling, PoolingType

from .oracle import onnx_runtime, random_array, run


@st.composite
def poolings(draw):
    """(spatial extents, layer parameters, ONNX attributes) with paddings below the window, as ONNX Runtime needs."""
    axes = draw(st.integers(1, 3))

    def per_axis(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes)))

    spatial, window, stride, dilation = per_axis(3, 9), per_axis(1, 4), per_axis(1, 3), per_axis(1, 2)
    pre = tuple(draw(st.integers(0, w - 1)) for w in window)
    post = tuple(draw(st.integers(0, w - 1)) for w in window)
    covered = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    assume(all(c <= e + a + b for c, e, a, b in zip(covered, spatial, pre, post, strict=True)))
    rounds_up = draw(st.booleans())
    mode = PaddingMode.EXPLICIT_ROUND_UP if rounds_up else PaddingMode.EXPLICIT_ROUND_DOWN
    parameters = {
        "window_size_nd": window,
        "stride_nd": stride,
        "dilation_nd": dilation,
        "pre_padding": pre,
        "post_padding": post,
        "padding_mode": mode,
    }
    attributes = {
        "kernel_shape": window,
        "strides": stride,
        "dilations": dilation,
        "pads": [*pre, *post],
        "ceil_mode": int(rounds_up),
    }
    return spatial, parameters, attributes


@given(pooling=poolings(), order=st.booleans())
def test_every_maximum_and_its_index_agree_with_onnx_runtime(pooling, order):
    spatial, parameters, attributes = pooling
    x = random_array((2, 3, *spatial))
    layer = Pooling(pooling_type=PoolingType.MAX, returns_indices=True, column_major_indices=order, **parameters)
    expected, indices = onnx_runtime("MaxPool", [x], outputs=2, storage_order=int(order), **attributes)
    values, places = run(layer, x)
    np.testing.assert_array_equal(values, expected)
    assume(not order or len(spatial) < 3)  # ONNX does not say what column-major means for volumes.
    np.testing.assert_array_equal(places, indices)


@given(pooling=poolings(), excludes_padding=st.booleans())
def test_every_average_agrees_with_onnx_runtime(pooling, excludes_padding):
    spatial, parameters, attributes = pooling
    x = random_array((2, 3, *spatial))
    layer = Pooling(pooling_type=PoolingType.AVERAGE, average_count_excludes_padding=excludes_padding, **parameters)
    (expected,) = onnx_runtime("AveragePool", [x], count_include_pad=int(not excludes_padding), **attributes)
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_same_padding_agrees_with_onnx_runtime(mode, stride, operator):
    x = random_array((1, 2, 7, 8))
    layer = Pooling(
        pooling_type=PoolingType.MAX if operator == "MaxPool" else PoolingType.AVERAGE,
        window_size_nd=(4, 3),
        stride_nd=(stride, stride),
        padding_mode=PaddingMode[mode],
    )
    (expected,) = onnx_runtime(operator, [x], kernel_shape=[4, 3], strides=[stride, stride], auto_pad=mode)
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_blend_mixes_maximum_and_average():
    x = np.array([[[[1, 3]]]], np.float32)
    layer = Pooling(pooling_type=PoolingType.MAX_AVERAGE_BLEND, window_size_nd=(1, 2), blend_factor=0.25)
    assert run(layer, x)[0].item() == 0.75 * 3 + 0.25 * 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_the_maximum_of_integers_agrees_with_onnx_runtime(dtype):
    x = random_array((1, 2, 5, 5), dtype)
    layer = Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), pre_padding=(1, 1), post_padding=(0, 1))
    (expected,) = onnx_runtime("MaxPool", [x], kernel_shape=[2, 2], pads=[1, 1, 0, 1])
    np.testing.assert_array_equal(run(layer, x)[0], expected)


def test_padding_never_wins_a_maximum_of_negative_numbers():
    x = np.full((1, 1, 2, 2), -5, np.float32)
    layer = Pooling(pooling_type=PoolingType.MAX, window_size_nd=(2, 2), pre_padding=(1, 1), post_padding=(1, 1))
    assert (run(layer, x)[0] == -5).all()


def test_the_average_of_fp16_is_rounded_once():
    x = np.full((1, 1, 64, 64), 60000, np.float16)  # the sum is far over the largest FP16 number
    layer = Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(64, 64))
    assert run(layer, x)[0].item() == np.float16(60000)


def test_the_average_of_int8_goes_to_the_nearest_even():
    x = np.array([[[[1, 2], [5, 2]]]], np.int8)
    layer = Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(2, 2))
    assert run(layer, x)[0].item() == 2  # 2.5
    layer.window_size_nd, layer.stride_nd = (1, 2), (1, 1)
    assert run(layer, x)[0].ravel().tolist() == [2, 4]  # 1.5 and 3.5


def test_views_are_accepted():
    view = random_array((6, 6, 2, 1)).transpose(3, 2, 1, 0)[..., ::-1]
    layer = Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(3, 3))
    (expected,) = onnx_runtime("AveragePool", [view], kernel_shape=[3, 3])
    np.testing.assert_allclose(run(layer, view)[0], expected, rtol=1e-5, atol=1e-6)

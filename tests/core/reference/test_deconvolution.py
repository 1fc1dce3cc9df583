import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.layers.spatial_window import PaddingMode

from .oracle import onnx_runtime, random_array, run


@given(data=st.data(), axes=st.integers(1, 3), groups=st.sampled_from([1, 2]), maps=st.integers(1, 2))
def test_every_geometry_agrees_with_onnx_runtime(data, axes, groups, maps):
    def per_axis(low, high):
        return tuple(data.draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes)))

    spatial, kernel, stride, dilation = per_axis(1, 5), per_axis(1, 3), per_axis(1, 3), per_axis(1, 2)
    pre, post = per_axis(0, 2), per_axis(0, 2)
    # ONNX allows an output padding below the stride.
    extra = tuple(data.draw(st.integers(0, s - 1)) for s in stride)
    full = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(spatial, stride, kernel, dilation, strict=True)]
    assume(all(f - a - b >= 1 for f, a, b in zip(full, pre, post, strict=True)))
    x = random_array((2, 2 * groups, *spatial))
    weights = random_array((2 * groups, maps, *kernel), seed=1)
    bias = random_array((maps * groups,), seed=2)
    layer = Deconvolution(
        num_output_maps=maps * groups,
        kernel_size_nd=kernel,
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=pre,
        post_padding=tuple(b - e for b, e in zip(post, extra, strict=True)),
        num_groups=groups,
        kernel=weights,
        bias=bias,
    )
    (expected,) = onnx_runtime(
        "ConvTranspose",
        [x, weights, bias],
        strides=stride,
        dilations=dilation,
        pads=[*pre, *post],
        output_padding=extra,
        group=groups,
    )
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (4, 2), (5, 2), (4, 1), (5, 3)])
def test_same_padding_agrees_with_onnx_runtime(mode, kernel, stride):
    x, weights = random_array((1, 2, 4, 4)), random_array((2, 3, kernel, kernel), seed=1)
    layer = Deconvolution(
        num_output_maps=3,
        kernel_size_nd=(kernel, kernel),
        stride_nd=(stride, stride),
        padding_mode=PaddingMode[mode],
        kernel=weights,
    )
    (expected,) = onnx_runtime("ConvTranspose", [x, weights], strides=[stride, stride], auto_pad=mode)
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


def test_what_lies_behind_the_last_window_holds_the_bias_only():
    layer = Deconvolution(
        num_output_maps=1,
        kernel_size_nd=(1, 2),
        stride_nd=(1, 2),
        post_padding=(0, -3),
        kernel=np.ones((1, 1, 1, 2), np.float32),
        bias=np.array([10], np.float32),
    )
    (y,) = run(layer, np.array([[[[1, 2]]]], np.float32))
    assert y.ravel().tolist() == [11, 11, 12, 12, 10, 10, 10]


def test_fp16_is_computed_in_fp32_and_rounded_once():
    x, weights = random_array((1, 16, 3, 3), np.float16), random_array((16, 2, 2, 2), seed=1)
    layer = Deconvolution(num_output_maps=2, kernel_size_nd=(2, 2), kernel=weights)
    (expected,) = onnx_runtime("ConvTranspose", [x.astype(np.float32), weights.astype(np.float16).astype(np.float32)])
    (y,) = run(layer, x)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, expected.astype(np.float16), rtol=1e-3, atol=1e-4)

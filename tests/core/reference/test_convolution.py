"""The references of convolution, deconvolution and fully connected layers, held against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dryfit.errors import NetworkError
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.window_layer import PaddingMode

from .oracle import onnx_runtime, random_array, run


@st.composite
def geometries(draw):
    axes = draw(st.integers(1, 3))

    def per_axis(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes)))

    return {
        "spatial": per_axis(3, 8),
        "kernel": per_axis(1, 3),
        "stride": per_axis(1, 3),
        "dilation": per_axis(1, 2),
        "pre": per_axis(0, 2),
        "post": per_axis(0, 2),
        "groups": draw(st.sampled_from([1, 2, 4])),
        "group_channels": draw(st.integers(1, 3)),
        "group_maps": draw(st.integers(1, 2)),
    }


@given(geometry=geometries(), has_bias=st.booleans())
def test_every_geometry_agrees_with_onnx_runtime_for_convolution(geometry, has_bias):
    spatial, kernel, groups = geometry["spatial"], geometry["kernel"], geometry["groups"]
    covered = [(k - 1) * d + 1 for k, d in zip(kernel, geometry["dilation"], strict=True)]
    room = [e + a + b for e, a, b in zip(spatial, geometry["pre"], geometry["post"], strict=True)]
    assume(all(c <= r for c, r in zip(covered, room, strict=True)))
    x = random_array((2, groups * geometry["group_channels"], *spatial))
    maps = groups * geometry["group_maps"]
    weights = random_array((maps, geometry["group_channels"], *kernel), seed=1)
    bias = random_array((maps,), seed=2) if has_bias else None
    layer = Convolution(
        num_output_maps=maps,
        kernel_size_nd=kernel,
        stride_nd=geometry["stride"],
        dilation_nd=geometry["dilation"],
        pre_padding=geometry["pre"],
        post_padding=geometry["post"],
        num_groups=groups,
        kernel=weights,
        bias=bias,
    )
    (expected,) = onnx_runtime(
        "Conv",
        [x, weights, bias],
        strides=geometry["stride"],
        dilations=geometry["dilation"],
        pads=[*geometry["pre"], *geometry["post"]],
        group=groups,
    )
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("extent", [7, 8])
def test_same_padding_agrees_with_onnx_runtime_for_convolution(mode, stride, extent):
    x, weights = random_array((1, 2, extent, extent + 1)), random_array((3, 2, 4, 3), seed=1)
    layer = Convolution(
        num_output_maps=3, kernel_size_nd=(4, 3), stride_nd=(stride, 1), padding_mode=PaddingMode[mode], kernel=weights
    )
    (expected,) = onnx_runtime("Conv", [x, weights], strides=[stride, 1], auto_pad=mode)
    np.testing.assert_allclose(run(layer, x)[0], expected, rtol=1e-4, atol=1e-4)


def test_rounding_up_adds_a_window_over_zeros():
    x = np.ones((1, 1, 1, 4), np.float32)
    weights = np.ones((1, 1, 1, 3), np.float32)
    layer = Convolution(num_output_maps=1, kernel_size_nd=(1, 3), stride_nd=(1, 2), kernel=weights)
    assert run(layer, x)[0].ravel().tolist() == [3]
    layer.padding_mode = PaddingMode.EXPLICIT_ROUND_UP
    assert run(layer, x)[0].ravel().tolist() == [3, 2]


def test_kernel_and_bias_may_be_inputs():
    x, weights, bias = random_array((1, 2, 5, 5)), random_array((3, 2, 3, 3), seed=1), random_array((3,), seed=2)
    given_as_parameters = Convolution(num_output_maps=3, kernel_size_nd=(3, 3), kernel=weights, bias=bias)
    given_as_inputs = Convolution(num_output_maps=3, kernel_size_nd=(3, 3))
    np.testing.assert_array_equal(run(given_as_parameters, x)[0], run(given_as_inputs, x, weights, bias)[0])


def test_fp16_rounds_the_kernel_and_the_result_once_and_not_the_bias():
    # 1 + 2**-11 and the bias 2**-12 are not FP16 numbers; the exact sum in FP32 is rounded once.
    x = np.full((1, 1, 1, 1), 2.0, np.float16)
    weights = np.full((1, 1, 1, 1), 1 + 2**-11 + 2**-12, np.float32)
    bias = np.full((1,), 2**-12, np.float32)
    layer = Convolution(num_output_maps=1, kernel_size_nd=(1, 1), kernel=weights, bias=bias)
    (y,) = run(layer, x)
    in_fp32 = np.float32(2) * np.float32(np.float16(1 + 2**-11 + 2**-12)) + np.float32(2**-12)
    assert y.dtype == np.float16
    assert y.item() == np.float16(in_fp32)
    # A large FP32 bias that FP16 could not hold cancels exactly.
    layer = Convolution(
        num_output_maps=1, kernel_size_nd=(1, 1), kernel=np.full((1, 1, 1, 1), -2049, np.float32), bias=bias + 4097
    )
    assert run(layer, x)[0].item() == np.float16(np.float32(-4096) + np.float32(4097 + 2**-12))


def test_int8_input_saturates():
    x = np.full((1, 1, 1, 2), 100, np.int8)
    layer = Convolution(num_output_maps=2, kernel_size_nd=(1, 1), kernel=np.array([[[[2]]], [[[0.125]]]], np.float32))
    assert run(layer, x)[0].ravel().tolist() == [127, 127, 12, 12]


def test_views_are_accepted():
    base = random_array((5, 7, 2, 1))
    view, weights = base.transpose(3, 2, 1, 0)[:, :, ::-1], random_array((3, 2, 3, 3), seed=1)
    layer = Convolution(num_output_maps=3, kernel_size_nd=(3, 3), kernel=weights)
    (expected,) = onnx_runtime("Conv", [view, weights])
    np.testing.assert_allclose(run(layer, view)[0], expected, rtol=1e-4, atol=1e-4)


def test_a_missing_kernel_is_named_with_its_remedy():
    layer = Convolution(name="conv1", num_output_maps=1, kernel_size_nd=(1, 1))
    with pytest.raises(NetworkError, match=r"'conv1'.*no kernel.*input 1"):
        run(layer, random_array((1, 1, 2, 2)))


@given(data=st.data(), axes=st.integers(1, 3), groups=st.sampled_from([1, 2]), maps=st.integers(1, 2))
def test_every_geometry_agrees_with_onnx_runtime_for_deconvolution(data, axes, groups, maps):
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
def test_same_padding_agrees_with_onnx_runtime_for_deconvolution(mode, kernel, stride):
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


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 1), (2, 2, 3, 1, 1)])
def test_fully_connected_agrees_with_the_gemm_of_onnx_runtime(shape):
    x, summed = random_array(shape), int(np.prod(shape[-3:]))
    kernel, bias = random_array((6, summed), seed=1), random_array((6,), seed=2)
    (expected,) = onnx_runtime("Gemm", [x.reshape(-1, summed), kernel, bias], transB=1)
    (y,) = run(FullyConnected(num_output_channels=6, kernel=kernel, bias=bias), x)
    np.testing.assert_allclose(y, expected.reshape(*shape[:-3], 6, 1, 1), rtol=1e-4, atol=1e-5)


def test_the_kernel_may_have_any_shape_of_the_right_size():
    x, kernel = random_array((2, 3, 2, 2)), random_array((5, 3, 2, 2), seed=1)
    flat = run(FullyConnected(num_output_channels=5, kernel=kernel.reshape(5, 12)), x)[0]
    np.testing.assert_array_equal(run(FullyConnected(num_output_channels=5, kernel=kernel.ravel()), x)[0], flat)
    np.testing.assert_array_equal(run(FullyConnected(num_output_channels=5, kernel=kernel), x)[0], flat)


def test_fp16_rounds_the_kernel_and_keeps_the_bias():
    x = np.ones((1, 1, 1, 1), np.float16)
    kernel, bias = np.full((1, 1), -2049, np.float32), np.array([2049.25], np.float32)
    # FP16 has 2048 and 2050: the kernel becomes -2048, the bias stays 2049.25.
    (y,) = run(FullyConnected(num_output_channels=1, kernel=kernel, bias=bias), x)
    assert y.item() == 1.25

"""Integer deconvolution against its definition in numpy, bit for bit: groups, strides, dilations, paddings, scales."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, assert_like_definition, exact_convolution

from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.layers.window_layer import PaddingMode
from dryfit_cpu.kernels.deconvolution import deconvolve_integer_channels, deconvolve_integers
from dryfit_cpu.kernels.integer_weights import integer_weights


def deconvolution(shape, K, kernel, *, groups=1, zero_point=0, by="output", bias="real", **parameters):
    """A chain that begins with a deconvolution; its scales are one for each output channel, one for all, or blocks'."""
    generator = np.random.default_rng(3)
    chain = QuantizedChain(shape, zero_point=zero_point)
    C = shape[1]
    weights = generator.integers(-127, 128, (C, K // groups, *kernel)).astype(np.int8)
    unit = np.float32(1 / (30 * np.sqrt(weights[:, 0].size / groups)))
    form = {"output": (K // groups,), "tensor": (), "block": (groups, K // groups, *[1] * len(kernel))}[by]
    scales = (generator.uniform(0.5, 1.5, form) * unit).astype(np.float32)
    blocks = {"block_shape": (C // groups, 1, *kernel)} if by == "block" else {}
    dequantize = Dequantize(axis=1 if by == "output" else -1, **blocks)
    offsets = generator.standard_normal(K).astype(np.float32) if bias == "real" else None
    chain.real_bias = offsets
    layer = Deconvolution(num_output_maps=K, kernel_size_nd=kernel, num_groups=groups, bias=offsets, **parameters)
    chain.multiply(layer, weights, dequantize, scales)
    return chain


@st.composite
def chains(draw):
    """A deconvolution, and what quantizers write after one."""
    groups = draw(st.sampled_from([1, 1, 2, 4]))
    C, K = groups * draw(st.sampled_from([1, 3, 4, 16])), groups * draw(st.sampled_from([1, 3, 16, 33]))
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    extents = tuple(draw(st.integers(1, 9 if rank < 3 else 4)) for _ in range(rank))
    axis = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(-2, 3))
    axes = [draw(axis) for _ in range(rank)]
    for extent, (kernel, stride, dilation, pre, post) in zip(extents, axes, strict=True):
        assume((extent - 1) * stride + (kernel - 1) * dilation + 1 - pre - post > 0)
    kernel, stride, dilation, pre, post = zip(*axes, strict=True)
    chain = deconvolution(
        (draw(st.integers(1, 2)), C, *extents),
        K,
        kernel,
        groups=groups,
        zero_point=draw(st.sampled_from([0, 0, -128, 37])),
        by=draw(st.sampled_from(["output", "tensor", "block"])),
        bias=draw(st.sampled_from([None, "real"])),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=pre,
        post_padding=post,
    )
    if draw(st.booleans()):
        chain.residual(0.05, rounds_first=draw(st.booleans()))
    if draw(st.booleans()):
        chain.activate(draw(st.sampled_from([None, (-0.4, 0.9)])))
    if draw(st.booleans()):
        chain.quantize(0.03, draw(st.sampled_from([0, -5])))
    layouts = LAYOUTS if rank >= 2 else ("linear", "strided")
    return chain, {name: draw(st.sampled_from(layouts)) for name in ("x", "residual", "y")}


@settings(max_examples=80)
@given(chains())
def test_every_chain_in_every_layout_equals_the_definition(case):
    chain, layouts = case
    assert_like_definition(chain, deconvolve_integers, exact_convolution(chain), layouts)


@pytest.mark.parametrize(("kernel", "stride"), [((2, 2), (2, 2)), ((4, 4), (2, 2)), ((3, 3), (2, 1)), ((1, 1), (3, 3))])
@pytest.mark.parametrize("zero_point", [0, -7])
def test_each_channel_alone_is_deconvolved_by_windows_of_channels(kernel, stride, zero_point):
    parameters = {"stride_nd": stride, "pre_padding": (1, 0), "post_padding": (0, -1)}
    chain = deconvolution((2, 24, 5, 6), 24, kernel, groups=24, zero_point=zero_point, by="block", **parameters)
    chain.activate(None)
    chain.quantize(0.02)
    assert_like_definition(chain, deconvolve_integer_channels, exact_convolution(chain))


def test_same_padding_gives_the_input_times_the_stride():
    chain = deconvolution((1, 8, 5, 7), 16, (4, 3), stride_nd=(2, 2), padding_mode=PaddingMode.SAME_UPPER)
    chain.quantize(0.02)
    assert chain.value.shape == (1, 16, 10, 14)
    assert_like_definition(chain, deconvolve_integers, exact_convolution(chain))


def test_scales_that_differ_within_an_output_channel_are_refused():
    chain = QuantizedChain((1, 4, 3, 3))
    weights, scales = np.ones((4, 2, 2, 2), np.int8), np.float32([0.1, 0.2, 0.1, 0.1])
    chain.multiply(Deconvolution(num_output_maps=2, kernel_size_nd=(2, 2)), weights, Dequantize(axis=0), scales)
    assert integer_weights(chain.group) is None
    equal = QuantizedChain((1, 4, 3, 3))
    layer = Deconvolution(num_output_maps=8, kernel_size_nd=(2, 2), num_groups=4)
    equal.multiply(layer, weights, Dequantize(axis=0), scales)
    np.testing.assert_array_equal(
        integer_weights(equal.group).scales, np.repeat(scales.astype(np.float64), 2) * float(np.float32(0.05))
    )

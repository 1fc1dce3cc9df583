"""Integer depthwise convolution against its definition in numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS
from tests.targets.cpu.kernels.integer_definition import requantized
from tests.targets.cpu.kernels.quantized_groups import (
    QuantizedChain,
    assert_like_definition,
    biased_to_ties,
    exact_convolution,
    in_one_step,
    random_bytes,
)

from dryfit.quantization.rounding import RoundingMode
from dryfit_cpu.compiler.window_variants import SUMS
from dryfit_cpu.kernels.integer_depthwise import convolve_integer_channels
from dryfit_cpu.kernels.requantization import requantization_of


def depthwise(shape, kernel, *, zero_point=0, bias="real", weight_zeros=None, **parameters):
    """A chain that begins with a depthwise convolution, whose bias is "real", "whole" or None.

    The zero points of weights lie around a number.
    """
    generator, chain, C = np.random.default_rng(0), QuantizedChain(shape, zero_point=zero_point), shape[1]
    weights = generator.integers(-128, 128, (C, 1, *kernel)).astype(np.int8)
    scales = generator.uniform(0.5, 1.5, C).astype(np.float32) / np.float32(30 * np.sqrt(np.prod(kernel)))
    if weight_zeros is not None:
        parameters["zero_points"] = np.clip(generator.integers(-9, 9, C) + weight_zeros, -128, 127).astype(np.int8)
    offsets = generator.standard_normal(C).astype(np.float32) if bias else None
    if bias == "whole":
        offsets = np.rint(offsets / scales / np.float32(0.05)).astype(np.int32)
    chain.convolve(weights, scales, offsets, num_groups=C, **parameters)
    return chain


@st.composite
def chains(draw):
    """A depthwise convolution, and what quantizers write after one."""
    C, H, W = draw(st.sampled_from([1, 3, 16, 20, 64, 72])), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    pair = st.tuples(st.integers(1, 5), st.integers(1, 5))
    small = st.tuples(st.integers(1, 3), st.integers(1, 3))
    side = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kernel, stride, dilation, pre, post = draw(pair), draw(small), draw(small), draw(side), draw(side)
    for axis, extent in enumerate((H, W)):
        assume(extent + pre[axis] + post[axis] > (kernel[axis] - 1) * dilation[axis])
    shape = (draw(st.integers(1, 2)), C, H, W)
    chain = depthwise(
        shape,
        kernel,
        bias=draw(st.sampled_from([None, "real", "whole"])),
        zero_point=draw(st.sampled_from([0, 0, -128, 3, 127])),
        weight_zeros=draw(st.sampled_from([None, None, 0, -128, 127])),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=pre,
        post_padding=post,
    )
    if draw(st.booleans()):
        chain.residual(0.05, rounds_first=draw(st.booleans()), zero_point=draw(st.sampled_from([0, 7])))
    ending = draw(st.sampled_from(["real", "rounded", "rounded twice"]))
    if ending != "real":
        chain.activate(None)
        chain.quantize(0.03, draw(st.sampled_from([0, 0, -128, 5])))
    if ending == "rounded twice":
        chain.dequantize()
        chain.activate((0.0, 1.2))
        chain.quantize(0.011)
    return chain, {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@settings(max_examples=80)
@given(chains())
def test_every_chain_in_every_layout_equals_the_definition(case):
    chain, layouts = case
    assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain), layouts)


def quantized_twice(chain):
    """The chain with two roundings, whose limits are not those of a byte."""
    chain.quantize(0.03)
    chain.dequantize()
    chain.activate((0.0, 2.0))
    chain.quantize(0.02)
    return chain


def limited_again(chain):
    """The chain with a second rounding that only limits."""
    chain.quantize(0.03)
    chain.dequantize()
    chain.activate((0.0, 2.0))
    chain.quantize(0.03)
    return chain


def quantized(chain):
    """The chain with a rounding, within limits."""
    chain.activate((-1.0, 2.5))
    chain.quantize(0.03)
    return chain


@pytest.mark.parametrize("bias", ["real", "whole"])
@pytest.mark.parametrize("ending", [pytest.param(quantized, marks=pytest.mark.nightly), quantized_twice, limited_again])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1), (1, 3)])
def test_the_windows_of_known_networks_are_summed_exactly_at_every_border(kernel, stride, ending, bias):
    for H, W, before, after in [(17, 27, 1, 1), (7, 7, 2, 2), (8, 5, 0, 1), (3, 4, 3, 4), (5, 5, 0, 0)]:
        padding = {"pre_padding": (before, before), "post_padding": (after, after)}
        chain = ending(depthwise((2, 80, H, W), kernel, bias=bias, stride_nd=stride, **padding))
        assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))


@pytest.mark.parametrize("bias", ["real", "whole"])
@pytest.mark.parametrize("ending", [quantized, quantized_twice, limited_again])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
@pytest.mark.parametrize("weight_zeros", [-128, 11])
def test_windows_whose_weights_have_zero_points_are_summed_exactly(weight_zeros, stride, ending, bias):
    for kernel, H, W in [((3, 3), 7, 9), ((5, 5), 8, 6), ((2, 4), 5, 5)]:
        chain = ending(
            depthwise(
                (1, 40, H, W), kernel, bias=bias, zero_point=-5, weight_zeros=weight_zeros, stride_nd=stride,
                pre_padding=(1, 1), post_padding=(1, 1),
            )
        )  # fmt: skip
        assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))


@pytest.mark.parametrize("ends_quantized", [True, False])
def test_a_real_bias_is_added_after_the_scale_in_a_step_of_its_own(ends_quantized):
    chain = biased_to_ties((1, 192, 4, 9), random_bytes((192, 1, 3, 3)), num_groups=192)
    if ends_quantized:
        chain.quantize(0.25)
    found = assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))
    if ends_quantized:
        for scaled in in_one_step(chain):
            assert (requantized(scaled, np.float32(1), requantization_of(chain.group)) != found).mean() > 0.1


@pytest.mark.parametrize("C", [1, 15, 16, 17, 24, 31, 33, 48, 63, 65, 96, 130, 144])
def test_blocks_cover_every_number_of_channels(C):
    chain = quantized(depthwise((1, C, 6, 9), (3, 3), pre_padding=(1, 1), post_padding=(1, 1)))
    assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))


def test_blocks_are_in_the_image_and_leave_no_channel_out():
    for channels in range(16, 300):
        blocks = SUMS.blocks(channels)
        assert all(first >= 0 and first + width <= channels for first, width in blocks)
        assert set().union(*(range(first, first + width) for first, width in blocks)) == set(range(channels))


@pytest.mark.parametrize("scales", [(1e-6,), (1e8, 1e-6)])
@pytest.mark.parametrize("fill", [-128, 127])
def test_the_largest_sums_are_limited_and_not_wrapped(fill, scales):
    chain = QuantizedChain((1, 64, 9, 9), scale=1e8)
    chain.fill = fill
    weights = np.where(np.arange(64) % 2, 127, -128).astype(np.int8).reshape(64, 1, 1, 1)
    chain.convolve(np.broadcast_to(weights, (64, 1, 3, 3)).copy(), np.full(64, 1e4, np.float32), None, num_groups=64)
    chain.quantize(scales[0])
    for scale in scales[1:]:
        chain.dequantize()
        chain.quantize(scale)
    y = assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))
    assert set(np.unique(y)) == {-128, 127}


@pytest.mark.parametrize("rounding", RoundingMode)
def test_the_same_kernel_rounds_as_each_device_does(rounding):
    chain = depthwise((1, 32, 9, 12), (3, 3))
    chain.quantize(0.25)
    assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain), rounding=rounding)


def test_a_window_whose_sums_fp32_cannot_hold_is_not_taken():
    chain = depthwise((1, 2, 31, 31), (31, 31), bias="whole")
    assert convolve_integer_channels.accepts(chain.group, chain.specs)
    chain = depthwise((1, 2, 32, 32), (32, 32), bias="whole")
    assert not convolve_integer_channels.accepts(chain.group, chain.specs)

"""Integer depthwise convolution against its definition in numpy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, assert_like_definition, exact_convolution

from dryfit.quantization.rounding import RoundingMode
from dryfit_cpu.kernels.integer_depthwise import convolve_integer_channels


def depthwise(shape, kernel, *, bias=True, **parameters):
    """A chain that begins with a depthwise convolution."""
    generator, chain, C = np.random.default_rng(0), QuantizedChain(shape), shape[1]
    weights = generator.integers(-128, 128, (C, 1, *kernel)).astype(np.int8)
    scales = generator.uniform(0.5, 1.5, C).astype(np.float32) / np.float32(30 * np.sqrt(np.prod(kernel)))
    offsets = generator.standard_normal(C).astype(np.float32) if bias else None
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
        bias=draw(st.booleans()),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=pre,
        post_padding=post,
    )
    if draw(st.booleans()):
        chain.residual(0.05, rounds_first=draw(st.booleans()))
    ending = draw(st.sampled_from(["real", "rounded", "rounded twice"]))
    if ending != "real":
        chain.activate(None)
        chain.quantize(0.03)
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


@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_windows_of_three_columns_read_each_input_once(stride):
    chain = depthwise((2, 96, 17, 27), (3, 3), stride_nd=stride, pre_padding=(1, 1), post_padding=(1, 1))
    chain.quantize(0.03)
    chain.dequantize()
    chain.activate((0.0, 2.0))
    chain.quantize(0.02)
    assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain))


@pytest.mark.parametrize("rounding", RoundingMode)
def test_the_same_kernel_rounds_as_each_device_does(rounding):
    chain = depthwise((1, 32, 9, 12), (3, 3))
    chain.quantize(0.25)
    assert_like_definition(chain, convolve_integer_channels, exact_convolution(chain), rounding=rounding)


def test_a_window_whose_sums_fp32_cannot_hold_is_not_taken():
    chain = depthwise((1, 2, 15, 15), (15, 15))
    assert convolve_integer_channels.accepts(chain.group, chain.specs)
    chain = depthwise((1, 2, 16, 16), (16, 16))
    assert not convolve_integer_channels.accepts(chain.group, chain.specs)

"""Integer convolution against its definition in numpy, bit for bit, and against the layers one by one."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, run_group
from tests.targets.cpu.kernels.integer_definition import requantized
from tests.targets.cpu.kernels.quantized_groups import (
    QuantizedChain,
    assert_like_definition,
    biased_to_ties,
    exact_convolution,
    in_one_step,
    random_bytes,
)

from dryfit.errors import EngineFileError, ExecutionError
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.inference import infer_specs
from dryfit.target.kernels import Binding
from dryfit_cpu import codes
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels import convolution as convolution_module
from dryfit_cpu.kernels import integer_products
from dryfit_cpu.kernels.convolution import convolve_integers
from dryfit_cpu.kernels.dilated_windows import rectangles
from dryfit_cpu.kernels.integer_endings import ending_of, without_needless_rounding
from dryfit_cpu.kernels.integer_products import joined_words
from dryfit_cpu.kernels.integer_weights import REPEATED, UNIT, in_bytes, integer_weights
from dryfit_cpu.kernels.matrix_products import chunks_and_parts
from dryfit_cpu.kernels.requantization import requantization_of
from dryfit_cpu.kernels.windows import WindowGeometry


def convolution(
    shape, K, kernel, *, seed=0, groups=1, bias="real", zero_point=0, weight_zeros=None, is_cut=False, **parameters
):
    """A chain that begins with a convolution whose sums are spread over the range of its scales.

    Its bias is "real", "whole" units of the products, or None. The zero points of weights lie around a number; where
    they have some, only a few weights are at the ends of the range.
    """
    generator = np.random.default_rng(seed)
    chain = QuantizedChain(shape, zero_point=zero_point, is_cut=is_cut)
    weights = generator.integers(-128, 128, (K, shape[1] // groups, *kernel)).astype(np.int8)
    if weight_zeros is not None:
        weights = np.where(generator.random(weights.shape) < 0.95, weights // 4, weights).astype(np.int8)
        parameters["zero_points"] = np.clip(generator.integers(-9, 9, K) + weight_zeros, -128, 127).astype(np.int8)
    scales = generator.uniform(0.5, 1.5, K).astype(np.float32) / np.float32(30 * np.sqrt(weights[0].size))
    offsets = generator.standard_normal(K).astype(np.float32) if bias else None
    if bias == "whole":
        offsets = np.rint(offsets / scales / np.float32(0.05)).astype(np.int32)
    chain.convolve(weights, scales, offsets, num_groups=groups, **parameters)
    return chain


COMBINED = (
    ElementWiseOperation.SUB,
    ElementWiseOperation.PROD,
    ElementWiseOperation.MAX,
    ElementWiseOperation.MIN,
)


def followed(draw, chain):
    """A chain with what quantizers write after its sums: a residual, an activation, roundings."""
    if draw(st.booleans()):
        operation = draw(st.sampled_from([ElementWiseOperation.SUM, ElementWiseOperation.SUM, *COMBINED]))
        zero = draw(st.sampled_from([0, 0, -9]))
        scale = draw(st.sampled_from([0.02, 0.05]))
        chain.residual(scale, rounds_first=draw(st.booleans()), operation=operation, zero_point=zero)
    if draw(st.booleans()):
        chain.activate(draw(st.sampled_from([None, (-0.4, 0.9)])))
    ending = draw(st.sampled_from(["real", "rounded", "rounded twice"]))
    if ending != "real":
        chain.quantize(0.03, draw(st.sampled_from([0, 0, -128, 5])))
    if ending == "rounded twice":
        chain.dequantize()
        chain.activate(draw(st.sampled_from([None, (-0.4, 0.9)])))
        chain.quantize(0.011)
    return chain


@st.composite
def chains(draw):
    """A convolution, and what quantizers write after one."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 4]))
    C = groups * draw(st.sampled_from([1, 2, 3, 4, 5, 16, 20, 64]))
    K = groups * draw(st.sampled_from([1, 3, 16, 32, 33, 40, 64]))
    H, W = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    side = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kernel, stride, dilation, pre, post = draw(pair), draw(pair), draw(pair), draw(side), draw(side)
    for axis, extent in enumerate((H, W)):
        assume(extent + pre[axis] + post[axis] > (kernel[axis] - 1) * dilation[axis])
    chain = convolution(
        (draw(st.integers(1, 3)), C, H, W),
        K,
        kernel,
        groups=groups,
        bias=draw(st.sampled_from([None, "real", "whole"])),
        zero_point=draw(st.sampled_from([0, 0, -128, 3, 127])),
        weight_zeros=draw(st.sampled_from([None, None, 0, -128, 20, 127])) if groups < C else None,
        is_cut=draw(st.booleans()),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=pre,
        post_padding=post,
    )
    return followed(draw, chain), {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@st.composite
def far_apart(draw):
    """A convolution whose window's places lie so far apart that many fall into the padding."""
    groups = draw(st.sampled_from([1, 1, 2]))
    dilation = draw(st.tuples(st.integers(1, 24), st.integers(2, 24)))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    padding = [(k - 1) * d // 2 for k, d in zip(kernel, dilation, strict=True)]
    chain = convolution(
        (
            draw(st.integers(1, 2)),
            groups * draw(st.sampled_from([2, 4, 20])),
            *draw(st.tuples(*[st.integers(4, 19)] * 2)),
        ),
        groups * draw(st.sampled_from([1, 33, 40])),
        kernel,
        groups=groups,
        bias=draw(st.sampled_from([None, "real", "whole"])),
        zero_point=draw(st.sampled_from([0, -128, 3, 127])),
        weight_zeros=draw(st.sampled_from([None, None, 20])),
        is_cut=draw(st.booleans()),
        dilation_nd=dilation,
        pre_padding=padding,
        post_padding=[(k - 1) * d - p for k, d, p in zip(kernel, dilation, padding, strict=True)],
    )
    return followed(draw, chain), {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@st.composite
def volumes(draw):
    """A convolution with three spatial axes, and what quantizers write after one."""
    groups = draw(st.sampled_from([1, 1, 2]))
    C, K = groups * draw(st.sampled_from([1, 3, 4, 16, 64])), groups * draw(st.sampled_from([1, 16, 33]))
    extents = draw(st.tuples(*[st.integers(1, 9)] * 3))
    axis = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2), st.integers(0, 2))
    axes = [draw(axis) for _ in range(3)]
    for extent, (kernel, _, dilation, pre, post) in zip(extents, axes, strict=True):
        assume(extent + pre + post > (kernel - 1) * dilation)
    kernel, stride, dilation, pre, post = zip(*axes, strict=True)
    parameters = {"stride_nd": stride, "dilation_nd": dilation, "pre_padding": pre, "post_padding": post}
    zero_point = draw(st.sampled_from([0, 0, -128, 3]))
    shape = (draw(st.integers(1, 2)), C, *extents)
    chain = convolution(shape, K, kernel, groups=groups, zero_point=zero_point, **parameters)
    if draw(st.booleans()):
        chain.residual(0.05, rounds_first=draw(st.booleans()))
    if draw(st.booleans()):
        chain.quantize(0.03, draw(st.sampled_from([0, -5])))
    return chain, {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@settings(max_examples=60)
@given(volumes())
def test_every_convolution_of_volumes_equals_the_definition(case):
    chain, layouts = case
    assert_like_definition(chain, convolve_integers, exact_convolution(chain), layouts)


@settings(max_examples=60)
@given(far_apart())
def test_places_that_fall_into_the_padding_are_left_out(case):
    chain, layouts = case
    assert_like_definition(chain, convolve_integers, exact_convolution(chain), layouts)


@pytest.mark.parametrize("weight_zeros", [-128, 11])
@pytest.mark.parametrize("groups", [1, 2])
def test_pieces_of_k_that_come_again_do_so_in_the_rectangles_that_have_their_place(weight_zeros, groups, monkeypatch):
    monkeypatch.setattr(integer_products, "_multiplies_bytes", lambda: True)
    chain = convolution(
        (1, 16 * groups, 11, 9), 40 * groups, (3, 3), groups=groups, zero_point=-7, weight_zeros=weight_zeros,
        dilation_nd=(6, 7), pre_padding=(6, 7), post_padding=(6, 7),
    )  # fmt: skip
    chain.quantize(0.03, 5)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.parametrize(("dilation", "count", "places"), [(12, 9, 25), (16, 1, 1), (36, 1, 1), (1, 0, 0), (3, 0, 0)])
def test_outputs_with_the_same_places_inside_the_image_are_rectangles(dilation, count, places):
    around = ((dilation, dilation), (dilation, dilation))
    image = (1, 64, 16, 16)
    found = rectangles(WindowGeometry(image, image, (3, 3), (1, 1), (dilation, dilation), around, 1))
    assert len(found) == count
    assert sum(one.window.kernel[0] * one.window.kernel[1] for one in found) == places
    assert all(not one.window.is_padded for one in found)


@pytest.mark.parametrize(("C", "weight_zeros", "count"), [(64, None, 9), (6, None, 0), (64, 20, 9)])
def test_whole_units_of_weights_are_cut_into_rectangles(C, weight_zeros, count, monkeypatch):
    cut = []

    def watched(window):
        cut.append(len(rectangles(window)))
        return rectangles(window)

    monkeypatch.setattr(convolution_module, "rectangles", watched)
    chain = convolution(
        (1, C, 16, 16), 64, (3, 3), zero_point=3, weight_zeros=weight_zeros, dilation_nd=(12, 12), pre_padding=(12, 12),
        post_padding=(12, 12),
    )  # fmt: skip
    chain.quantize(0.03, 5)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    assert set(cut) == {count}


@settings(max_examples=160)
@given(chains())
def test_every_chain_in_every_layout_equals_the_definition(case):
    chain, layouts = case
    assert_like_definition(chain, convolve_integers, exact_convolution(chain), layouts)


@pytest.mark.parametrize("C", [3, 16, 20, 100])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("weight_zeros", [-128, 11])
def test_weights_with_zero_points_are_summed_exactly(C, window, weight_zeros):
    padding = (window // 2, window // 2)
    chain = convolution(
        (1, C, 9, 15), 40, (window, window), zero_point=-7, weight_zeros=weight_zeros, pre_padding=padding,
        post_padding=padding,
    )  # fmt: skip
    chain.quantize(0.03, 5)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.parametrize("C", [3, 16, 100])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("weight_zeros", [-128, 11])
def test_pieces_of_k_that_come_again_give_the_same_sums(C, window, weight_zeros, monkeypatch):
    # What machines with products of bytes do. Products of pairs can do it too, so every machine tests it.
    monkeypatch.setattr(integer_products, "_multiplies_bytes", lambda: True)
    chain = convolution((2, C, 9, 15), 40, (window, window), zero_point=-7, weight_zeros=weight_zeros)
    chain.quantize(0.03, 5)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.parametrize("largest", [255, 131])
def test_only_pieces_with_large_weights_come_again(largest):
    weights = np.random.default_rng(0).integers(-90, 90, (8, 3, 64)).astype(np.int32)
    weights[5, 1, 17] = largest
    runs, (units, *pieces) = in_bytes(weights, 16)
    assert runs.dtype == np.int8
    assert set(pieces) == {(64 + 17) // (UNIT * units)}
    assert len(pieces) == (2 if largest == 255 else 1)
    joined = runs[:, : weights.size // 8 // (UNIT * units)].astype(np.int32)
    for index, piece in enumerate(pieces):
        joined[:, piece] += runs[:, joined.shape[1] + index]
    np.testing.assert_array_equal(joined.reshape(weights.shape), weights)


def test_a_table_of_pieces_that_does_not_fit_the_input_is_refused():
    chain = convolution((1, 16, 9, 9), 32, (1, 1), weight_zeros=11)
    chain.quantize(0.03)
    weights = dict(convolve_integers.pack(chain.group))
    weights[REPEATED] = np.array([weights[REPEATED][0], 99], np.int32)
    damaged = attrs.evolve(convolve_integers, pack=lambda _: weights)
    with pytest.raises(EngineFileError, match="do not match"):
        run_group(chain.network, chain.layers, chain.feeds(), kernel=damaged)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 7, 8, 12, 13, 14, 15, 20, 21, 22, 27, 28, 29, 35])
def test_rows_of_every_width_are_covered_by_tiles(width):
    chain = convolution((2, 4, 3, width), 40, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.parametrize("rounding", RoundingMode)
def test_the_same_kernel_rounds_as_each_device_does(rounding):
    chain = convolution((1, 16, 9, 9), 32, (3, 3))
    chain.residual(0.25, rounds_first=True)
    chain.quantize(0.25)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain), rounding)


@pytest.mark.parametrize("C", [512, 2048])
def test_many_channels_with_pixels_far_apart_are_summed_exactly(C):
    chain = convolution((1, C, 4, 8), 96, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


def test_the_largest_products_are_summed_exactly():
    chain = QuantizedChain((1, 300, 1, 14))
    chain.convolve(np.full((33, 300, 1, 1), -128, np.int8), np.full(33, 0.01, np.float32), None)
    chain.fill = -128
    chain.quantize(25.0)
    assert (assert_like_definition(chain, convolve_integers, exact_convolution(chain)) == 98).all()


@pytest.mark.parametrize("channels", [300, 301])
def test_the_largest_products_of_codes_behind_a_relu_are_summed_exactly(channels):
    chain = QuantizedChain((1, channels, 1, 14), is_cut=True)
    chain.convolve(np.full((33, channels, 1, 1), -128, np.int8), np.full(33, 0.01, np.float32), None)
    chain.fill = 127
    chain.quantize(25.0)
    assert (assert_like_definition(chain, convolve_integers, exact_convolution(chain)) == -98).all()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("weight", [64, 65])
def test_products_that_fit_16_bits_when_joined_and_those_just_too_large_are_summed_exactly(sign, weight):
    chain = QuantizedChain((1, 64, 1, 14), is_cut=True)
    weights = np.zeros((33, 64, 1, 1), np.int8)
    # Four weights of one sign that sum to 258, whose products with 127 fit, or to 260.
    weights[:, 0::4], weights[:, 1::4] = sign * 65, sign * weight
    chain.convolve(weights, np.full(33, 0.01, np.float32), None)
    chain.fill = 127
    chain.quantize(1.5)
    found = assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    assert (abs(found.astype(int)) > 80).all()


@pytest.mark.parametrize("channels", [4, 12, 64, 67])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
@pytest.mark.parametrize("spread", [20, 45, 80])
def test_codes_behind_a_relu_are_summed_exactly_whichever_words_are_joined(channels, kernel, spread):
    generator = np.random.default_rng(channels)
    chain = QuantizedChain((1, channels, 7, 15), is_cut=True)
    weights = np.clip(generator.standard_normal((40, channels, *kernel)) * spread, -128, 127).astype(np.int8)
    scale = 1.5 / (spread * np.sqrt(weights[0].size) * 0.05 * 70)
    chain.convolve(weights, np.full(40, scale, np.float32), None)
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.skipif(not current_tier().joins_words, reason="this tier joins no words")
def test_words_are_joined_where_no_sum_of_weights_of_one_sign_is_too_large():
    generator = np.random.default_rng(0)
    panels = np.clip(generator.standard_normal((1, 3, 21, 32, 4)) * 55, -128, 127).astype(np.int8)
    width = current_tier().block_channels
    blocks = panels.reshape(-1, 32 // width, width, 2, 2).astype(int)
    shares = [np.maximum(sign * blocks, 0).sum(axis=-1) for sign in (1, -1)]
    expected = np.zeros(blocks.shape[:2], bool)
    expected[:-1] = np.all([(share[:-1] + share[1:] <= 258).all(axis=(2, 3)) for share in shares], axis=0)
    assert 0.2 < expected.mean() < 0.9
    assert (joined_words(panels).reshape(expected.shape) == expected).all()


@pytest.mark.parametrize("channels", [1, 7, 8, 15, 16, 24, 31, 33, 48])
@pytest.mark.parametrize("rounds_first", [False, True])
def test_channels_that_do_not_fill_a_block_are_computed_with_a_residual(channels, rounds_first):
    chain = convolution((1, 32, 5, 9), channels, (1, 1))
    chain.residual(0.05, rounds_first=rounds_first)
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


@pytest.mark.parametrize("order", [codes.TILES_OUTSIDE, codes.PANELS_OUTSIDE])
@pytest.mark.parametrize("channels", [24, 96, 160])
def test_threads_share_the_pixels_where_there_are_few_channels(order, channels, monkeypatch):
    shared = []

    def noted(outer, inner, threads):
        shared.append((threads, chunks_and_parts(outer, inner, threads)[0]))
        return chunks_and_parts(outer, inner, threads)

    monkeypatch.setattr(integer_products, "order_of", lambda *_: order)
    monkeypatch.setattr(integer_products, "chunks_and_parts", noted)
    chain = convolution((1, 20, 14, 30), channels, (1, 1))
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    assert all(chunks >= threads for threads, chunks in shared)


@pytest.mark.parametrize("limits", [None, (-0.4, 0.9), (0.05, 0.07)])
def test_a_second_rounding_in_the_same_scale_is_left_out_and_changes_nothing(limits):
    chain = convolution((1, 32, 9, 14), 64, (1, 1))
    chain.quantize(0.03)
    chain.dequantize()
    chain.activate(limits)
    chain.quantize(0.03)
    steps = requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    assert steps.rounds_last
    assert not without_needless_rounding(steps).rounds_last
    assert_like_definition(chain, convolve_integers, exact_convolution(chain))


def test_a_second_rounding_in_another_scale_stays():
    chain = convolution((1, 32, 9, 14), 64, (1, 1))
    chain.quantize(0.03)
    chain.dequantize()
    chain.quantize(0.011)
    steps = requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    assert without_needless_rounding(steps) == steps


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("scale", [1e-9, 1.0])
def test_numbers_beyond_32_bits_are_saturated(sign, scale):
    chain = QuantizedChain((1, 64, 3, 14))
    chain.convolve(np.full((32, 64, 1, 1), sign * 127, np.int8), np.full(32, 1.0, np.float32), None)
    chain.fill = 127
    chain.quantize(scale)
    steps = requantization_of(chain.group, RoundingMode.HALF_TO_EVEN)
    ending = ending_of(steps, codes.INT8, codes.INT8, 64 * 2.0**14 * 0.05 / scale)
    assert ending == (codes.SCALES if scale == 1.0 else codes.LEAVES_SUMS)
    result = assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    assert (result == (127 if sign > 0 else -128)).all()


@pytest.mark.parametrize("ending", ["once", "with a residual", "with a residual, twice", "twice", "real"])
def test_a_real_bias_is_added_after_the_scale_in_a_step_of_its_own(ending):
    chain = biased_to_ties((1, 32, 2, 15), random_bytes((128, 32, 1, 1)))
    if "residual" in ending:
        chain.residual(0.25, rounds_first="twice" in ending)
    if ending != "real":
        chain.quantize(0.25)
    if ending == "twice":
        chain.dequantize()
        chain.quantize(0.5)
    found = assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    if ending == "once":
        for scaled in in_one_step(chain):
            assert (requantized(scaled, np.float32(1), requantization_of(chain.group)) != found).mean() > 0.1


def test_a_bias_of_whole_units_is_part_of_the_sums():
    chain = convolution((1, 8, 5, 9), 40, (1, 1), bias="whole")
    found = integer_weights(chain.group)
    assert found.real_bias is None
    np.testing.assert_array_equal(found.bias, chain.whole_bias)


def test_a_bias_of_other_units_than_the_products_is_real():
    chain = convolution((1, 8, 5, 9), 40, (1, 1), bias="whole")
    chain.group.main.bias = chain.group.main.bias * np.float32(1.01)
    found = integer_weights(chain.group)
    assert not found.bias.any()
    np.testing.assert_array_equal(found.real_bias, chain.group.main.bias)


@pytest.mark.parametrize("bias", [3e38, -3e38])
def test_a_bias_beyond_32_bits_is_saturated(bias):
    chain = QuantizedChain((1, 8, 3, 14))
    chain.convolve(np.ones((32, 8, 1, 1), np.int8), np.full(32, 0.01, np.float32), np.full(32, bias, np.float32))
    chain.quantize(2.0)
    result = assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    assert (result == (127 if bias > 0 else -128)).all()


@pytest.mark.parametrize("bias", [np.nan, np.inf])
def test_a_bias_that_is_no_number_is_not_taken(bias):
    chain = convolution((1, 8, 5, 9), 40, (1, 1))
    chain.group.main.bias[3] = bias
    assert not convolve_integers.accepts(chain.group, chain.specs)


@pytest.mark.parametrize(
    ("shape", "kernel", "parameters"),
    [
        ((2, 64, 9, 9), (1, 1), {}),
        ((2, 64, 9, 17), (1, 1), {"stride_nd": (2, 2)}),
        ((1, 1024, 4, 16), (1, 1), {"stride_nd": (2, 2)}),
        ((1, 20, 9, 20), (3, 3), {}),
        ((1, 20, 9, 20), (3, 3), {"dilation_nd": (2, 2)}),
        ((1, 32, 9, 20), (3, 3), {"num_groups": 2}),
        ((1, 16, 9, 6), (3, 3), {"stride_nd": (1, 2)}),
    ],
)
def test_an_image_without_padding_is_read_where_it_lies(shape, kernel, parameters):
    groups = parameters.pop("num_groups", 1)
    for is_cut in (False, True):
        chain = convolution(shape, 40 * groups, kernel, groups=groups, is_cut=is_cut, **parameters)
        chain.quantize(0.03)
        assert_like_definition(chain, convolve_integers, exact_convolution(chain))


def test_the_first_layer_of_a_picture_network_has_three_channels():
    chain = convolution((1, 3, 31, 45), 64, (7, 7), stride_nd=(2, 2), pre_padding=(3, 3), post_padding=(3, 3))
    chain.activate(None)
    chain.quantize(0.02)
    assert_like_definition(chain, convolve_integers, exact_convolution(chain), {"x": "linear", "y": "channels_last"})


def test_results_are_those_of_the_layers_one_by_one_but_for_ties():
    chain = convolution((1, 32, 14, 14), 64, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    chain.residual(0.03, rounds_first=True)
    chain.activate(None)
    chain.quantize(0.03)
    actual = assert_like_definition(chain, convolve_integers, exact_convolution(chain))
    difference = np.abs(actual.astype(int) - chain.layer_by_layer().astype(int))
    assert difference.max() <= 2  # a tie at the first rounding, in units of the second
    assert (difference > 0).mean() < 1e-2


def bound(kernel, chain, batches):
    """Bind a chain with dynamic batches, given for each input; returns output and step."""
    specs = infer_specs(chain.network, {name: (batch, *chain.specs[name].shape[1:]) for name, batch in batches.items()})
    group = chain.group
    arrays = {tensor.name: random_bytes(specs[tensor.name].shape) for tensor in chain.network.inputs}
    output = np.empty(specs[group.outputs[0].name].shape, np.int8)
    arrays[group.outputs[0].name] = output
    return output, kernel.bind(Binding(group, specs, arrays, kernel.pack(group), np.empty(0, np.uint8)))


def test_a_residual_that_turns_out_to_be_larger_than_the_output_is_refused():
    chain = convolution((-1, 4, 5, 5), 8, (1, 1))
    chain.residual(0.02, rounds_first=False)
    chain.quantize(0.03)
    with pytest.raises(ExecutionError, match="must broadcast to the output's shape") as caught:
        bound(convolve_integers, chain, {"x": 1, "residual": 2})
    assert (caught.value.found, caught.value.allowed) == ((2, 8, 5, 5), (1, 8, 5, 5))


def test_a_residual_of_one_image_is_added_to_each():
    chain = convolution((-1, 4, 5, 5), 8, (1, 1))
    chain.residual(0.02, rounds_first=False)
    chain.quantize(0.03)
    together, step = bound(convolve_integers, chain, {"x": 2, "residual": 1})
    step.run()
    alone, step = bound(convolve_integers, chain, {"x": 1, "residual": 1})
    step.run()
    np.testing.assert_array_equal(together[:1], alone)
    assert (together[1:] != alone).any()


def test_a_sum_that_could_overflow_is_not_taken():
    chain = QuantizedChain((1, 131072, 1, 1))
    chain.convolve(np.ones((1, 131072, 1, 1), np.int8), np.ones(1, np.float32), None)
    assert not convolve_integers.accepts(chain.group, chain.specs)

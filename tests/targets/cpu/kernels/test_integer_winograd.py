"""Integer convolution in Winograd's tiles: bit for bit the direct convolution's definition, up to the largest sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, run_group
from tests.targets.cpu.kernels.quantized_groups import QuantizedChain, assert_like_definition, exact_convolution
from tests.targets.cpu.kernels.test_integer_convolution import convolution, followed

from dryfit.errors import ExecutionError
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.kernels import Binding
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels import integer_winograd, winograd_tiling
from dryfit_cpu.kernels.convolution import convolve_integers
from dryfit_cpu.kernels.integer_winograd import block_table, convolve_integers_in_tiles, has_small_sums
from dryfit_cpu.native.winograd_matrices import (
    WHOLE_INPUT_TRANSFORM,
    WHOLE_KERNEL_TRANSFORM,
    WHOLE_MULTIPLES,
    WHOLE_OUTPUT_TRANSFORM,
)

SAME = {"pre_padding": (1, 1), "post_padding": (1, 1)}


@st.composite
def chains(draw):
    """A convolution with the window that the matrices are for, and what quantizers write after one."""
    C, K = draw(st.sampled_from([32, 64])), draw(st.sampled_from([32, 64, 96]))
    side = st.tuples(st.integers(0, 2), st.integers(0, 2))
    extent = st.integers(9, 20)
    chain = convolution(
        (draw(st.integers(1, 2)), C, draw(extent), draw(extent)),
        K,
        (3, 3),
        bias=draw(st.sampled_from([None, "real", "whole"])),
        zero_point=draw(st.sampled_from([0, 0, -128, 3, 127])),
        pre_padding=draw(side),
        post_padding=draw(side),
    )
    return followed(draw, chain), {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@settings(max_examples=50)
@given(chains())
def test_every_chain_in_every_layout_equals_the_definition(case):
    chain, layouts = case
    assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain), layouts)


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("extent", [(12, 12), (13, 15), (14, 17), (15, 22)])
def test_tiles_cover_images_of_every_extent_and_padding(extent, padding):
    sides = {"pre_padding": (padding, padding), "post_padding": (padding, padding)}
    chain = convolution((2, 32, *extent), 32, (3, 3), zero_point=-7, **sides)
    chain.quantize(0.03)
    assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain))


@pytest.mark.parametrize("rounding", RoundingMode)
def test_the_same_kernel_rounds_as_each_device_does(rounding):
    chain = convolution((1, 32, 13, 14), 32, (3, 3), **SAME)
    chain.residual(0.25, rounds_first=True)
    chain.quantize(0.25)
    assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain), rounding)


@pytest.mark.parametrize("threads", [1, 2, 4, 5])
@pytest.mark.parametrize("channels", [96, 128])
def test_strips_and_threads_change_no_bit(channels, threads, monkeypatch):
    chain = convolution((2, 64, 23, 21), channels, (3, 3), **SAME)
    chain.residual(0.05, rounds_first=False, operation=ElementWiseOperation.SUM)
    chain.quantize(0.03)
    feeds = chain.feeds()
    direct = run_group(chain.network, chain.layers, feeds, kernel=convolve_integers)
    for tiles in (1, 14, 1000):
        monkeypatch.setattr(winograd_tiling, "_STRIP_BYTES", 1)
        monkeypatch.setattr(winograd_tiling, "_STRIP_TILES", tiles)
        found = run_group(chain.network, chain.layers, feeds, kernel=convolve_integers_in_tiles, threads=threads)
        np.testing.assert_array_equal(found, direct)


def summing(weights, extent=(10, 10)):
    """A chain of a convolution whose sums are the result, in steps of one."""
    chain = QuantizedChain((1, weights.shape[1], *extent))
    chain.convolve(weights, np.full(len(weights), 20.0, np.float32), None)
    return chain


@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("weight", [-128, 127])
def test_the_largest_values_of_the_most_channels_that_always_fit_are_summed_exactly(value, weight):
    chain = summing(np.full((32, 224, 3, 3), weight, np.int8), (12, 12))
    chain.fill = value
    found = assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain))
    assert (found == 224 * 9 * value * weight).all()


def checkered(extent):
    """1 and -1 in turns: what the transforms make the largest numbers of."""
    return 1 - 2 * (np.indices((extent, extent)).sum(axis=0) % 2)


def test_sums_that_wrap_around_on_the_way_arrive():
    chain = summing(np.broadcast_to(127 * checkered(3), (32, 224, 3, 3)).astype(np.int8), (14, 14))
    chain.fill = 127 * checkered(14)
    found = assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain))
    assert (np.abs(found) == 224 * 9 * 127**2).all()


def test_sums_of_the_largest_values_of_any_sign_arrive():
    signs = np.random.default_rng(5).choice([-127, 127], (32 + 1, 224, 14, 14)).astype(np.int8)
    chain = summing(signs[1:, :, :3, :3], (14, 14))
    chain.fill = signs[0]
    assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain))


def test_weights_decide_whether_many_channels_fit():
    large, small = np.full((32, 256, 3, 3), 127, np.int8), np.full((32, 256, 3, 3), 113, np.int8)
    assert not has_small_sums(large)
    assert not convolve_integers_in_tiles.accepts(summing(large, (12, 12)).group, summing(large, (12, 12)).specs)
    chain = summing(small, (12, 12))
    chain.fill = -128
    found = assert_like_definition(chain, convolve_integers_in_tiles, exact_convolution(chain))
    assert (found == -128 * 113 * 256 * 9).all()


def test_up_to_227_channels_weights_do_not_matter():
    assert has_small_sums(np.full((1, 227, 3, 3), -128, np.int8))
    assert not has_small_sums(np.full((1, 228, 3, 3), -128, np.int8))


def test_weights_that_became_too_large_are_convolved_directly(monkeypatch):
    chain = summing(np.full((32, 256, 3, 3), -128, np.int8), (12, 12))
    chain.fill = -128
    # As of an engine that leaves out the weights, since they are packed.
    monkeypatch.setattr(integer_winograd, "is_stand_in", lambda weights: True)
    group, specs = chain.group, chain.specs
    found = np.empty(specs[group.outputs[0].name].shape, np.float32)
    arrays = {"x": chain.feeds()["x"], group.outputs[0].name: found}
    workspace = np.empty(convolve_integers_in_tiles.workspace_bytes(group, specs, 1), np.uint8)
    packed = convolve_integers_in_tiles.pack(group)
    convolve_integers_in_tiles.bind(Binding(group, specs, arrays, packed, workspace)).run()
    np.testing.assert_array_equal(found, exact_convolution(chain)[0])
    assert found.flat[0] == 128 * 128 * 256 * 9


def test_the_weights_of_an_engine_take_as_much_as_those_of_the_direct_convolution():
    chain = convolution((1, 64, 14, 14), 64, (3, 3))
    chain.quantize(0.03)
    sizes = [
        sum(array.nbytes for array in one.pack(chain.group).values())
        for one in (convolve_integers, convolve_integers_in_tiles)
    ]
    assert sizes[0] == sizes[1]


REFUSED = {
    "another window": {"kernel": (5, 5)},
    "a stride": {"stride_nd": (2, 2)},
    "dilation": {"dilation_nd": (2, 2)},
    "groups": {"groups": 2},
    "channels that fill no panel": {"C": 48},
    "outputs that fill no panel": {"K": 80},
    "small images": {"extent": (8, 20)},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_for_its_tiles_is_left_to_other_kernels(why):
    given = {"C": 64, "K": 64, "extent": (20, 20), "kernel": (3, 3), **REFUSED[why]}
    chain = convolution((1, given.pop("C"), *given.pop("extent")), given.pop("K"), given.pop("kernel"), **given)
    chain.quantize(0.03)
    assert convolve_integers.accepts(chain.group, chain.specs)
    assert not convolve_integers_in_tiles.accepts(chain.group, chain.specs)


def test_an_engine_that_names_it_for_another_convolution_is_refused_when_it_is_bound():
    chain = convolution((1, 32, 25, 25), 32, (3, 3), stride_nd=(2, 2))
    chain.quantize(0.03)
    group = chain.group
    arrays = {"x": chain.feeds()["x"], group.outputs[0].name: np.empty((1, 32, 12, 12), np.int8)}
    binding = Binding(group, chain.specs, arrays, convolve_integers.pack(group), np.empty(0, np.uint8))
    with pytest.raises(ExecutionError, match="it does not support the layer's parameters or shapes") as caught:
        convolve_integers_in_tiles.bind(binding)
    assert "'cpu.integer_winograd'" in caught.value.where


@pytest.mark.parametrize("tiles", range(1, 60))
def test_blocks_cover_all_tiles_and_few_twice(tiles):
    blocks = block_table(tiles)
    assert {tile for first, count in blocks for tile in range(first, first + count)} >= set(range(tiles))
    fewer = current_tier().fewer_rows
    assert blocks[:, 1].sum() < max(tiles, 1) + fewer
    assert all(first == 0 or first + count <= tiles for first, count in blocks)


@example(np.full(36, -128), np.full(9, -128))
@given(
    st.lists(st.integers(-128, 127), min_size=36, max_size=36).map(np.array),
    st.lists(st.integers(-128, 127), min_size=9, max_size=9).map(np.array),
)
def test_the_matrices_give_multiples_of_the_convolution_in_whole_numbers_of_16_bits(values, window):
    B, G, A = (np.array(m) for m in (WHOLE_INPUT_TRANSFORM, WHOLE_KERNEL_TRANSFORM, WHOLE_OUTPUT_TRANSFORM))
    tile, taps = values.reshape(6, 6), window.reshape(3, 3)
    transformed = B @ tile @ B.T, G @ taps @ G.T
    assert all(np.abs(one).max() < 2**15 for one in transformed)
    found = A @ (transformed[0] * transformed[1]) @ A.T
    expected = np.array([[(tile[i : i + 3, j : j + 3] * taps).sum() for j in range(4)] for i in range(4)])
    np.testing.assert_array_equal(found, expected * np.outer(WHOLE_MULTIPLES, WHOLE_MULTIPLES))


def test_no_transform_leaves_16_bits():
    for matrix in (WHOLE_INPUT_TRANSFORM, WHOLE_KERNEL_TRANSFORM):
        assert 128 * np.abs(matrix).sum(axis=1).max() ** 2 < 2**15

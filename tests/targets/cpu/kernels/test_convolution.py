"""Convolution kernels against the references of the layers in the group."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds, run_group

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels import matrix_products
from dryfit_cpu.kernels.matrix_products import Axis, exact_tile_table, tile_table

ACTIVATIONS = (
    ActivationType.RELU,
    ActivationType.CLIP,
    ActivationType.LEAKY_RELU,
    ActivationType.SIGMOID,
    ActivationType.TANH,
    ActivationType.HARD_SIGMOID,
)
TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)


def convolution(network, x, K, kernel, *, seed=0, groups=1, bias=True, **parameters):
    """A convolution whose results are about 1."""
    generator = np.random.default_rng(seed)
    shape = (K, x.shape[1] // groups, *kernel)
    weights = generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    offsets = generator.standard_normal(K).astype(np.float32) if bias else None
    layer = Convolution(
        num_output_maps=K,
        kernel_size_nd=tuple(kernel),
        kernel=weights.astype(np.float32),
        bias=offsets,
        num_groups=groups,
        **parameters,
    )
    return network.add_layer(layer, [x])


@st.composite
def groups_of_layers(draw, *, by_fours=False):
    """A network of one convolution and what may follow it, and the layouts of its tensors."""
    dtype = draw(st.sampled_from(TYPES))
    groups = draw(st.sampled_from([4, 8, 12] if by_fours else [1, 1, 1, 2, 4]))
    C = groups * (4 if by_fours else draw(st.sampled_from([1, 2, 3, 5, 16, 20])))
    K = C if by_fours else groups * draw(st.sampled_from([1, 3, 16, 32, 33, 40, 64]))
    assume(not groups == C == K)
    H, W = draw(st.integers(1, 30)), draw(st.integers(1, 30))
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    side = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kernel, stride, dilation, pre, post = draw(pair), draw(pair), draw(pair), draw(side), draw(side)
    for axis, extent in enumerate((H, W)):
        assume(extent + pre[axis] + post[axis] > (kernel[axis] - 1) * dilation[axis])
    network = Network()
    x = network.add_input("x", dtype, (draw(st.integers(1, 3)), C, H, W))
    layers = [
        convolution(
            network,
            x,
            K,
            kernel,
            groups=groups,
            bias=draw(st.booleans()),
            stride_nd=stride,
            dilation_nd=dilation,
            pre_padding=pre,
            post_padding=post,
        )
    ]
    generator = np.random.default_rng(1)
    if draw(st.booleans()):
        shift, scale = generator.standard_normal((2, K)).astype(np.float32)
        layers.append(network.add_scale(layers[-1].get_output(0), ScaleMode.CHANNEL, shift, scale))
    if draw(st.booleans()):
        layers.append(activation(network, layers[-1].get_output(0), draw(st.sampled_from(ACTIVATIONS))))
    if draw(st.booleans()):
        value = layers[-1].get_output(0)
        shape = value.shape if draw(st.booleans()) else (1, K, 1, 1)
        residual = network.add_input("residual", dtype, shape)
        layers.append(network.add_elementwise(value, residual, ElementWiseOperation.SUM))
        if draw(st.booleans()):
            layers.append(activation(network, layers[-1].get_output(0), draw(st.sampled_from(ACTIVATIONS))))
    layouts = {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}
    return network, layers, layouts


def activation(network, x, kind):
    layer = network.add_activation(x, kind)
    layer.alpha, layer.beta = {
        ActivationType.CLIP: (-0.5, 0.75),
        ActivationType.LEAKY_RELU: (0.1, 0.0),
        ActivationType.HARD_SIGMOID: (0.2, 0.5),
    }.get(kind, (0.0, 0.0))
    return layer


@settings(max_examples=120)
@given(groups_of_layers())
def test_every_group_of_layers_in_every_layout_is_computed_as_the_references_do(case):
    network, layers, layouts = case
    feeds = random_feeds(network, np.random.default_rng(2), layouts)
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution", layout=layouts["y"])


@settings(max_examples=60)
@given(groups_of_layers(by_fours=True))
def test_every_convolution_in_groups_of_four_is_computed_as_the_references_do(case):
    network, layers, layouts = case
    feeds = random_feeds(network, np.random.default_rng(2), layouts)
    assert_like_reference(network, layers, feeds, kernel_name="cpu.grouped_convolution", layout=layouts["y"])


@st.composite
def volumes(draw):
    """A network of one convolution with three spatial axes and what may follow it, and the layouts of its tensors."""
    groups = draw(st.sampled_from([1, 1, 2, 4]))
    C, K = groups * draw(st.sampled_from([1, 3, 16])), groups * draw(st.sampled_from([1, 16, 33]))
    extents = draw(st.tuples(*[st.integers(1, 9)] * 3))
    axis = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2), st.integers(0, 2))
    axes = [draw(axis) for _ in range(3)]
    for extent, (kernel, _, dilation, pre, post) in zip(extents, axes, strict=True):
        assume(extent + pre + post > (kernel - 1) * dilation)
    kernel, stride, dilation, pre, post = zip(*axes, strict=True)
    parameters = {"stride_nd": stride, "dilation_nd": dilation, "pre_padding": pre, "post_padding": post}
    network, dtype = Network(), draw(st.sampled_from(TYPES))
    x = network.add_input("x", dtype, (draw(st.integers(1, 2)), C, *extents))
    layers = [convolution(network, x, K, kernel, groups=groups, **parameters)]
    if draw(st.booleans()):
        value = layers[0].get_output(0)
        shape = value.shape if draw(st.booleans()) else (1, K, 1, 1, 1)
        residual = network.add_input("residual", dtype, shape)
        layers.append(network.add_elementwise(value, residual, ElementWiseOperation.SUM))
    layers.append(activation(network, layers[-1].get_output(0), draw(st.sampled_from(ACTIVATIONS))))
    return network, layers, {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}


@settings(max_examples=80)
@given(volumes())
def test_every_convolution_of_volumes_is_computed_as_the_references_do(case):
    network, layers, layouts = case
    feeds = random_feeds(network, np.random.default_rng(2), layouts)
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution", layout=layouts["y"])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 7, 8, 12, 13, 14, 15, 20, 21, 22, 27, 28, 29, 35])
def test_rows_of_every_width_are_covered_by_tiles(width, dtype):
    network = Network()
    x = network.add_input("x", dtype, (2, 4, 3, width))
    layer = convolution(network, x, 40, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.convolution")


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF])
@pytest.mark.parametrize("K", [5, 16, 40])
def test_single_rows_of_every_width_are_covered_by_whole_smaller_and_half_tiles(K, dtype):
    for width in (14, 15, 16, 20, 22, 23, 29, 30, 32, 36, 37, 44):
        network = Network()
        x = network.add_input("x", dtype, (1, 4, 1, width))
        layers = [convolution(network, x, K, (1, 1))]
        layers.append(activation(network, layers[0].get_output(0), ActivationType.SIGMOID))
        feeds = random_feeds(network, np.random.default_rng(0))
        assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution")
        assert_like_reference(network, layers[:1], feeds, kernel_name="cpu.convolution")


@pytest.mark.parametrize(("rows", "fewer"), [(6, 4), (8, 6), (14, 8)])
def test_tiles_of_a_single_row_compute_few_pixels_twice(rows, fewer, monkeypatch):
    monkeypatch.setattr(matrix_products, "current_tier", lambda: SimpleNamespace(rows=rows, fewer_rows=fewer))
    for width in range(rows, 200):
        tiles, overlaps = tile_table([Axis(1, 0, 0), Axis(1, 0, 0), Axis(width, 8, 8)], may_be_smaller=True)
        covered = []
        for first, second, *_, pixels in tiles[:, :7].tolist():
            run = rows // 2 if pixels <= rows // 2 else pixels // 2
            covered += [first // 8 + pixel for pixel in range(min(run, pixels))]
            covered += [second // 8 + pixel for pixel in range(pixels - run)]
        assert set(covered) == set(range(width))
        assert overlaps == (len(covered) > width)
        assert len(covered) <= width + 2 or width < 3 * rows


@pytest.mark.parametrize("window", [(1, 1), (3, 3)])
@pytest.mark.parametrize(
    ("layout", "with_residual"),
    [
        ("linear", False),
        pytest.param("linear", True, marks=pytest.mark.nightly),
        pytest.param("channels_last", False, marks=pytest.mark.nightly),
        ("channels_last", True),
    ],
)
def test_every_number_of_output_channels_is_covered_by_blocks_and_vectors(window, layout, with_residual):
    for K in range(1, 71):
        network = Network()
        x = network.add_input("x", DataType.FLOAT, (1, 5, 4, 9))
        padding = (window[0] // 2, window[1] // 2)
        layers = [convolution(network, x, K, window, pre_padding=padding, post_padding=padding)]
        if with_residual:
            value = layers[0].get_output(0)
            residual = network.add_input("residual", DataType.FLOAT, value.shape)
            layers.append(network.add_elementwise(value, residual, ElementWiseOperation.SUM))
        layers.append(activation(network, layers[-1].get_output(0), ActivationType.RELU))
        feeds = random_feeds(network, np.random.default_rng(0), layout)
        assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution", layout=layout)


@pytest.mark.parametrize("width", [7, 9, 14, 18])
def test_large_weights_are_summed_in_blocks_of_k_but_not_where_tiles_overlap(width):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 320, 3, width))
    layer = convolution(network, x, 64, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    residual = network.add_input("residual", DataType.FLOAT, layer.get_output(0).shape)
    total = network.add_elementwise(layer.get_output(0), residual, ElementWiseOperation.SUM)
    relu = network.add_activation(total.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, [layer, total, relu], feeds, kernel_name="cpu.convolution")


@settings(max_examples=40)
@given(
    st.integers(4, 19),
    st.integers(4, 19),
    st.tuples(st.integers(1, 24), st.integers(2, 24)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from([1, 2]),
    st.sampled_from(LAYOUTS),
    st.sampled_from([DataType.FLOAT, DataType.HALF]),
    st.booleans(),
)
def test_places_that_fall_into_the_padding_are_left_out(H, W, dilation, kernel, groups, layout, dtype, with_residual):
    network = Network()
    x = network.add_input("x", dtype, (2, 16 * groups, H, W))
    padding = [(k - 1) * d // 2 for k, d in zip(kernel, dilation, strict=True)]
    behind = [(k - 1) * d - p for k, d, p in zip(kernel, dilation, padding, strict=True)]
    layers = [
        convolution(
            network,
            x,
            40 * groups,
            kernel,
            groups=groups,
            dilation_nd=dilation,
            pre_padding=padding,
            post_padding=behind,
        )
    ]
    if with_residual:
        y = network.add_input("y", dtype, layers[0].get_output(0).shape)
        layers.append(network.add_elementwise(layers[0].get_output(0), y, ElementWiseOperation.SUM))
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution", layout=layout)


@pytest.mark.parametrize("rows", [6, 8, 14])
@pytest.mark.parametrize(("H", "W"), [(16, 4), (4, 16), (1, 29), (7, 7), (8, 64)])
def test_sums_that_continue_cover_each_pixel_once(H, W, rows, monkeypatch):
    monkeypatch.setattr(matrix_products, "current_tier", lambda: SimpleNamespace(rows=rows))
    axes = [Axis(2, 10**6, 10**6), Axis(H, 10**4, 10**4), Axis(W, 8, 8)]
    tiles, (*_, inner) = exact_tile_table(axes)
    half = rows // 2
    covered = []
    for _, _, first, second, _, _, pixels in tiles[:, :7].tolist():
        covered += [first + inner.output * pixel for pixel in range(min(half, pixels))]
        covered += [second + inner.output * pixel for pixel in range(pixels - half)]
    expected = [10**6 * n + 10**4 * h + 8 * w for n in range(2) for h in range(H) for w in range(W)]
    assert sorted(covered) == expected


@pytest.mark.parametrize("ending", [ActivationType.RELU, ActivationType.SIGMOID])
@pytest.mark.parametrize("K", [32, 24, 21])
def test_what_follows_a_sum_over_the_places_inside_the_image_is_done_once(ending, K):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 9, 9))
    layer = convolution(network, x, K, (3, 3), dilation_nd=(7, 7), pre_padding=(7, 7), post_padding=(7, 7))
    layers = [layer, activation(network, layer.get_output(0), ending)]
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution")


@pytest.mark.parametrize("ending", [ActivationType.GELU_ERF, ActivationType.GELU_TANH, ActivationType.SIGMOID])
@pytest.mark.parametrize(("H", "W"), [(1, 1), (1, 4), (5, 7)])
@pytest.mark.parametrize("K", [5, 16, 21, 100, 128])
@pytest.mark.parametrize("with_residual", [False, True])
def test_functions_are_applied_to_every_sum_of_blocks_of_every_size(ending, H, W, K, with_residual):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 24, H, W))
    layers = [convolution(network, x, K, (1, 1))]
    layers.append(activation(network, layers[-1].get_output(0), ending))
    if with_residual:
        added = network.add_input("r", DataType.FLOAT, (1, K, H, W))
        layers.append(network.add_elementwise(layers[-1].get_output(0), added, ElementWiseOperation.SUM))
        layers.append(activation(network, layers[-1].get_output(0), ending))
    feeds = random_feeds(network, np.random.default_rng(K))
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution")


def test_the_first_layer_of_a_picture_network_reads_planes():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 3, 41, 37))
    layer = convolution(network, x, 64, (7, 7), stride_nd=(2, 2), pre_padding=(3, 3), post_padding=(3, 3))
    relu = network.add_activation(layer.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, np.random.default_rng(0), "linear")
    assert_like_reference(network, [layer, relu], feeds, kernel_name="cpu.convolution")


@pytest.mark.parametrize("dtype", TYPES)
def test_one_spatial_axis_is_a_row(dtype):
    network = Network()
    x = network.add_input("x", dtype, (2, 6, 31))
    layer = convolution(network, x, 24, (3,), stride_nd=(2,), dilation_nd=(2,), pre_padding=(1,), post_padding=(2,))
    feeds = random_feeds(network, np.random.default_rng(0), "linear")
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.convolution", layout="linear")


@pytest.mark.parametrize("mode", [PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER, PaddingMode.EXPLICIT_ROUND_UP])
def test_padding_modes_pad_as_the_reference_does(mode):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 5, 12, 15))
    layer = convolution(network, x, 8, (4, 3), stride_nd=(2, 3), padding_mode=mode)
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.convolution")


def test_weights_may_be_constant_inputs():
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", DataType.FLOAT, (1, 4, 9, 9))
    weights = network.add_constant((8, 4, 3, 3), generator.standard_normal((8, 4, 3, 3)).astype(np.float32))
    layer = network.add_convolution_nd(x, 8, (3, 3))
    layer.set_input(1, weights.get_output(0))
    feeds = random_feeds(network, generator)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.convolution")


@pytest.mark.parametrize("groups", [1, 24])
def test_weights_may_be_dequantized_from_known_codes(groups):
    generator, network = np.random.default_rng(3), Network()
    x = network.add_input("x", DataType.FLOAT, (1, 24, 9, 9))
    codes = generator.integers(-128, 128, (24, 24 // groups, 3, 3)).astype(np.int8)
    known = [
        codes,
        generator.uniform(2e-4, 9e-4, 24).astype(np.float32),
        generator.integers(-99, 99, 24).astype(np.int8),
    ]
    known = [network.add_layer(Constant(shape=one.shape, weights=one), []).get_output(0) for one in known]
    weights = network.add_layer(Dequantize(axis=0), known).get_output(0)
    layer = network.add_layer(Convolution(num_output_maps=24, kernel_size_nd=(3, 3), num_groups=groups), [x, weights])
    feeds = random_feeds(network, generator)
    feeds[weights.name] = evaluate(weights.producer, [one.spec.value for one in weights.producer.inputs])[0]
    name = "cpu.convolution" if groups == 1 else "cpu.depthwise_convolution"
    assert_like_reference(network, [layer], feeds, kernel_name=name)


def test_computed_weights_are_left_to_the_reference():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 4, 9, 9))
    layer = network.add_convolution_nd(x, 8, (3, 3))
    layer.set_input(1, network.add_input("w", DataType.FLOAT, (8, 4, 3, 3)))
    assert chosen_kernel(network, [layer]).name == "cpu.reference"


@pytest.mark.parametrize("kind", [ActivationType.RELU, ActivationType.CLIP])
def test_nan_passes_through_a_clamp(kind):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 32, 4, 4))
    layer = convolution(network, x, 32, (1, 1))
    layers = [layer, activation(network, layer.get_output(0), kind)]
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][0, 3, 1, 2] = np.nan
    assert_like_reference(network, layers, feeds, kernel_name="cpu.convolution")


def test_an_fp16_result_beyond_the_largest_number_is_infinite():
    network = Network()
    x = network.add_input("x", DataType.HALF, (1, 16, 4, 4))
    layer = convolution(network, x, 16, (1, 1))
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][...] = 60000
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.convolution", tolerance=1e-4)


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(TYPES),
    channels=st.sampled_from([1, 3, 8, 16, 24, 32, 40]),
    extent=st.tuples(st.integers(3, 12), st.integers(3, 12)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    with_residual=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
)
@example(DataType.FLOAT, 32, (12, 12), (3, 3), (1, 1), (1, 1), True, ("channels_last",) * 3)
@example(DataType.FLOAT, 24, (5, 40), (7, 7), (1, 1), (3, 3), True, ("channels_last",) * 3)
@example(DataType.FLOAT, 40, (9, 12), (7, 7), (1, 1), (3, 2), False, ("channels_last",) * 3)
def test_depthwise_convolution_is_computed_as_the_reference_does(
    dtype, channels, extent, kernel, stride, padding, with_residual, layouts
):
    network = Network()
    x = network.add_input("x", dtype, (2, channels, *extent))
    layers = [
        convolution(
            network, x, channels, kernel, groups=channels, stride_nd=stride, pre_padding=padding, post_padding=padding
        )
    ]
    if with_residual:
        value = layers[-1].get_output(0)
        residual = network.add_input("residual", dtype, value.shape)
        layers.append(network.add_elementwise(value, residual, ElementWiseOperation.SUM))
    layers.append(activation(network, layers[-1].get_output(0), ActivationType.CLIP))
    feeds = random_feeds(network, np.random.default_rng(0), {"x": layouts[0], "residual": layouts[1]})
    name = "cpu.depthwise_convolution" if channels > 1 else "cpu.convolution"
    assert_like_reference(network, layers, feeds, kernel_name=name, layout=layouts[2])


@pytest.mark.parametrize("channels", [16, 24, 40])
@pytest.mark.parametrize("extent", [(3, 5), (8, 8), (13, 6)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 0)])
def test_rows_of_depthwise_outputs_have_the_same_bits_together_and_alone(channels, extent, stride, padding):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, channels, *extent))
    arguments = {"groups": channels, "stride_nd": stride, "pre_padding": padding, "post_padding": padding}
    layer = convolution(network, x, channels, (3, 3), **arguments)
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.depthwise_convolution")
    together = run_group(network, [layer], feeds)
    # What is added keeps rows from being summed together.
    zeros = network.add_input("zeros", DataType.FLOAT, layer.get_output(0).shape)
    total = network.add_elementwise(layer.get_output(0), zeros, ElementWiseOperation.SUM)
    alone = run_group(network, [layer, total], {**feeds, "zeros": np.zeros(zeros.shape, np.float32)})
    np.testing.assert_array_equal(together, alone)


def test_an_elementwise_operation_of_another_shape_is_not_fused():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 4, 5, 5))
    layer = convolution(network, x, 8, (1, 1))
    other = network.add_input("other", DataType.FLOAT, (1, 1, 5, 5))
    total = network.add_elementwise(layer.get_output(0), other, ElementWiseOperation.SUM)
    kernel = chosen_kernel(network, [layer])
    assert not kernel.fuses(LayerGroup([layer]), total)


def test_a_residual_that_turns_out_to_be_larger_than_the_output_is_refused():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 4, 5, 5))
    layer = convolution(network, x, 8, (1, 1))
    residual = network.add_input("residual", DataType.FLOAT, (-1, 8, 5, 5))
    total = network.add_elementwise(layer.get_output(0), residual, ElementWiseOperation.SUM)
    kernel, group = chosen_kernel(network, [layer]), LayerGroup([layer, total])
    assert kernel.fuses(LayerGroup([layer]), total)
    specs = infer_specs(network, {"x": (1, 4, 5, 5), "residual": (2, 8, 5, 5)})
    arrays = {tensor.name: np.zeros(specs[tensor.name].shape, np.float32) for tensor in [*group.inputs, *group.outputs]}
    with pytest.raises(ExecutionError, match="must broadcast to the output's shape") as caught:
        kernel.bind(Binding(group, specs, arrays, kernel.pack(group), np.empty(0, np.uint8)))
    assert (caught.value.found, caught.value.allowed) == ((2, 8, 5, 5), (1, 8, 5, 5))


def test_a_dynamic_batch_is_bound_to_the_shapes_of_the_moment():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 4, 6, 6))
    layer = convolution(network, x, 8, (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    kernel, group = chosen_kernel(network, [layer]), LayerGroup([layer])
    weights, generator = kernel.pack(group), np.random.default_rng(0)
    for batch in (1, 3):
        specs = infer_specs(network, {"x": (batch, 4, 6, 6)})
        values = generator.standard_normal((batch, 4, 6, 6)).astype(np.float32)
        arrays = {"x": values, layer.get_output(0).name: np.empty((batch, 8, 6, 6), np.float32)}
        workspace = np.empty(kernel.workspace_bytes(group, specs, 1), np.uint8)
        kernel.bind(Binding(group, specs, arrays, weights, workspace)).run()
        (expected,) = evaluate(layer, [values])
        np.testing.assert_allclose(arrays[layer.get_output(0).name], expected, atol=1e-5)

"""Fully connected layers, matrix products and deconvolutions against the references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import LAYOUTS, assert_like_reference, chosen_kernel, random_feeds

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.convolution import Deconvolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels.deconvolution import deconvolve

TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16)
NONE, TRANSPOSE, VECTOR = MatrixOperation.NONE, MatrixOperation.TRANSPOSE, MatrixOperation.VECTOR


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [1, 2, 5, 9, 16])
@pytest.mark.parametrize("image", [(1, 1), (3, 4)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fully_connected_layer_sums_over_the_image(dtype, batch, image, layout):
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", dtype, (batch, 7, *image))
    count = 7 * image[0] * image[1]
    kernel = (generator.standard_normal((50, count)) / np.sqrt(count)).astype(np.float32)
    layer = network.add_fully_connected(x, 50, kernel, generator.standard_normal(50).astype(np.float32))
    relu = network.add_activation(layer.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, generator, layout)
    assert_like_reference(network, [layer, relu], feeds, kernel_name="cpu.fully_connected")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("outputs", [64, 200, 301])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("end", ["nothing", "limits", "function", "sum"])
def test_single_rows_by_several_panels_have_the_bits_of_one_panel_after_the_other(dtype, outputs, rows, end):
    network, generator = Network(), np.random.default_rng(0)
    x = network.add_input("x", dtype, (rows, 21, 3, 3))
    kernel = (generator.standard_normal((outputs, 21, 3, 3)) / 14).astype(np.float32)
    layers = [network.add_convolution_nd(x, outputs, (3, 3), kernel, generator.standard_normal(outputs))]
    if end == "sum":
        beside = network.add_input("beside", dtype, (rows, outputs, 1, 1))
        layers.append(network.add_elementwise(layers[-1].get_output(0), beside, ElementWiseOperation.SUM))
    if end in ("limits", "function"):
        kind = ActivationType.RELU if end == "limits" else ActivationType.SIGMOID
        layers.append(network.add_activation(layers[-1].get_output(0), kind))
    # Three threads would have too few wide blocks for each, so that they take one panel after the other.
    assert_like_reference(network, layers, random_feeds(network, generator), kernel_name="cpu.convolution")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_share_sets_of_the_cache_are_multiplied_as_the_references_do(layout):
    generator, (M, K, N) = np.random.default_rng(0), (9, 1024, 130)
    weights = (generator.standard_normal((N, K)) / 32).astype(np.float32)
    images, matrices = Network(), Network()
    connected = images.add_fully_connected(images.add_input("x", DataType.FLOAT, (M, K, 1, 1)), N, weights)
    x = matrices.add_input("x", DataType.FLOAT, (2, M, K))
    columns = matrices.add_constant((1, K, N), np.ascontiguousarray(weights.T)[None]).get_output(0)
    product = matrices.add_matrix_multiply(x, NONE, columns, NONE)
    for network, layer, name in (images, connected, "fully_connected"), (matrices, product, "matrix_multiply"):
        feeds = random_feeds(network, generator, layout)
        assert_like_reference(network, [layer], feeds, kernel_name=f"cpu.{name}", layout=layout)


def operand_shape(batch, outer, inner, op):
    """The shape of an operand `[outer, inner]` that the operation brings into its place."""
    if op is VECTOR:
        return (*batch, inner)
    return (*batch, inner, outer) if op is TRANSPOSE else (*batch, outer, inner)


@settings(max_examples=100)
@given(
    dtype=st.sampled_from(TYPES),
    ops=st.tuples(st.sampled_from([NONE, TRANSPOSE, VECTOR]), st.sampled_from([NONE, TRANSPOSE, VECTOR])),
    extents=st.tuples(st.integers(1, 20), st.integers(1, 40), st.sampled_from([1, 5, 32, 33, 70])),
    batches=st.lists(st.sampled_from([(1, 1), (2, 2), (3, 1), (1, 3)]), max_size=3),
    is_constant=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
)
def test_every_matrix_product_is_computed_as_the_reference_does(dtype, ops, extents, batches, is_constant, layouts):
    M, K, N = extents
    network = Network()
    generator = np.random.default_rng(0)
    first = operand_shape([a for a, _ in batches], M, K, ops[0])
    # The second operand is [K, N]: seen from the sum, transposed.
    second = operand_shape([b for _, b in batches], N, K, {NONE: TRANSPOSE, TRANSPOSE: NONE, VECTOR: VECTOR}[ops[1]])
    x = network.add_input("x", dtype, first)
    if is_constant:
        weights = (generator.standard_normal(second) / np.sqrt(K)).astype(dtype.numpy)
        y = network.add_constant(second, weights).get_output(0)
    else:
        y = network.add_input("y", dtype, second)
    layer = network.add_matrix_multiply(x, ops[0], y, ops[1])
    assume(len(layer.get_output(0).shape) > 0)
    feeds = random_feeds(network, generator, {"x": layouts[0], "y": layouts[1]})
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.matrix_multiply", layout=layouts[2], tolerance=5e-5)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_bias_and_an_activation_follow_a_matrix_product_in_one_group(dtype):
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", dtype, (2, 9, 24))
    weights = network.add_constant((1, 24, 40), (generator.standard_normal((1, 24, 40)) / 5).astype(dtype.numpy))
    layer = network.add_matrix_multiply(x, NONE, weights.get_output(0), NONE)
    bias = network.add_constant((1, 1, 40), generator.standard_normal((1, 1, 40)).astype(dtype.numpy))
    total = network.add_elementwise(layer.get_output(0), bias.get_output(0), ElementWiseOperation.SUM)
    relu = network.add_activation(total.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, generator, "linear")
    assert_like_reference(network, [layer, total, relu], feeds, kernel_name="cpu.matrix_multiply", layout="linear")


def test_a_product_with_a_vector_takes_nothing_into_its_group():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (4, 6))
    layer = network.add_matrix_multiply(x, NONE, network.add_input("y", DataType.FLOAT, (6,)), VECTOR)
    relu = network.add_activation(layer.get_output(0), ActivationType.RELU)
    assert not chosen_kernel(network, [layer]).fuses(LayerGroup([layer]), relu)


@settings(max_examples=80)
@given(
    dtype=st.sampled_from(TYPES),
    channels=st.sampled_from([(1, 3, 1), (3, 5, 1), (16, 32, 1), (20, 33, 1), (6, 4, 2), (40, 80, 2), (5, 5, 5)]),
    image=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.tuples(*[st.integers(0, 2)] * 2, *[st.integers(-1, 2)] * 2),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
)
def test_every_deconvolution_is_computed_as_the_reference_does(
    dtype, channels, image, kernel, stride, dilation, padding, layouts
):
    C, K, groups = channels
    for axis in (0, 1):
        span = (image[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        assume(span > padding[axis] + padding[axis + 2])
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", dtype, (2, C, *image))
    weights = generator.standard_normal((C, K // groups, *kernel)) / np.sqrt(C // groups)
    layer = Deconvolution(
        num_output_maps=K,
        kernel_size_nd=kernel,
        kernel=weights.astype(np.float32),
        bias=generator.standard_normal(K).astype(np.float32),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=padding[:2],
        post_padding=padding[2:],
        num_groups=groups,
    )
    network.add_layer(layer, [x])
    scale = network.add_scale(layer.get_output(0), ScaleMode.CHANNEL, *generator.standard_normal((2, K)).astype("f4"))
    relu = network.add_activation(scale.get_output(0), ActivationType.RELU)
    feeds = random_feeds(network, generator, layouts[0])
    name = "cpu.deconvolution_to_few_channels" if K // groups < 16 else "cpu.deconvolution"
    name = "cpu.depthwise_deconvolution" if C == K == groups else name
    layers = [layer, scale, relu]
    assert_like_reference(network, layers, feeds, kernel_name=name, layout=layouts[1])
    assert_like_reference(network, layers, feeds, kernel_name="cpu.deconvolution", kernel=deconvolve, layout=layouts[1])


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(TYPES),
    channels=st.sampled_from([(1, 3, 1), (3, 5, 1), (16, 32, 1), (6, 4, 2), (5, 5, 5)]),
    volume=st.tuples(*[st.integers(1, 4)] * 3),
    kernel=st.tuples(*[st.integers(1, 4)] * 3),
    stride=st.tuples(*[st.integers(1, 3)] * 3),
    dilation=st.tuples(*[st.integers(1, 2)] * 3),
    padding=st.tuples(*[st.integers(0, 2)] * 3, *[st.integers(-1, 2)] * 3),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
)
def test_every_deconvolution_of_volumes_with_a_sum_of_branches_is_computed_as_the_reference_does(
    dtype, channels, volume, kernel, stride, dilation, padding, layouts
):
    C, K, groups = channels
    for axis in range(3):
        span = (volume[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        assume(span > padding[axis] + padding[axis + 3])
    network = Network()
    generator = np.random.default_rng(0)
    weights = generator.standard_normal((C, K // groups, *kernel)) / np.sqrt(C // groups)
    layer = Deconvolution(
        num_output_maps=K,
        kernel_size_nd=kernel,
        kernel=weights.astype(np.float32),
        bias=generator.standard_normal(K).astype(np.float32),
        stride_nd=stride,
        dilation_nd=dilation,
        pre_padding=padding[:3],
        post_padding=padding[3:],
        num_groups=groups,
    )
    network.add_layer(layer, [network.add_input("x", dtype, (2, C, *volume))])
    residual = network.add_input("residual", dtype, layer.get_output(0).shape)
    total = network.add_elementwise(layer.get_output(0), residual, ElementWiseOperation.SUM)
    feeds = random_feeds(network, generator, {"x": layouts[0], "residual": layouts[1]})
    assert_like_reference(network, [layer, total], feeds, kernel_name="cpu.deconvolution", layout=layouts[2])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("image", [(7,), (5, 6)])
def test_a_deconvolution_of_each_channel_is_computed_as_the_reference_does(dtype, layout, image):
    network = Network()
    generator = np.random.default_rng(0)
    x = network.add_input("x", dtype, (2, 35, *image))
    kernel = generator.standard_normal((35, 1, *[4] * len(image))).astype(np.float32)
    layer = network.add_deconvolution_nd(x, 35, [4] * len(image), kernel)
    layer.num_groups, layer.stride_nd, layer.padding_nd = 35, [2] * len(image), [1] * len(image)
    feeds = random_feeds(network, generator, layout)
    assert_like_reference(network, [layer], feeds, kernel_name="cpu.depthwise_deconvolution", layout=layout)


@pytest.mark.parametrize("kind", ["convolution", "fully_connected"])
def test_a_batch_of_nothing_gives_nothing(kind):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 4, 4))
    if kind == "convolution":
        layer = network.add_convolution_nd(x, 8, (3, 3), np.ones((8, 3, 3, 3), np.float32))
        layer.padding_nd = (1, 1)
    else:
        layer = network.add_fully_connected(x, 8, np.ones((8, 48), np.float32))
    kernel, group = chosen_kernel(network, [layer]), LayerGroup([layer])
    assert kernel.name == f"cpu.{kind}"
    specs = infer_specs(network, {"x": (0, 3, 4, 4)})
    name = layer.get_output(0).name
    arrays = {"x": np.empty((0, 3, 4, 4), np.float32), name: np.empty(specs[name].shape, np.float32)}
    workspace = np.empty(kernel.workspace_bytes(group, specs, 1), np.uint8)
    kernel.bind(Binding(group, specs, arrays, kernel.pack(group), workspace)).run()
    assert arrays[name].shape[0] == 0

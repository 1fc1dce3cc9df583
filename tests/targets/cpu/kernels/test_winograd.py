"""Convolution in Winograd's tiles against the references of the layers, and its matrices against the definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.targets.cpu.group_runner import (
    LAYOUTS,
    assert_close,
    assert_like_reference,
    random_feeds,
    run_group,
    specs_of,
)
from tests.targets.cpu.kernels.test_convolution import ACTIVATIONS, activation, convolution

from dryfit.errors import ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding
from dryfit_cpu.kernels import winograd, winograd_tiling
from dryfit_cpu.kernels.convolution import window_of
from dryfit_cpu.native.winograd_matrices import INPUT_TRANSFORMS, KERNEL_TRANSFORMS, OUTPUT_TRANSFORMS

KERNELS = {2: winograd.convolve_in_tiles_of_2, 4: winograd.convolve_in_tiles_of_4}
TOLERANCES = {2: 2e-5, 4: 1e-4}
"""For results of about 1 to 5; tests on the error itself stand further down."""


def one_layer(channels=(16, 32), extent=(12, 12), padding=(1, 1), batch=1, dtype=DataType.FLOAT):
    """A network of one convolution, of which results are about 1."""
    network = Network()
    x = network.add_input("x", dtype, (batch, channels[0], *extent))
    layer = convolution(network, x, channels[1], (3, 3), pre_padding=padding, post_padding=padding)
    return network, layer


def assert_winograd(size, network, layers, feeds, layout="channels_last"):
    name = f"cpu.winograd_{size}"
    assert_like_reference(
        network, layers, feeds, kernel_name=name, kernel=KERNELS[size], layout=layout, tolerance=TOLERANCES[size]
    )


@st.composite
def groups_of_layers(draw):
    """A tile's extent, a convolution and what may follow it, and the layouts of its tensors."""
    C, K = draw(st.sampled_from([16, 32, 48])), draw(st.sampled_from([16, 32, 48, 80]))
    side = st.tuples(st.integers(0, 2), st.integers(0, 2))
    network = Network()
    extent = (draw(st.integers(12, 26)), draw(st.integers(12, 26)))
    x = network.add_input("x", DataType.FLOAT, (draw(st.integers(1, 3)), C, *extent))
    bias, pre, post = draw(st.booleans()), draw(side), draw(side)
    layers = [convolution(network, x, K, (3, 3), bias=bias, pre_padding=pre, post_padding=post)]
    generator = np.random.default_rng(1)
    if draw(st.booleans()):
        shift, scale = generator.standard_normal((2, K)).astype(np.float32)
        layers.append(network.add_scale(layers[-1].get_output(0), ScaleMode.CHANNEL, shift, scale))
    if draw(st.booleans()):
        layers.append(activation(network, layers[-1].get_output(0), draw(st.sampled_from(ACTIVATIONS))))
    if draw(st.booleans()):
        value = layers[-1].get_output(0)
        shape = value.shape if draw(st.booleans()) else (1, K, 1, 1)
        residual = network.add_input("residual", DataType.FLOAT, shape)
        layers.append(network.add_elementwise(value, residual, ElementWiseOperation.SUM))
        if draw(st.booleans()):
            layers.append(activation(network, layers[-1].get_output(0), draw(st.sampled_from(ACTIVATIONS))))
    layouts = {name: draw(st.sampled_from(LAYOUTS)) for name in ("x", "residual", "y")}
    return draw(st.sampled_from(sorted(KERNELS))), network, layers, layouts


@settings(max_examples=60)
@given(groups_of_layers())
def test_every_group_of_layers_in_every_layout_is_computed_as_the_references_do(case):
    size, network, layers, layouts = case
    feeds = random_feeds(network, np.random.default_rng(2), layouts)
    assert_winograd(size, network, layers, feeds, layouts["y"])


@pytest.mark.parametrize("size", KERNELS)
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("extent", [(12, 12), (13, 15), (14, 17), (15, 22)])
def test_tiles_cover_images_of_every_extent_and_padding(size, padding, extent):
    network, layer = one_layer(extent=extent, padding=(padding, padding), batch=2)
    relu = activation(network, layer.get_output(0), ActivationType.RELU)
    assert_winograd(size, network, [layer, relu], random_feeds(network, np.random.default_rng(0)))


@pytest.mark.parametrize("size", KERNELS)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_every_activation_may_follow_alone_and_around_a_residual(size, kind):
    network, layer = one_layer(extent=(13, 14))
    layers = [layer, activation(network, layer.get_output(0), kind)]
    feeds = random_feeds(network, np.random.default_rng(0))
    assert_winograd(size, network, layers, feeds)
    residual = network.add_input("residual", DataType.FLOAT, layer.get_output(0).shape)
    layers.append(network.add_elementwise(layers[-1].get_output(0), residual, ElementWiseOperation.SUM))
    layers.append(activation(network, layers[-1].get_output(0), kind))
    assert_winograd(size, network, layers, random_feeds(network, np.random.default_rng(0)))


@pytest.mark.parametrize("size", KERNELS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_strips_and_threads_change_no_bit(size, threads, monkeypatch):
    network, layer = one_layer(channels=(32, 48), extent=(23, 21), batch=2)
    feeds = random_feeds(network, np.random.default_rng(0))
    whole = run_group(network, [layer], feeds, kernel=KERNELS[size])
    monkeypatch.setattr(winograd_tiling, "_STRIP_BYTES", 1 << 17)
    window = window_of(LayerGroup([layer]), specs_of(network))
    assert len(list(winograd_tiling.Tiling(size, window, 32, 1).strips())) > 2
    np.testing.assert_array_equal(run_group(network, [layer], feeds, kernel=KERNELS[size], threads=threads), whole)


def test_a_strip_of_a_large_image_takes_no_more_than_its_share_of_memory():
    network, layer = one_layer(channels=(64, 64), extent=(224, 224))
    for kernel in KERNELS.values():
        for threads in (1, 2):
            room = kernel.workspace_bytes(LayerGroup([layer]), specs_of(network), threads)
            assert room <= threads * winograd_tiling._STRIP_BYTES + 2 * 128


@pytest.mark.parametrize(("size", "largest"), [(2, 1e-6), (4, 2e-5)])
def test_the_error_is_a_few_units_of_fp32_against_sums_in_fp64(size, largest):
    network, layer = one_layer(channels=(256, 32), extent=(28, 28))
    feeds = random_feeds(network, np.random.default_rng(0))
    found = run_group(network, [layer], feeds, kernel=KERNELS[size]).astype(np.float64)
    # Tiles of 2 x 2 come closer than the direct convolution, whose sums are nine times as long; 4 x 4 stay behind it.
    image = np.pad(feeds["x"].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    truth = np.einsum("nchwyx,kcyx->nkhw", windows, layer.kernel.astype(np.float64), optimize=True)
    truth += layer.bias.astype(np.float64).reshape(1, -1, 1, 1)
    assert np.abs(found - truth).max() <= largest * np.abs(truth).max()


@pytest.mark.parametrize("size", KERNELS)
def test_a_dynamic_batch_is_bound_to_the_shapes_of_the_moment(size):
    network, layer = one_layer(batch=-1)
    kernel, group = KERNELS[size], LayerGroup([layer])
    assert kernel.accepts(group, specs_of(network))
    weights = kernel.pack(group)
    for batch in (1, 3):
        specs = infer_specs(network, {"x": (batch, 16, 12, 12)})
        values = np.random.default_rng(0).standard_normal((batch, 16, 12, 12)).astype(np.float32)
        found = np.empty((batch, 32, 12, 12), np.float32)
        workspace = np.empty(kernel.workspace_bytes(group, specs, 1), np.uint8)
        arrays = {"x": values, layer.get_output(0).name: found}
        kernel.bind(Binding(group, specs, arrays, weights, workspace)).run()
        assert_close(found, evaluate(layer, [values])[0], TOLERANCES[size])


REFUSED = {
    "another window": {"kernel": (5, 5)},
    "a row for a window": {"kernel": (1, 3)},
    "a stride": {"stride_nd": (2, 2)},
    "a stride along one axis": {"stride_nd": (1, 2)},
    "dilation": {"dilation_nd": (2, 2)},
    "groups": {"groups": 2},
    "channels that fill no vector": {"C": 24},
    "outputs that fill no vector": {"K": 40},
    "small images": {"extent": (7, 20)},
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("size", KERNELS)
def test_what_is_not_for_its_tiles_is_left_to_other_kernels(size, why):
    given = {"C": 32, "K": 32, "extent": (20, 20), "kernel": (3, 3), **REFUSED[why]}
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, given.pop("C"), *given.pop("extent")))
    window = given["kernel"]
    padding = (window[0] // 2, window[1] // 2)
    layer = convolution(
        network, x, given.pop("K"), given.pop("kernel"), pre_padding=padding, post_padding=padding, **given
    )
    assert not KERNELS[size].accepts(LayerGroup([layer]), specs_of(network))


@pytest.mark.parametrize("size", KERNELS)
def test_an_engine_that_names_it_for_another_convolution_is_refused_when_it_is_bound(size):
    _, layer = one_layer()
    weights = KERNELS[size].pack(LayerGroup([layer]))
    other = Network()
    x = other.add_input("x", DataType.FLOAT, (1, 16, 25, 25))
    strided = convolution(other, x, 32, (3, 3), stride_nd=(2, 2))
    arrays = {
        "x": np.empty((1, 16, 25, 25), np.float32),
        strided.get_output(0).name: np.empty((1, 32, 12, 12), np.float32),
    }
    binding = Binding(LayerGroup([strided]), specs_of(other), arrays, weights, np.empty(0, np.uint8))
    with pytest.raises(ExecutionError, match="it does not support the layer's parameters or shapes") as caught:
        KERNELS[size].bind(binding)
    assert f"'cpu.winograd_{size}'" in caught.value.where


@pytest.mark.parametrize("size", KERNELS)
def test_infinity_spreads_over_its_tiles_and_no_further(size):
    network, layer = one_layer(extent=(16, 16))
    feeds = random_feeds(network, np.random.default_rng(0))
    usual = run_group(network, [layer], feeds, kernel=KERNELS[size])
    feeds["x"][0, 3, 8, 8] = np.inf
    found = run_group(network, [layer], feeds, kernel=KERNELS[size])
    touched = np.abs(np.arange(16) - 8) < size + 2
    untouched = ~(touched[:, None] & touched[None, :])
    np.testing.assert_array_equal(found[..., untouched], usual[..., untouched])
    assert not np.isfinite(found[..., 8, 8]).any()


def exact(matrix):
    """A matrix in fractions."""
    return np.array([[Fraction(number).limit_denominator(24) for number in row] for row in matrix])


@example(np.arange(36), np.arange(9))
@settings(max_examples=20)
@given(
    st.lists(st.integers(-9, 9), min_size=36, max_size=36).map(np.array),
    st.lists(st.integers(-9, 9), min_size=9, max_size=9).map(np.array),
)
def test_the_matrices_give_the_convolution_exactly_in_fractions(values, window):
    for size in KERNELS:
        extent = size + 2
        B, G, A = exact(INPUT_TRANSFORMS[size]), exact(KERNEL_TRANSFORMS[size]), exact(OUTPUT_TRANSFORMS[size])
        tile, taps = values[: extent**2].reshape(extent, extent), window.reshape(3, 3)
        found = A @ ((B @ tile @ B.T) * (G @ taps @ G.T)) @ A.T
        expected = [[(tile[i : i + 3, j : j + 3] * taps).sum() for j in range(size)] for i in range(size)]
        assert (found == np.array(expected)).all()

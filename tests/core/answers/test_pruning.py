"""Pruning by magnitude: what is pruned, what is left, and that nothing of the user's is written to."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import activation, convolution, image_network, named, weights
from tests.core.builder.sparse_networks import int8_config, pruned_by_hand, wide_network, with_ranges

from dryfit.answers.pruning import plan_pruning, pruned_copy
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation


def pruned_network(network, config):
    """A copy of a network with pruned weights, and what was pruned."""
    pruning = plan_pruning(network, config)
    return pruned_copy(network, pruning), pruning


def test_eligible_layers_are_pruned_by_magnitude_and_others_are_not():
    network = wide_network()
    network.set_weights_name(network.layer("c0").kernel, "first")
    sparse, pruning = pruned_network(network, int8_config())
    expected = pruned_by_hand(network.layer("c0").kernel)
    np.testing.assert_array_equal(sparse.layer("c0").kernel, expected)
    np.testing.assert_array_equal(sparse.layer("c1").kernel, network.layer("c1").kernel)
    (only,) = pruning.pruned
    assert (only.name, only.layers, only.zeroed) == ("first", ["c0"], 32 * 68 // 2)
    assert only.energy_kept == pytest.approx((expected**2).sum() / (network.layer("c0").kernel ** 2).sum(), rel=1e-5)
    assert "first" in {one.name for one in sparse.named_weights()}
    assert designed(sparse, int8_config("SPARSE_WEIGHTS")).sparse_layers == {"c0"}


def test_the_network_and_its_arrays_stay_as_they_are():
    network = wide_network()
    kernel = network.layer("c0").kernel
    kernel.flags.writeable = False
    before = kernel.copy()
    pruned_network(network, int8_config())
    assert network.layer("c0").kernel is kernel
    np.testing.assert_array_equal(kernel, before)


def test_a_pruned_network_has_nothing_more_to_prune():
    sparse, _ = pruned_network(wide_network(), int8_config())
    again = plan_pruning(sparse, int8_config())
    assert (again.pruned, again.left, again.already) == ([], [], ["c0"])


def wide(network, x, name, kernel, stride=1):
    layer = network.add_convolution_nd(x, 64, (1, 1), kernel)
    layer.stride_nd = (stride, stride)
    return named(layer, name)


def two_readers(*, is_half=False):
    """Two convolutions side by side that share a kernel; the second one may be computed in FP16."""
    network, x = image_network((1, 68, 4, 4), "tied")
    kernel = weights(64, 68, 1, 1)
    for name in ("a", "b"):
        network.mark_output(wide(network, x, name, kernel))
    if is_half:
        network.layer("b").precision = DataType.HALF
    return with_ranges(network)


def test_tied_weights_stay_tied():
    network = two_readers()
    sparse, pruning = pruned_network(network, int8_config())
    (only,) = pruning.pruned
    assert only.layers == ["a", "b"]
    assert np.shares_memory(sparse.layer("a").kernel, sparse.layer("b").kernel)
    np.testing.assert_array_equal(sparse.layer("b").kernel, pruned_by_hand(network.layer("a").kernel))


def test_weights_that_a_layer_without_gain_shares_are_left_with_the_reason():
    pruning = plan_pruning(two_readers(is_half=True), int8_config())
    assert pruning.pruned == []
    (left,) = pruning.left
    assert (left.layers, left.reason) == (["a"], "also read by 'b', which would not benefit")


def explicit_network(scale_of_weights=None, *, stored=True, second=False):
    """An INT8 convolution between Q and DQ whose weights are INT8, or real and quantized by the network."""
    network, x = image_network((1, 68, 4, 4), "explicit")
    scale = network.add_constant((), np.float32(0.05)).get_output(0)
    scales = np.linspace(0.01, 0.02, 64, dtype=np.float32) if scale_of_weights is None else scale_of_weights
    weight_scale = network.add_constant(scales.shape, scales).get_output(0)
    kernel = weights(64, 68, 1, 1)
    if stored:
        kernel = np.clip(np.rint(kernel * 40), -128, 127).astype(np.int8)
    tensor = named(network.add_constant(kernel.shape, kernel), "kernel")
    if not stored:
        quantize = network.add_quantize(tensor, weight_scale)
        quantize.axis = 0
        tensor = quantize.get_output(0)
    data = network.add_dequantize(network.add_quantize(x, scale).get_output(0), scale).get_output(0)
    for name in ("c0", "c1") if second else ("c0",):
        dequantize = network.add_dequantize(tensor, weight_scale)
        dequantize.axis = 0
        layer = network.add_convolution_nd(data, 64, (1, 1))
        layer.set_input(1, dequantize.get_output(0))
        y = network.add_quantize(named(layer, name), scale).get_output(0)
        network.mark_output(network.add_dequantize(y, scale).get_output(0))
    return network


@pytest.mark.parametrize("stored", [True, False], ids=["INT8 weights", "quantized by the network"])
@pytest.mark.parametrize("second", [False, True], ids=["one reader", "two readers"])
def test_weights_are_pruned_where_they_stand_before_quantizations(stored, second):
    network = explicit_network(stored=stored, second=second)
    sparse, pruning = pruned_network(network, int8_config())
    (only,) = pruning.pruned
    assert only.layers == (["c0", "c1"] if second else ["c0"])
    before = network.layer("kernel").weights
    after = sparse.layer("kernel").weights
    assert after.dtype == before.dtype
    np.testing.assert_array_equal(after, pruned_by_hand(before))
    assert plan_pruning(sparse, int8_config()).pruned == []


def test_scales_along_the_input_channels_decide_with_the_integers():
    scales = np.linspace(1, 2, 68, dtype=np.float32)
    network = explicit_network()
    kernel = network.layer("kernel").weights
    network = explicit_network()
    for layer in network.layers:
        if layer.kind == "dequantize" and layer.inputs[0].name == "kernel":
            layer.axis = 1
            layer.set_input(1, network.add_constant((68,), scales).get_output(0))
    real = kernel * scales.reshape(1, 68, 1, 1)
    (only,) = plan_pruning(network, int8_config()).pruned
    np.testing.assert_array_equal(only.after != 0, pruned_by_hand(real) != 0)


def test_weights_that_come_at_run_time_are_not_spoken_of():
    network, x = image_network((1, 68, 4, 4))
    kernel = network.add_input("kernel", DataType.FLOAT, (64, 68, 1, 1))
    layer = network.add_convolution_nd(x, 64, (1, 1))
    layer.set_input(1, kernel)
    network.mark_output(named(layer, "c0"))
    pruning = plan_pruning(with_ranges(network), int8_config())
    assert (pruning.pruned, pruning.left, pruning.already) == ([], [], [])


def test_weights_that_the_network_computes_from_constants_are_left_with_the_reason():
    network, x = image_network((1, 68, 4, 4))
    halves = [network.add_constant((64, 68, 1, 1), weights(64, 68, 1, 1, seed=seed)).get_output(0) for seed in (1, 2)]
    layer = network.add_convolution_nd(x, 64, (1, 1))
    layer.set_input(1, network.add_elementwise(*halves, ElementWiseOperation.SUM).get_output(0))
    network.mark_output(activation(network, named(layer, "c0"), "relu"))
    pruning = plan_pruning(with_ranges(network), int8_config())
    assert pruning.pruned == []
    assert [(one.layers, one.reason) for one in pruning.left] == [
        (["c0"], "they are computed at run time, not constant")
    ]


def test_an_engine_of_a_pruned_network_is_that_of_weights_pruned_by_hand():
    network = wide_network((64,))
    sparse, _ = pruned_network(network, int8_config())
    by_hand = wide_network((64,))
    by_hand.layer("c0").kernel = pruned_by_hand(network.layer("c0").kernel)
    values = weights(1, 68, 4, 4, seed=9)
    found, expected = (
        Builder().build_engine(with_ranges(one), int8_config("SPARSE_WEIGHTS")).create_execution_context().run(values)
        for one in (sparse, by_hand)
    )
    np.testing.assert_array_equal(found["relu"], expected["relu"])
    assert len(np.unique(found["relu"])) > 20


def test_layers_with_groups_are_pruned_inside_their_groups():
    network, x = image_network((1, 136, 4, 4))
    kernel = weights(64, 68, 1, 1)
    layer = network.add_convolution_nd(x, 64, (1, 1), kernel)
    layer.num_groups = 2
    network.mark_output(activation(network, named(layer, "c0"), "relu"))
    sparse, _ = pruned_network(with_ranges(network), int8_config())
    np.testing.assert_array_equal(sparse.layer("c0").kernel, pruned_by_hand(kernel))


def test_three_by_three_windows_are_pruned_at_each_place():
    network, x = image_network((1, 66, 4, 4))
    network.mark_output(activation(network, convolution(network, x, "c0", 4), "relu"))
    sparse, _ = pruned_network(with_ranges(network), int8_config())
    np.testing.assert_array_equal(sparse.layer("c0").kernel, pruned_by_hand(network.layer("c0").kernel))

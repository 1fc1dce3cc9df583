"""The table of layers that commute: each kind once, what decides of a layer, and where axes go."""

from __future__ import annotations

import numpy as np
import pytest
from docs.pages.quantization_moves import moves_page
from tests.core.passes.quantization.small_qdq import constant, network_with_input, pooling

from dryfit.network.layer import LAYER_KINDS
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.movement import Identity
from dryfit.network.layers.reduction import ReduceOperation
from dryfit.network.layers.resize import InterpolationMode
from dryfit.network.layers.window_layer import PoolingType
from dryfit.passes.quantization.commutation import COMMUTATIONS, commutation_of, row_of

OWN = {kind for kind, layer in LAYER_KINDS.items() if layer.__module__.startswith("dryfit.")}


# A new kind may do without a row: nothing is moved over it then. These kinds have theirs, and keep it.
WITH_ROWS = """
activation cast concatenation constant convolution cumulative deconvolution dequantize dynamic_quantize einsum
elementwise fill fully_connected gather grid_sample histogram identity lrn matrix_multiply nms non_zero
normalization one_hot padding parametric_relu plugin pooling quantize quantized_operator reduce resize
reverse_sequence scale scatter select shape shuffle slice softmax squeeze top_k unary unsqueeze
"""


def test_every_kind_of_layer_keeps_its_row_and_every_row_is_of_a_kind():
    assert set(WITH_ROWS.split()) <= set(COMMUTATIONS) <= OWN
    assert all(row.kind == kind and row.reason for kind, row in COMMUTATIONS.items())


def test_a_kind_without_a_row_is_not_moved_over():
    row = row_of("a_new_kind")
    assert not any((row.commutes, row.is_quantizable, row.requantizes))
    assert row.reason == "no rule is known for this layer kind"


def test_the_reader_finds_every_kind_exactly_once():
    for kind in OWN:
        assert moves_page().count(f"\n| `{kind}` |") == 1


def test_kinds_that_share_ranges_without_a_condition_commute_without_one():
    for kind in (kind for kind, layer in LAYER_KINDS.items() if layer.only_moves_values):
        row = COMMUTATIONS[kind]
        assert (row.when, row.requantizes) == ("always", False)


def test_a_row_that_commutes_never_ends_at_a_layer_that_is_not_quantizable_in_one_step():
    assert all(row.is_quantizable for row in COMMUTATIONS.values() if row.requantizes or row.ends_groups)


def _reduced(network, x, operation, axes=0b1100):
    return network.add_reduce(x, operation, axes, False)


def _activated(network, x, kind):
    return network.add_activation(x, kind)


def _resized(network, x, mode):
    layer = network.add_resize(x)
    layer.shape, layer.resize_mode = (1, 4, 8, 8), mode
    return layer


def _padded(network, x, padding):
    layer = network.add_pooling_nd(x, PoolingType.MAX, (2, 2))
    layer.padding_nd = padding
    return layer


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda network, x: pooling(network, x, "p").producer, ""),
        (lambda network, x: pooling(network, x, "p", PoolingType.AVERAGE).producer, "an average"),
        (lambda network, x: pooling(network, x, "p", PoolingType.MAX_AVERAGE_BLEND).producer, "an average"),
        (lambda network, x: network.add_pooling_nd(x, PoolingType.MAX, (2, 2), returns_indices=True), "index"),
        (lambda network, x: _padded(network, x, (2, 2)), "only padding"),
        (lambda network, x: _padded(network, x, (1, 1)), ""),
        (lambda network, x: _reduced(network, x, ReduceOperation.MAX), ""),
        (lambda network, x: _reduced(network, x, ReduceOperation.SUM), "SUM computes"),
        (lambda network, x: _activated(network, x, ActivationType.RELU), ""),
        (lambda network, x: _activated(network, x, ActivationType.LEAKY_RELU), "LEAKY_RELU computes"),
        (lambda network, x: _activated(network, x, ActivationType.CLIP), "CLIP computes"),
        (lambda network, x: _resized(network, x, InterpolationMode.NEAREST), ""),
        (lambda network, x: _resized(network, x, InterpolationMode.LINEAR), "LINEAR interpolation"),
    ],
)
def test_the_parameters_of_a_layer_decide(make, words):
    network, x = network_with_input()
    layer = make(network, x)
    specs = {tensor: tensor.spec for tensor in network.tensors}
    found = COMMUTATIONS[layer.kind].obstacle(layer, specs)
    assert (words in found) if words else found == ""


def test_a_maximum_over_nothing_does_not_commute():
    network, x = network_with_input(shape=(1, 4, 0, 4))
    layer = _reduced(network, x, ReduceOperation.MAX)
    assert "over no elements" in COMMUTATIONS["reduce"].obstacle(layer, {x: x.spec})


@pytest.mark.parametrize(
    ("dims", "axes"),
    [
        ((2, 3, 20), [0, 1, None, None]),
        ((6, 4, 5), [None, None, 1, 2]),
        ((2, 1, 3, 4, 5), [0, 2, 3, 4]),
        ((2, 3, 4, 5), [0, 1, 2, 3]),
        ((120,), [None, None, None, None]),
    ],
)
def test_an_axis_is_followed_through_a_reshape(dims, axes):
    network, x = network_with_input(shape=(2, 3, 4, 5))
    layer = network.add_shuffle(x)
    layer.reshape_dims = dims
    specs = {tensor: tensor.spec for tensor in network.tensors}
    assert [COMMUTATIONS["shuffle"].path(layer, specs, axis) for axis in range(4)] == axes


def test_an_axis_is_followed_as_an_array_of_its_indices_shows():
    """Transposes before and after a reshape, against numpy: each index of an axis is a value that stays together."""
    network, x = network_with_input(shape=(2, 3, 4, 5))
    layer = network.add_shuffle(x)
    layer.first_transpose, layer.reshape_dims, layer.second_transpose = (1, 0, 3, 2), (3, 10, 4), (2, 0, 1)
    specs = {tensor: tensor.spec for tensor in network.tensors}
    for axis in range(4):
        indices = np.broadcast_to(np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(4)]), x.shape)
        moved = indices.transpose(1, 0, 3, 2).reshape(3, 10, 4).transpose(2, 0, 1)
        found = COMMUTATIONS["shuffle"].path(layer, specs, axis)
        alike = [np.ptp(moved, axis=tuple({0, 1, 2} - {one})).max() == 0 for one in range(3)]
        kept = [one for one in range(3) if alike[one] and moved.shape[one] == x.shape[axis]]
        assert found == (kept[0] if kept else None)


def test_axes_move_through_squeeze_and_unsqueeze():
    network, x = network_with_input(shape=(1, 3, 1, 5))
    axes = constant(network, [0, 2], "axes", np.int64)
    squeeze = network.add_squeeze(x, axes)
    unsqueeze = network.add_unsqueeze(squeeze.get_output(0), axes)
    specs = {tensor: tensor.spec for tensor in network.tensors}
    assert [COMMUTATIONS["squeeze"].path(squeeze, specs, axis) for axis in range(4)] == [None, 0, None, 1]
    assert [COMMUTATIONS["unsqueeze"].path(unsqueeze, specs, axis) for axis in range(2)] == [1, 3]


def test_a_slice_keeps_only_axes_that_it_keeps_whole():
    network, x = network_with_input()
    layer = network.add_slice(x, (0, 1, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1))
    specs = {tensor: tensor.spec for tensor in network.tensors}
    assert [COMMUTATIONS["slice"].path(layer, specs, axis) for axis in range(4)] == [0, None, 2, 3]


def test_of_a_kind_of_another_package_nothing_is_known():
    class Foreign(Identity):
        kind = "acme.identity"

    row = commutation_of(Foreign())
    assert (row.commutes, row.is_quantizable, row.reason) == (False, False, "no rule is known for this layer kind")

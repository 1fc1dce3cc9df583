"""What is known before a run is computed once."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.generators import FillOperation
from dryfit.network.layers.ranking import TopKOperation
from dryfit.network.network import Network
from dryfit.passes import simplify as folding
from dryfit.passes.simplify import absorb_dimensions, fold_constants, remove_dead_layers
from dryfit.reference.executor import run_reference


def _sum(network, a, b, name):
    layer = network.add_elementwise(a, b, ElementWiseOperation.SUM)
    network.rename_layer(layer, name)
    layer.onnx_nodes = (f"Add_{name}",)
    network.rename_tensor(layer.get_output(0), f"{name} out")
    return layer.get_output(0)


def _constant(network, values):
    array = np.asarray(values, np.float32)
    return network.add_constant(array.shape, array).get_output(0)


def test_a_chain_of_constants_becomes_one_that_keeps_names_notes_and_origin():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2,))
    inner = _sum(network, _constant(network, [1, 2]), _constant(network, [3, 4]), "inner")
    outer = _sum(network, inner, inner, "outer")
    outer.set_dynamic_range(-1, 20)
    network.mark_output(_sum(network, x, outer, "kept"))
    assert fold_constants(network)
    remove_dead_layers(network)
    assert [layer.name for layer in network] == ["outer", "kept"]
    constant = network.layer("outer")
    assert constant.kind == "constant"
    assert constant.onnx_nodes == ("Add_outer",)
    assert constant.weights.tolist() == [8, 12]
    assert network.tensor("outer out").dynamic_range == (-1, 20)


def test_an_output_that_is_known_becomes_a_constant_of_its_name():
    network = Network()
    y = _sum(network, _constant(network, [1]), _constant(network, [2]), "y")
    network.mark_output(y)
    assert fold_constants(network)
    assert run_reference(network, {})["y out"].tolist() == [3]
    assert network.get_output(0).producer.kind == "constant"


def test_the_shape_of_a_static_tensor_is_folded_and_that_of_a_dynamic_one_is_not():
    for extent, folds in ((2, True), (-1, False)):
        network = Network()
        x = network.add_input("x", DataType.FLOAT, (extent, 3))
        network.mark_output(network.add_shape(x).get_output(0))
        assert fold_constants(network) is folds


def test_quantized_weights_stay_quantized():
    network = Network()
    scale = _constant(network, 0.5)
    weights = network.add_quantize(_constant(network, [1, 2]), scale).get_output(0)
    network.mark_output(network.add_dequantize(weights, scale).get_output(0))
    assert not fold_constants(network)


def test_random_numbers_are_made_at_run_time():
    network = Network()
    network.mark_output(network.add_fill((2,), FillOperation.RANDOM_NORMAL).get_output(0))
    assert not fold_constants(network)


def test_what_is_too_large_is_computed_at_run_time(monkeypatch):
    network = Network()
    network.mark_output(network.add_fill((10,), FillOperation.LINSPACE).get_output(0))
    monkeypatch.setattr(folding, "LARGEST_FOLDED_ELEMENTS", 9)
    assert not fold_constants(network)
    monkeypatch.setattr(folding, "LARGEST_FOLDED_ELEMENTS", 10)
    assert fold_constants(network)


def test_large_weights_are_folded():
    network = Network()
    a = _constant(network, np.ones((64, 1000)))
    network.mark_output(_sum(network, a, a, "y"))
    assert fold_constants(network)
    assert network.get_output(0).producer.weights.shape == (64, 1000)


def test_ten_thousand_layers_fold_in_one_sweep():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1,))
    y = _constant(network, [0])
    for _ in range(10_000):
        y = network.add_identity(y).get_output(0)
    network.mark_output(network.add_elementwise(x, y, ElementWiseOperation.SUM).get_output(0))
    assert fold_constants(network)
    remove_dead_layers(network)
    assert len(network) == 2


def _network():
    network = Network()
    return network, network.add_input("x", DataType.FLOAT, (2, 3, 4))


def _vector(network, *values):
    return network.add_constant((len(values),), np.array(values)).get_output(0)


def test_a_slice_takes_its_bounds_and_keeps_its_fill_value():
    network, x = _network()
    layer = network.add_slice(x, (), (), ())
    for index, values in ((1, (1,)), (2, (2,)), (3, (-1,)), (5, (-1,))):
        layer.set_input(index, _vector(network, *values))
    fill = network.add_constant((), np.float32(7)).get_output(0)
    layer.set_input(4, fill)
    network.mark_output(layer.get_output(0))
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    before = run_reference(network, {"x": data})
    assert absorb_dimensions(network)
    assert (layer.start, layer.shape, layer.stride, layer.axes) == ((1,), (2,), (-1,), (-1,))
    assert layer.inputs == [x, None, None, None, fill]
    after = run_reference(network, {"x": data})
    np.testing.assert_array_equal(*before.values(), *after.values())


@pytest.mark.parametrize(("kind", "dims"), [("shuffle", (4, -1)), ("resize", (2, 6, 8))])
def test_a_reshape_and_a_resize_take_their_extents(kind, dims):
    network, x = _network()
    layer = network.add_shuffle(x) if kind == "shuffle" else network.add_resize(x)
    layer.set_input(1, _vector(network, *dims))
    shape = layer.get_output(0).shape
    assert absorb_dimensions(network)
    assert layer.inputs == [x]
    assert layer.get_output(0).shape == shape
    assert (layer.reshape_dims if kind == "shuffle" else layer.shape) == dims


def test_dimensions_that_are_computed_at_run_time_stay():
    network, x = _network()
    target = network.add_input("target", DataType.INT64, (2,))
    network.add_shuffle(x).set_input(1, target)
    assert not absorb_dimensions(network)


def _network_of_remove_dead_layers():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (2, 8))
    network.add_input("spare", DataType.FLOAT, (1,))
    used = network.add_activation(x, ActivationType.RELU).get_output(0)
    dead = network.add_activation(used, ActivationType.TANH).get_output(0)
    network.add_activation(dead, ActivationType.TANH)
    return network, used


def test_dead_chains_are_removed_and_inputs_stay():
    network, used = _network_of_remove_dead_layers()
    network.mark_output(used)
    assert remove_dead_layers(network)
    assert [layer.get_output(0) for layer in network] == [used]
    assert [tensor.name for tensor in network.inputs] == ["x", "spare"]
    assert used.consumers == []
    assert not remove_dead_layers(network)


def test_a_layer_with_one_used_output_stays():
    network, used = _network_of_remove_dead_layers()
    top = network.add_topk(used, TopKOperation.MAX, 2, 0b10)
    network.mark_output(top.get_output(1))
    remove_dead_layers(network)
    assert [layer.kind for layer in network] == ["activation", "top_k"]


def test_without_outputs_nothing_is_removed():
    network, _ = _network_of_remove_dead_layers()
    assert not remove_dead_layers(network)
    assert len(network) == 3

"""TensorRT's heuristic near outputs, and its exceptions."""

from __future__ import annotations

from tests.core.builder.networks import activation, add, chain, convolution, image_network, named

from dryfit.builder.precision.int8_choice import layers_near_outputs
from dryfit.network.data_types import DataType
from dryfit.network.layers.matrix import MatrixOperation

INT8 = DataType.INT8


def near(network):
    return set(layers_near_outputs(network.layers))


def test_everything_from_the_last_smoothing_layer_to_the_output_stays_real():
    assert near(chain("c", "r", "c", "r", "e")) == {"c2", "r3", "e4"}


def test_each_path_to_the_output_ends_at_its_own_last_smoothing_layer():
    network, x = image_network()
    stem = activation(network, convolution(network, x, "stem"), "relu")
    left = convolution(network, stem, "left")
    network.mark_output(add(network, left, stem, "sum"))
    assert near(network) == {"stem", "relu", "left", "sum"}


def test_an_inner_output_counts_as_an_output():
    network = chain("c", "r", "c", "r")
    network.mark_output(network.tensor("r1"))
    assert near(network) == {"c0", "r1", "c2", "r3"}


def test_a_product_of_matrices_smooths():
    network, x = image_network((4, 4))
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, x, MatrixOperation.NONE)
    network.mark_output(activation(network, named(product, "product"), "relu"))
    assert near(network) == {"product", "relu"}


def test_without_a_smoothing_layer_nothing_is_forced():
    assert near(chain("r", "e")) == set()


def test_an_int8_output_lifts_it():
    network = chain("c", "r")
    network.layer("r1").set_output_type(0, INT8)
    assert near(network) == set()


def test_a_layer_on_the_path_that_is_constrained_to_int8_lifts_it():
    for constrained in ("c2", "r3", "r4"):
        network = chain("c", "r", "c", "r", "r")
        network.layer(constrained).precision = INT8
        assert near(network) == set(), constrained
    before = chain("c", "r", "c", "r")
    before.layer("r1").precision = INT8
    assert near(before) == {"c2", "r3"}


def test_a_plugin_on_the_path_lifts_it():
    network = chain("c", "r", "r")
    layers = list(network.layers)
    layers[1] = _Plugin(layers[1])
    assert layers_near_outputs(layers) == frozenset()


class _Plugin:
    """A layer that says that it is a plugin's."""

    kind = "plugin"

    def __init__(self, layer):
        self._layer = layer

    def __getattr__(self, name):
        return getattr(self._layer, name)

"""The layers that the kit asks about: there is one of every kind, each is valid, and the same seed gives the same."""

import numpy as np
import pytest

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.verify import check
from dryfit.plugins import registry
from dryfit.reference.executor import run_reference
from dryfit.testing.engine_checks import number_problems
from dryfit.testing.example_layers import EXAMPLES, add_example
from dryfit.testing.limit_checks import random_layer
from dryfit.testing.trial_networks import KINDS, make_trial


def test_there_is_an_example_of_every_kind_but_those_with_kits_of_their_own():
    assert set(EXAMPLES) == set(LAYER_KINDS) - {"plugin", "quantized_operator"}
    assert set(KINDS) <= set(EXAMPLES)


def mark(layer):
    """Mark the output of a layer, or the input of the network if it has none."""
    layer.network.mark_output(layer.get_output(0) if layer.num_outputs else layer.network.get_input(0))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_is_a_valid_layer_of_its_kind_that_can_be_computed(kind):
    network = Network("example")
    layer = add_example(kind, network, network.add_input("x", DataType.FLOAT, (2, 4, 16, 16)), np.random.default_rng(1))
    assert layer.kind == kind
    mark(layer)
    check(network)
    x = np.random.default_rng(2).standard_normal((2, 4, 16, 16)).astype(np.float32)
    (value,) = run_reference(network, {"x": x}).values()
    if kind in KINDS:
        assert np.isfinite(value).all()
        assert 0.01 < np.abs(value).max() < 100


@pytest.mark.parametrize("kind", EXAMPLES)
def test_random_layers_of_a_kind_are_valid_and_follow_from_the_seed(kind):
    drawn = [[random_layer(kind, rng) for _ in range(8)] for rng in (np.random.default_rng(3) for _ in range(2))]
    for layer, again in zip(*drawn, strict=True):
        assert layer.kind == kind
        mark(layer)
        check(layer.network)
        mark(again)
        assert network_text(layer.network) == network_text(again.network)


def test_a_kind_that_takes_no_such_tensor_gives_no_layer():
    network = Network("scalar")
    x = network.add_input("x", DataType.BOOL, (3,))
    assert add_example("convolution", network, x, np.random.default_rng(0)) is None


def test_a_trial_is_of_supported_layers_and_follows_from_the_seed():
    first, again = (make_trial(registry.target("DLA"), DataType.HALF, 5) for _ in range(2))
    assert network_text(first.network) == network_text(again.network)
    np.testing.assert_array_equal(first.feeds["x"], again.feeds["x"])
    assert first.kinds
    assert network_text(first.network) != network_text(make_trial(registry.target("DLA"), DataType.HALF, 6).network)
    work = [layer for layer in first.network.layers if layer.kind in KINDS]
    assert [layer.kind for layer in work] == list(first.kinds)
    assert all(first.config.can_run_on(layer, "DLA") for layer in work)


def test_an_error_is_measured_by_the_largest_magnitude():
    expected = np.array([100.0, 1.0], np.float32)
    assert number_problems("y", expected + np.float32(0.5), expected, 0.01) == []
    assert number_problems("y", expected + np.float32(2), expected, 0.01) == [
        "y differs by 2 from the reference, whose largest magnitude is 100"
    ]
    assert "is float64 (2,), not float32 (2,)" in number_problems("y", expected.astype(np.float64), expected, 1)[0]
    assert number_problems("y", np.array([np.nan, 1], np.float32), expected, 1)

"""UINT8 codes that an engine keeps as INT8 ones: which they are, and that no number changes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed, lowered
from tests.core.builder.networks import named

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.movement import Padding
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference

FLOAT, INT8, UINT8 = DataType.FLOAT, DataType.INT8, DataType.UINT8
SHAPE = (1, 4, 6, 6)


class Unsigned(Network):
    """A network between UINT8 codes."""

    def constant(self, values, name):
        return named(self.add_constant(values.shape, values), name)

    def numbers(self, name, scale, zero_point):
        found = [self.constant(np.array(scale, np.float32), f"{name} scale")]
        return found if zero_point is None else [*found, self.constant(np.array(zero_point, np.uint8), f"{name} zero")]

    def quantize(self, x, name, scale=0.1, zero_point=37):
        return named(self.add_layer(Quantize(to_type=UINT8), [x, *self.numbers(name, scale, zero_point)]), name)

    def dequantize(self, codes, name, scale=0.1, zero_point=37):
        return named(self.add_layer(Dequantize(), [codes, *self.numbers(name, scale, zero_point)]), name)


def cpu_config():
    config = BuilderConfig()
    config.default_device_type = "CPU"
    return config


def types(network):
    return {tensor.name: tensor.dtype for tensor in network.tensors}


def pooled_network(zero_point=37):
    """Codes that are pooled and turned before they are numbers again."""
    network = Unsigned()
    codes = network.quantize(network.add_input("x", FLOAT, SHAPE), "codes", zero_point=zero_point)
    largest = named(network.add_pooling_nd(codes, PoolingType.MAX, (2, 2)), "largest")
    turned = network.add_shuffle(largest)
    turned.first_transpose = (0, 2, 3, 1)
    network.mark_output(network.dequantize(named(turned, "turned"), "y", zero_point=zero_point))
    return network


def numbers(shape=SHAPE):
    """Numbers of which some saturate, with ties and what is no number."""
    values = (np.random.default_rng(0).standard_normal(shape) * 12).astype(np.float32)
    values.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 0.05, -0.05, 1e30]
    return values


@pytest.mark.parametrize("zero_point", [0, 37, 128, 255, None])
def test_codes_between_layers_of_the_host_are_signed_and_no_number_changes(zero_point):
    network = pooled_network(zero_point)
    result = lowered(network, cpu_config()).network
    assert {types(result)[name] for name in ("codes", "largest", "turned")} == {INT8}
    assert UINT8 not in types(result).values()
    feeds = {"x": numbers()}
    np.testing.assert_array_equal(run_reference(result, feeds)["y"], run_reference(network, feeds)["y"])


def test_codes_that_are_constant_are_moved_with_the_others():
    network = Unsigned()
    codes = network.quantize(network.add_input("x", FLOAT, SHAPE), "codes")
    fixed = network.constant(np.arange(144, dtype=np.uint8).reshape(SHAPE), "fixed")
    joined = named(network.add_concatenation([codes, fixed]), "joined")
    network.mark_output(network.dequantize(joined, "y"))
    result = lowered(network, cpu_config()).network
    assert types(result)["joined"] is INT8
    feeds = {"x": numbers()}
    np.testing.assert_array_equal(run_reference(result, feeds)["y"], run_reference(network, feeds)["y"])


def test_what_the_caller_gives_or_gets_stays_unsigned_with_all_that_is_beside_it():
    network = Unsigned()
    given, own = network.add_input("given", UINT8, SHAPE), network.quantize(network.add_input("x", FLOAT, SHAPE), "own")
    network.mark_output(network.dequantize(named(network.add_concatenation([given, own]), "joined"), "y"))
    other = network.quantize(network.add_input("z", FLOAT, SHAPE), "got")
    network.mark_output(other)
    result = lowered(network, cpu_config()).network
    assert {types(result)[name] for name in ("given", "own", "joined", "got")} == {UINT8}


def test_codes_whose_zero_stands_for_something_stay_unsigned():
    network = Unsigned()
    codes = network.quantize(network.add_input("x", FLOAT, SHAPE), "codes", zero_point=None)
    padded = network.add_layer(Padding(pre_padding_nd=(1, 1), post_padding_nd=(0, 0)), [codes]).outputs[0]
    network.mark_output(network.dequantize(padded, "y", zero_point=None))
    assert designed(network, cpu_config()).precisions.signed_codes == frozenset()


def test_codes_that_are_computed_with_stay_unsigned():
    network = Unsigned()
    codes = network.quantize(network.add_input("x", FLOAT, SHAPE), "codes")
    total = named(network.add_elementwise(codes, codes, ElementWiseOperation.MAX), "total")
    network.mark_output(network.dequantize(total, "y"))
    assert designed(network, cpu_config()).precisions.signed_codes == frozenset()


def test_only_what_runs_on_the_host_is_signed():
    config = BuilderConfig()
    config.default_device_type = "GPU"
    design = designed(pooled_network(), config)
    assert design.refusals
    assert design.precisions.signed_codes == frozenset()

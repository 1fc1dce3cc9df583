"""What is true of every layer of a kind: one meaning a trait, and defaults for kinds of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS, Inputs, Layer, define_layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec

OWN = {kind: cls for kind, cls in LAYER_KINDS.items() if cls.__module__.startswith("dryfit.")}
WEIGHTED = {"convolution", "deconvolution", "fully_connected"}


@define_layer
class Strange(Layer):
    """A kind of somebody else's that states no traits."""

    kind = layer_type = "strange"

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        return [self.required(inputs, 0)]


@pytest.mark.parametrize(
    ("trait", "kinds"),
    [
        ("is_weighted", WEIGHTED),
        ("sums_products", WEIGHTED | {"matrix_multiply"}),
        ("only_moves_values", {"identity", "shuffle", "squeeze", "unsqueeze"}),
        ("is_conversion", {"cast", "quantize", "dequantize"}),
        ("is_quantization", {"quantize", "dequantize", "dynamic_quantize"}),
        ("computing_inputs", {"resize", "grid_sample"}),
        ("flowing_inputs", WEIGHTED | {"resize", "shuffle", "slice"}),
        ("dimension_inputs", {"fill", "resize", "shuffle", "slice"}),
        ("parameter_inputs", {"fill", "resize", "shuffle", "slice"}),
    ],
)
def test_a_trait_differs_from_the_default_for_these_kinds_only(trait: str, kinds: set[str]) -> None:
    assert {kind for kind, cls in OWN.items() if getattr(cls, trait) != getattr(Layer, trait)} == kinds


def test_kinds_that_have_weights_have_them_as_parameters_and_sum_products() -> None:
    for kind in WEIGHTED:
        assert {"kernel", "bias"} <= {field.name for field in LAYER_KINDS[kind].parameters()}
        assert LAYER_KINDS[kind].sums_products


def test_an_input_that_means_a_parameter_names_one_of_the_kind() -> None:
    for cls in OWN.values():
        assert set(cls.parameter_inputs.values()) <= {field.name for field in cls.parameters()}
        assert set(cls.dimension_inputs) <= set(cls.parameter_inputs)


def test_a_kind_that_states_nothing_computes_real_numbers_from_all_its_inputs_and_multiplies_nothing() -> None:
    layer = Strange()
    assert not any((layer.is_weighted, layer.sums_products, layer.has_fixed_types, layer.needs_real_numbers))
    assert all(index in layer.computing_inputs and index in layer.flowing_inputs for index in (0, 1, 99))
    assert layer.multiply_accumulates({}) == 0


def test_an_input_that_must_be_connected_is_named_where_it_is_not() -> None:
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    layer = network.add_convolution_nd(x, 2, (1, 1), np.ones((2, 2, 1, 1), np.float32))
    assert layer.connected_input(0) is x
    assert layer.connected_inputs == [x]
    with pytest.raises(NetworkError, match="Input 1 is not connected"):
        layer.connected_input(1)


def test_only_what_a_constant_layer_produces_is_a_constant() -> None:
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (2,))
    assert not x.is_constant
    assert network.add_constant((2,), np.ones(2, np.float32)).get_output(0).is_constant
    assert not network.add_identity(x).get_output(0).is_constant

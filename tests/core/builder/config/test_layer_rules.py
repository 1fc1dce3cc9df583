"""Lists of layers as trtexec spells them."""

from __future__ import annotations

import pytest

from dryfit.builder.config.layer_rules import PrecisionRules, layer_entries, layer_list
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network


@pytest.fixture
def network() -> Network:
    """Two activations, one of them with a name that has a colon and spaces."""
    built = Network("test")
    tensor = built.add_input("x", DataType.FLOAT, (1, 4))
    for name in ("first", "scope: second one"):
        layer = built.add_activation(tensor, ActivationType.RELU)
        layer.name = name
        tensor = layer.get_output(0)
    built.mark_output(tensor)
    return built


def test_the_last_colon_ends_a_name_and_quotes_are_left_out(network: Network) -> None:
    PrecisionRules.parse("'first':fp16, scope: second one:INT8", "--x").set_precisions(network)
    assert [layer.precision for layer in network.layers] == [DataType.HALF, DataType.INT8]


def test_what_is_written_is_read_again(network: Network) -> None:
    text, unfit = layer_list([("first", "int8"), ("scope: second one", "fp32"), ("a,b", "fp16"), ("first", "fp16")])
    assert (text, unfit) == ("first:fp16,scope: second one:fp32", ["a,b"])
    assert layer_entries(text) == ["first:fp16", "scope: second one:fp32"]
    PrecisionRules.parse(text, "--x").set_output_types(network)
    assert [layer.output_types for layer in network.layers] == [{0: DataType.HALF}, {0: DataType.FLOAT}]


def test_wrong_entries_are_listed_together() -> None:
    with pytest.raises(ConfigError, match=r"'first'; 'b:fp17'.*fp32, fp16, bf16, int8, int32"):
        PrecisionRules.parse("first,a:int8,b:fp17", "--layer-precisions")


def test_names_that_no_layer_has_get_the_closest_and_nothing_is_set(network: Network) -> None:
    with pytest.raises(ConfigError, match=r"Unknown layer 'frist'\. Did you mean 'first'"):
        PrecisionRules.parse("first:int8,frist:int8", "--x").set_precisions(network)
    assert network.layer("first").precision is None


def test_a_layer_has_one_precision_and_as_many_output_types_as_outputs(network: Network) -> None:
    rules = PrecisionRules.parse("first:int8+fp16", "--x")
    with pytest.raises(ConfigError, match="only one precision allowed"):
        rules.set_precisions(network)
    with pytest.raises(ConfigError, match="layer 'first' has 1 outputs"):
        rules.set_output_types(network)


@pytest.mark.parametrize("text", ["*:fp16", "kind:identity:fp16", "numbers:fp16"])
def test_a_pattern_casts_no_integers_and_a_name_does(text):
    network = Network()
    real = network.add_identity(network.add_input("x", DataType.FLOAT, (2,)))
    whole = network.add_identity(network.add_input("n", DataType.INT32, (2,)))
    real.name, whole.name = "real", "numbers"
    PrecisionRules.parse(text, "--x").set_output_types(network)
    assert whole.get_output(0).dtype is (DataType.HALF if text.startswith("numbers") else DataType.INT32)
    assert real.output_type_is_set(0) is not text.startswith("numbers")

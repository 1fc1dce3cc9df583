import pytest
from tests.core.builder.networks import chain

from dryfit.errors import PluginError
from dryfit.target.fusions import Fusion, allowing

SUM_RELU = Fusion("convolution-sum-relu", ["convolution", "elementwise?", "activation"])
WIDE = Fusion("wide", ["convolution", "activation"], where=lambda layers: layers[0].num_output_maps > 8)


def layers(*kinds):
    return chain(*kinds).layers


def test_an_optional_kind_may_be_missing():
    assert SUM_RELU.chains == (("convolution", "elementwise", "activation"), ("convolution", "activation"))
    assert SUM_RELU.allows(layers("c", "r"))


def test_only_whole_chains_are_allowed():
    assert not SUM_RELU.allows(layers("c"))
    assert not SUM_RELU.allows(layers("c", "r", "r"))
    assert not SUM_RELU.allows(layers("r", "c"))


def test_a_beginning_is_told_from_what_is_none():
    assert SUM_RELU.may_begin_with(layers("c"))
    assert SUM_RELU.may_begin_with(layers("c", "r"))
    assert not SUM_RELU.may_begin_with(layers("c", "c"))


def test_where_decides_what_kinds_cannot_say():
    assert not WIDE.allows(layers("c", "r"))
    assert WIDE.may_begin_with(layers("c", "r"))


def test_the_first_fusion_that_allows_a_chain_is_found():
    assert allowing([WIDE, SUM_RELU], layers("c", "r")) is SUM_RELU
    assert allowing([WIDE], layers("c", "r")) is None


def test_kinds_may_be_repeated():
    assert Fusion("twice", ["activation", "activation?", "activation"]).allows(layers("r", "r", "r"))


@pytest.mark.parametrize("kinds", [[], ["convolution"], ["convolution", "activation?"], ["a?", "b?", "c?"]])
def test_a_fusion_of_fewer_than_two_layers_is_refused(kinds):
    with pytest.raises(PluginError, match="A fusion must join at least two layers") as caught:
        Fusion("short", kinds)
    assert caught.value.where == "fusion 'short'"

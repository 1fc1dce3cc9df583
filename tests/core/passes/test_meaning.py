"""No pass changes what a network computes, nor the names of its inputs and outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.core.network.random_networks import SHAPE, networks

from dryfit.network.copying import copy_network
from dryfit.network.printing import network_text
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline, specialise
from dryfit.passes.pipeline import Pipeline
from dryfit.passes.simplify import absorb_dimensions, fold_constants, remove_dead_layers, remove_identities
from dryfit.reference.executor import run_reference

PASSES = [fold_constants, absorb_dimensions, remove_identities, remove_dead_layers]


def _check_same(network, rewritten, x):
    check(rewritten)
    assert [tensor.name for tensor in rewritten.inputs] == [tensor.name for tensor in network.inputs]
    assert [tensor.name for tensor in rewritten.outputs] == [tensor.name for tensor in network.outputs]
    expected, found = run_reference(network, {"x": x}), run_reference(rewritten, {"x": x})
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("network_pass", PASSES, ids=[each.name for each in PASSES])
@given(built=networks(dynamic=True))
def test_a_pass_keeps_the_meaning_and_says_whether_it_changed_anything(network_pass, built):
    network, x = built
    rewritten = copy_network(network)
    changed = network_pass(rewritten)
    assert changed == (network_text(rewritten) != network_text(network))
    _check_same(network, rewritten, x)
    assert not network_pass(rewritten)


@settings(max_examples=100)
@given(networks())
def test_the_canonical_pipeline_keeps_the_meaning_and_comes_to_rest(built):
    network, x = built
    rewritten = copy_network(network)
    canonical_pipeline().run(rewritten)
    _check_same(network, rewritten, x)
    once = network_text(rewritten)
    Pipeline(list(canonical_pipeline())).run(rewritten)
    assert network_text(rewritten) == once


@given(networks(dynamic=True))
def test_a_specialised_network_computes_the_same_and_is_static(built):
    network, x = built
    before = network_text(network)
    special = specialise(network, {"x": SHAPE})
    assert network_text(network) == before
    _check_same(network, special, x)
    assert all(tensor.spec.is_static for tensor in special.tensors)
    assert not any(layer.kind == "shape" for layer in special)

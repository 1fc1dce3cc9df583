"""After every pass a random Q/DQ network gives what it gave before, bit for bit: nothing but movement happens."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from tests.core.passes.quantization import random_qdq
from tests.core.passes.quantization.random_qdq import feeds, networks

from dryfit.network.copying import copy_network
from dryfit.network.printing import network_text
from dryfit.network.verify import check
from dryfit.passes.canonical import quantization_passes
from dryfit.passes.findings import PassFindings
from dryfit.passes.pipeline import Pipeline
from dryfit.passes.quantization import commutation
from dryfit.passes.simplify import remove_dead_layers
from dryfit.quantization.rewrites import RewriteAction
from dryfit.reference.executor import run_reference


def passes():
    return [*quantization_passes(), remove_dead_layers]


def is_same(found, expected):
    """Equal as numbers; a quantization to FP8 keeps the sign of a zero that a maximum may not."""
    return all(
        found[name].dtype == array.dtype
        and np.array_equal(found[name].astype(np.float32), array.astype(np.float32), equal_nan=True)
        for name, array in expected.items()
    )


@settings(max_examples=120, deadline=None)
@given(networks())
def test_every_pass_keeps_every_bit_and_the_names_of_inputs_and_outputs(network):
    values = feeds(network)
    expected = run_reference(network, values)
    rewritten, found = copy_network(network), PassFindings()
    for one in passes():
        before = network_text(rewritten)
        found = one.run(rewritten, found)
        check(rewritten)
        assert found.changed == (network_text(rewritten) != before), one.name
        assert [tensor.name for tensor in rewritten.outputs] == [tensor.name for tensor in network.outputs]
        assert is_same(run_reference(rewritten, values), expected), one.name
    assert not any(layer.name.count(" after ") + layer.name.count(" before ") > 1 for layer in rewritten)


@settings(max_examples=40, deadline=None)
@given(networks())
def test_a_second_run_finds_nothing_to_move_back(network):
    """What moved stays where it is: the passes come to rest."""
    Pipeline(passes()).run(network)
    expected = run_reference(network, feeds(network))
    Pipeline(passes()).run(network)
    third = Pipeline(passes()).run(network).found.rewrites
    assert is_same(run_reference(network, feeds(network)), expected)
    assert {step.action for step in third} <= {RewriteAction.STOPPED}


def never(layer, specs):
    return ""


@pytest.mark.parametrize(
    ("kind", "step"),
    [("pooling", random_qdq.averaged), ("activation", random_qdq.leaky), ("scale", random_qdq.doubled)],
)
def test_a_row_that_lets_a_kind_commute_that_does_not_is_caught(kind, step, monkeypatch):
    """The property can fail: one wrong row of the table breaks it on a network that is found."""
    wrong = attrs.evolve(
        commutation.COMMUTATIONS[kind], when="always", obstacle=never, requantizes=False, ends_groups=False
    )
    monkeypatch.setitem(commutation.COMMUTATIONS, kind, wrong)

    def is_broken(network):
        rewritten, values = copy_network(network), feeds(network)
        Pipeline(passes()).run(rewritten)
        return not is_same(run_reference(rewritten, values), run_reference(network, values))

    quick = settings(max_examples=500, deadline=None, phases=[Phase.generate])
    assert find(networks(steps=(random_qdq.pair, step)), is_broken, settings=quick)

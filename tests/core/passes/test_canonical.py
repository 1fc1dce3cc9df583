"""Passes of plugins find their places; networks are made for the shapes that they run with."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import chain

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.errors import BuildError, ExecutionError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.passes.canonical import canonical_pipeline, own_passes, specialise
from dryfit.plugins import registry

PASSES = """
from dryfit import hookimpl
from dryfit.plugins.contributions import PassContribution

def nothing(network):
    return False

@hookimpl
def contribute_passes():
    return [{passes}]
"""


def contributing(*passes):
    """Code of a module that contributes passes: (name, "before" or "after", neighbour)."""
    return PASSES.format(
        passes=", ".join(
            f"PassContribution({name!r}, nothing, {side}={neighbour!r})" for name, side, neighbour in passes
        )
    )


def running(code):
    """Code of a module whose pass, after all others, runs this."""
    return f"""
import numpy as np
from dryfit import hookimpl
from dryfit.plugins.contributions import PassContribution

def rewrite(network):
    {code}

@hookimpl
def contribute_passes():
    return [PassContribution("rewrite", rewrite, after="remove-dead-layers")]
"""


OWN = [one.name for one in own_passes()]


def test_the_names_of_the_own_passes_are_part_of_the_plugin_interface():
    assert OWN == [
        "flatten-control-flow",
        "decompose-composite-layers",
        "form-quantized-operators",
        "fold-constants",
        "absorb-dimensions",
        "cast-identities",
        "remove-identities",
        "merge-quantizations",
        "move-dequantizes",
        "move-activations",
        "move-quantizes",
        "cancel-quantizations",
        "fold-quantized-weights",
        "claim-quantized-groups",
        "remove-dead-layers",
    ]
    assert canonical_pipeline().names == OWN


def test_passes_stand_before_and_after_others_in_the_order_of_their_packages(install):
    install("boards", contributing(("b1", "after", "fold-constants"), ("b2", "before", "fold-constants")))
    install(
        "acme",
        contributing(
            ("a1", "after", "fold-constants"), ("a2", "after", "fold-constants"), ("a3", "before", "fold-constants")
        ),
    )
    assert canonical_pipeline().names == [*OWN[:3], "a3", "b2", "fold-constants", "a1", "a2", "b1", *OWN[4:]]
    assert registry.failures() == []


def test_a_pass_may_stand_beside_one_that_another_package_brings(install):
    install("acme", contributing(("a", "after", "b"), ("c", "before", "a")))
    install("boards", contributing(("b", "after", "remove-dead-layers"), ("d", "after", "remove-dead-layers")))
    assert canonical_pipeline().names == [*OWN, "b", "c", "a", "d"]


def test_an_entry_point_contributes_a_pass_as_a_hook_does(install):
    install(
        "acme",
        "from dryfit.plugins.contributions import PassContribution\n"
        "PASS = PassContribution('mine', lambda network: False, before='fold-constants')\n",
        {"dryfit.passes": {"mine": "acme:PASS"}},
    )
    assert canonical_pipeline().names == [*OWN[:3], "mine", *OWN[3:]]


def test_all_passes_of_a_plugin_that_have_no_place_are_recorded_together(install):
    install("acme", contributing(("x", "after", "nobody"), ("p", "after", "q"), ("q", "before", "p")))
    assert canonical_pipeline().names == OWN
    (failure,) = registry.failures()
    assert (failure.distribution, failure.hook) == ("acme", "contribute_passes")
    assert "pass 'x': Unknown pass: 'nobody'" in failure.message
    assert (
        "pass 'p': its neighbour 'q' has no place either; pass 'q': its neighbour 'p' has no place" in failure.message
    )


def test_a_misspelled_neighbour_is_answered_with_the_closest_name(install):
    install("acme", contributing(("x", "after", "fold-constant"), ("y", "after", "fold-constants")))
    assert canonical_pipeline().names == [*OWN[:4], "y", *OWN[4:]]
    (failure,) = registry.failures()
    assert failure.message.startswith("pass 'x': Unknown pass: 'fold-constant'")
    assert "Did you mean 'fold-constants'" in failure.message


@pytest.mark.parametrize(("name", "owner"), [("fold-constants", "dryfit"), ("mine", "acme 1.0 (acme)")])
def test_of_two_passes_of_one_name_the_first_stays_and_the_other_is_recorded_with_its_owner(install, name, owner):
    install("acme", contributing(("mine", "before", "fold-constants")))
    install("boards", contributing((name, "after", "fold-constants")))
    assert canonical_pipeline().names == [*OWN[:3], "mine", *OWN[3:]]
    (failure,) = registry.failures()
    assert failure.distribution == "boards"
    assert failure.message == f"pass {name!r}: {owner} has a pass of this name"


def test_the_passes_are_written_into_the_engine_in_order(install):
    install("acme", contributing(("mine", "after", "remove-identities")))
    plan = Builder().build_plan(chain("c", "r"), BuilderConfig())
    assert plan.settings["passes"] == [*OWN[:7], "mine", *OWN[7:]]


def test_a_pass_rewrites_the_network_that_is_built_and_not_the_users(install):
    install("acme", running("network.rename_layer(network.layers[0], 'renamed'); return True"))
    network = chain("c", "r")
    assert [layer.layer for layer in Builder().build_plan(network, BuilderConfig()).layers] == ["renamed", "r1"]
    assert [layer.name for layer in network] == ["c0", "r1"]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("raise ValueError('odd')", "ValueError: odd"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("network.layers[0].kernel[...] = np.nan", "Weights must be finite"),
        ("network.unmark_output(network.outputs[0])", "The network has no output"),
        (
            "network.rename_tensor(network.outputs[0], 'other')",
            "found output 'other' FLOAT (1, 8, 6, 6); allowed: output 'r1' FLOAT (1, 8, 6, 6)",
        ),
        ("network.mark_output(network.tensor('c0'))", "found output 'c0' FLOAT (1, 8, 6, 6); allowed: nothing"),
        ("network.inputs[0].shape = (2, 8, 6, 6)", "found input 'x' FLOAT (2, 8, 6, 6), output 'r1'"),
    ],
)
def test_a_pass_that_goes_wrong_ends_the_build_with_its_name_its_plugins_and_what_ran_before(install, code, what):
    install("acme", running(code))
    with pytest.raises(BuildError) as caught:
        Builder().build_plan(chain("c", "r"), BuilderConfig())
    message = str(caught.value)
    assert message.startswith("pass 'rewrite' of acme 1.0 (acme): The pass failed")
    assert what in message
    assert f"before it ran {', '.join(OWN)}" in message
    assert "switch the plugin off" in str(caught.value.remedy)


def _network():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (-1, 3, 4))
    x.set_dimension_name(0, "batch")
    relu = network.add_activation(x, ActivationType.RELU).get_output(0)
    zero = network.add_constant((1,), np.array([0])).get_output(0)
    batch = network.add_gather(network.add_shape(relu).get_output(0), zero, 0).get_output(0)
    rest = network.add_constant((1,), np.array([12])).get_output(0)
    shuffle = network.add_shuffle(relu)
    shuffle.set_input(1, network.add_concatenation([batch, rest]).get_output(0))
    network.rename_tensor(shuffle.get_output(0), "y")
    network.mark_output(shuffle.get_output(0))
    return network


def test_shape_computations_are_gone_and_the_original_stays():
    network = _network()
    special = specialise(network, {"x": (5, 3, 4)})
    assert [layer.kind for layer in special] == ["activation", "shuffle"]
    assert special[1].reshape_dims == (5, 12)
    assert special.tensor("y").shape == (5, 12)
    assert special.tensor("x").dimension_names == {}
    assert network.tensor("y").shape == (-1, -1)
    assert network.tensor("x").dimension_names == {0: "batch"}
    assert len(network) == 7


def test_an_input_without_a_shape_stays_dynamic():
    special = specialise(_network(), {})
    assert special.tensor("x").shape == (-1, 3, 4)
    assert special.tensor("x").dimension_names == {0: "batch"}


def test_a_shape_that_does_not_fit_is_refused():
    with pytest.raises(ExecutionError, match=r"found \(5, 3, 5\); allowed: \(-1, 3, 4\)"):
        specialise(_network(), {"x": (5, 3, 5)})

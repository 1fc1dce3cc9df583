import numpy as np
from tests.core.builder.networks import activation, chain, dla_config, fp16_config, image_network, named

from dryfit.builder.config.builder_config import DeviceType
from dryfit.builder.placement.assign import NOWHERE, assign_devices, placement_error
from dryfit.builder.placement.roles import LayerRole


def test_the_default_puts_every_layer_on_the_device_that_can_run_there():
    assignment = assign_devices(chain("c", "r", "e", "r"), dla_config(), {})
    assert assignment.devices == {"c0": "DLA", "r1": "DLA", "e2": "GPU", "r3": "DLA"}
    assert assignment.causes["c0"] == "the default device"


def test_a_layer_that_falls_back_is_warned_of_in_the_words_of_its_verdict():
    assignment = assign_devices(chain("c", "e"), dla_config(), {})
    verdict = assignment.verdicts["e1"]["DLA"]
    assert not verdict.supported
    assert assignment.warnings == [f"{verdict}. It runs on GPU"]
    assert assignment.causes["e1"] == str(verdict)
    assert assignment.verdicts["e1"]["GPU"].supported


def test_a_device_of_its_own_wins_over_the_default():
    assignment = assign_devices(chain("c", "r"), dla_config(), {"r1": "GPU"})
    assert assignment.devices == {"c0": "DLA", "r1": "GPU"}
    assert assignment.causes["r1"] == "its own device"
    assert "DLA" not in assignment.verdicts["r1"]
    assert assign_devices(chain("c", "r"), fp16_config(), {"c0": "DLA"}).devices == {"c0": "DLA", "r1": "GPU"}


def test_without_fallback_all_layers_that_cannot_run_are_refused_with_their_reasons():
    assignment = assign_devices(chain("e", "c", "e"), dla_config(fallback=False), {})
    assert [verdict.layer for verdict in assignment.refused] == ["e0", "e2"]
    assert assignment.devices == {"e0": NOWHERE, "c1": "DLA", "e2": NOWHERE}
    assert assignment.warnings == []


def test_a_layer_that_the_fallback_device_refuses_too_has_both_verdicts():
    network, x = image_network((1, 4, 4, 4))
    wide = named(network.add_cast(x, network_type("DOUBLE")), "wide")
    network.mark_output(activation(network, wide, "relu"))
    assignment = assign_devices(network, dla_config(), {})
    assert {(verdict.layer, verdict.device) for verdict in assignment.refused} == {
        ("wide", "DLA"),
        ("wide", "GPU"),
        ("relu", "DLA"),
        ("relu", "GPU"),
    }


def network_type(name):
    from dryfit.network.data_types import DataType

    return DataType[name]


def test_fallback_may_be_any_device():
    config = dla_config(fallback=False)
    config.allow_fallback("CPU")
    assert assign_devices(chain("c", "e"), config, {}).devices == {"c0": "DLA", "e1": "CPU"}


def test_constants_and_shape_computations_have_no_device():
    network, x = image_network((-1, 4, 4, 4))
    named(network.add_constant((1,), np.ones(1, np.float32)), "constant")
    network.mark_output(named(network.add_shape(x), "shape"))
    assignment = assign_devices(network, dla_config(), {})
    assert assignment.devices == {}
    assert assignment.roles == {"constant": LayerRole.CONSTANT, "shape": LayerRole.SHAPE}


def test_the_error_lists_every_refusal_and_says_what_to_do():
    error = placement_error(["first reason", "second reason"], None)
    assert "2 network parts" in str(error)
    assert "first reason\n" in str(error)
    assert "second reason\n" in str(error)
    assert "GPU_FALLBACK" in str(error.remedy)
    assert "1 network part cannot run on DLA or GPU" in str(placement_error(["a"], DeviceType.GPU))

"""What `find_removals` says of formats of inputs and outputs, each applied by hand and measured again."""

import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import activation, add, chain, convolution, dla_config, elu, image_network

from dryfit.answers.reformat_removal import find_removals
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.builder.formats.forms import REFORMAT_RULES
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.network import Network

HALF, FLOAT = DataType.HALF, DataType.FLOAT


def rules(network, config):
    return {one.tensor: one.rule for one in designed(network, config).formats.reformats}


def test_every_reformat_says_why_it_is_there():
    assert rules(chain("c", "e", "r"), dla_config()) == {
        "x": "reformat.network_input",
        "c0": "reformat.between_segments",
        "e1": "reformat.between_segments",
        "r2": "reformat.network_output",
    }


def test_a_border_that_the_tensor_does_not_cross_back_is_no_layer_in_between():
    assert rules(chain("c", "e"), dla_config())["c0"] == "reformat.device_border"
    assert rules(chain("e", "c"), dla_config())["e0"] == "reformat.device_border"


def test_a_change_of_type_within_a_device_has_a_rule_of_its_own():
    network = chain("c", "r")
    network.layer("r1").precision = FLOAT
    config = dla_config()
    config.default_device_type = "GPU"
    found = rules(network, config)
    assert found["c0"] == "reformat.type_change"
    assert set(found.values()) <= REFORMAT_RULES.keys()


def test_what_is_told_of_a_format_is_what_it_does_when_it_is_applied():
    network = chain("c", "e", "r")
    config = dla_config()
    before = designed(network, config).formats
    removals = find_removals(network, config)
    assert {name: [str(one.io_format) for one in trials] for name, trials in removals.trials.items()} == {
        "x": ["fp16:chw16", "fp16:dla_linear"],
        "r2": ["fp16:chw16", "fp16:dla_linear"],
    }
    for name, trials in removals.trials.items():
        for trial in trials:
            again = chain("c", "e", "r")
            trial.io_format.set_on(again.tensor(name))
            formats = designed(again, config).formats
            assert trial.removes == (name not in {one.tensor for one in formats.reformats})
            assert trial.removes
            assert (trial.reformats, trial.moved_bytes) == (len(formats.reformats), formats.moved_bytes)
            assert trial.reformats == len(before.reformats) - 1


def test_all_formats_together_leave_the_reformats_that_none_removes():
    network = chain("c", "e", "r")
    removals = find_removals(network, dla_config())
    assert {name: str(one) for name, one in removals.io_formats.items()} == {"x": "fp16:chw16", "r2": "fp16:chw16"}
    for name, one in removals.io_formats.items():
        one.set_on(network.tensor(name))
    left = designed(network, dla_config()).formats.reformats
    assert [one.tensor for one in left] == ["c0", "e1"]
    assert (removals.together.reformats, removals.together.reformat_bytes) == (2, sum(one.size for one in left))


def test_the_network_is_as_it_was():
    network = chain("c", "r")
    network.tensor("r1").allowed_formats = frozenset({"LINEAR"})
    find_removals(network, dla_config())
    assert (network.inputs[0].dtype, network.inputs[0].allowed_formats) == (FLOAT, None)
    assert network.outputs[0].allowed_formats == {"LINEAR"}
    assert network.layer("r1").output_types == {}


def test_a_network_on_one_device_has_nothing_to_remove():
    removals = find_removals(chain("c", "e"), BuilderConfig())
    assert (removals.trials, removals.together, removals.io_formats) == ({}, None, {})


def test_a_network_that_cannot_be_built_without_a_format_is_told_of_the_one_it_needs():
    config = dla_config(fallback=False)
    network, x = image_network()
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    assert len(designed(network, config).formats.problems) == 2
    removals = find_removals(network, config)
    assert str(removals.trials["x"][0].io_format) == "fp16:chw16"
    assert "no device can make the copy" in removals.trials["x"][0].problem
    assert removals.together is None


def test_an_input_that_two_devices_read_keeps_the_copy_for_one_of_them():
    network, x = image_network()
    network.mark_output(add(network, elu(network, x, "on_gpu"), convolution(network, x, "on_dla"), "sum"))
    removals = find_removals(network, dla_config())
    # The GPU reads the DLA's format too, and converts it inside.
    assert [(str(one.io_format), one.removes) for one in removals.trials["x"]] == [
        ("fp16:chw16", True),
        ("fp16:chw", False),
        ("fp16:dla_linear", False),
    ]


@pytest.mark.parametrize("strongly_typed", [False, True])
def test_a_strongly_typed_network_keeps_its_types(strongly_typed):
    flags = int(strongly_typed) << NetworkDefinitionCreationFlag.STRONGLY_TYPED
    network = Network("typed", flags=flags)
    x = network.add_input("x", HALF, (1, 8, 6, 6))
    network.mark_output(activation(network, x, "r"))
    config = dla_config(fp16=not strongly_typed)
    removals = find_removals(network, config)
    assert all(one.io_format.dtype is HALF for trials in removals.trials.values() for one in trials)
    assert str(removals.best("x").io_format) == "fp16:chw16"


def test_int8_inputs_and_outputs_are_tried_where_tensors_have_ranges():
    network = chain("c", "r")
    for tensor in network.tensors:
        tensor.dynamic_range = (-1, 1)
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    removals = find_removals(network, config)
    assert {name: str(one) for name, one in removals.io_formats.items()} == {"x": "int8:chw32", "r1": "int8:chw32"}
    assert removals.together.reformats == 0


def test_io_formats_are_read_and_written_as_trtexec_spells_them():
    assert IoFormat.parse(" FP16:chw16+DLA_linear ", "x") == IoFormat(HALF, ("CHW16", "DLA_LINEAR"))
    assert str(IoFormat.parse("int8:chw", "x")) == "int8:chw"
    assert IoFormat.parse("fp32:chw", "x") == IoFormat(FLOAT, ("LINEAR",))

"""The engine capability DLA_STANDALONE: one loadable, or every reason why not."""

import pytest
from tests.core.builder.networks import activation, convolution, elu

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType, EngineCapability
from dryfit.builder.config.standalone import NO_REFORMATS, ONE_LOADABLE, STANDALONE_OUTCOMES, STANDALONE_RULES
from dryfit.building import Builder, assess
from dryfit.errors import BuildError, ConfigError, PlacementError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit_dla.loadable_file import read_loadable


def standalone_network(*, formats=("CHW16",), dtype=DataType.HALF, shape=(1, 8, 6, 6)):
    network = Network("alone")
    x = network.add_input("x", dtype, shape)
    y = activation(network, convolution(network, x, "c"), "y")
    network.mark_output(y)
    for tensor in (x, y):
        tensor.allowed_formats = None if formats is None else frozenset(formats)
    return network


def standalone_config(*flags):
    config = BuilderConfig()
    config.default_device_type = DeviceType.DLA
    config.engine_capability = EngineCapability.DLA_STANDALONE
    for flag in (BuilderFlag.FP16, BuilderFlag.DIRECT_IO, *flags):
        config.set_flag(flag)
    return config


def refused(network, config, kind=ConfigError):
    """What a build says, which an assessment says too or refuses with the same words."""
    builder = Builder()
    assert not builder.is_network_supported(network, config)
    with pytest.raises(kind) as caught:
        builder.build_serialized_network(network, config)
    return str(caught.value)


def test_a_network_that_keeps_the_rules_gives_exactly_one_loadable():
    network, config = standalone_network(), standalone_config()
    loadable = read_loadable(Builder().build_serialized_network(network, config))
    assert [(one.name, one.format) for one in (*loadable.inputs, *loadable.outputs)] == [("x", "CHW16"), ("y", "CHW16")]
    assert assess(network, config).can_be_built


def test_the_formats_that_were_asked_for_are_those_of_the_loadable():
    network = standalone_network(formats=["DLA_LINEAR"])
    loadable = read_loadable(Builder().build_serialized_network(network, standalone_config()))
    assert [one.format for one in (*loadable.inputs, *loadable.outputs)] == ["DLA_LINEAR"] * 2


def test_a_loadable_may_change_between_int8_and_fp16_inside():
    network = Network("promoted")
    x = network.add_input("x", DataType.INT8, (1, 8, 6, 6))
    first = convolution(network, x, "c")
    second = activation(network, first, "s", ActivationType.SIGMOID)
    y = convolution(network, second, "y")
    network.mark_output(y)
    for tensor in (x, first, second, y):
        tensor.dynamic_range = (-3, 3)
    y.producer.set_output_type(0, DataType.INT8)
    for tensor in (x, y):
        tensor.allowed_formats = frozenset({"CHW32"})
    found = assess(network, standalone_config(BuilderFlag.INT8))
    assert {one.precision for one in found.layers} == {DataType.INT8, DataType.HALF}
    assert (found.can_be_built, found.reformats) == (True, [])


def without_direct_io(network, config):
    config.clear_flag(BuilderFlag.DIRECT_IO)


def with_fallback(network, config):
    config.set_flag(BuilderFlag.GPU_FALLBACK)


def without_precision(network, config):
    config.clear_flag(BuilderFlag.FP16)


def without_formats(network, config):
    network.inputs[0].allowed_formats = None


def with_a_strange_format(network, config):
    network.outputs[0].allowed_formats = frozenset({"DLA_HWC4"})


def with_another_type(network, config):
    network.inputs[0].dtype = DataType.FLOAT


def on_the_gpu(network, config):
    config.default_device_type = DeviceType.GPU


def with_a_layer_elsewhere(network, config):
    config.set_device_type(network.layers[-1], DeviceType.GPU)


def with_a_constant_left(network, config):
    network.add_constant((1,), [1.0])


def with_an_open_shape(network, config):
    network.inputs[0].shape = (-1, 8, 6, 6)


@pytest.mark.parametrize(
    ("change", "rule", "found"),
    [
        (without_direct_io, "direct_io", "DIRECT_IO is off"),
        (with_fallback, "fallback", "fallback to GPU"),
        (without_precision, "precision", "neither FP16 nor INT8"),
        (without_formats, "formats", "tensor 'x' sets none of CHW16"),
        (with_a_strange_format, "formats", "DLA_HWC4 of tensor 'y', where CHW16, DLA_LINEAR are possible"),
        (with_another_type, "formats", "tensor 'x' is FP32, where FP16, INT8 are possible"),
        (on_the_gpu, "device", "default device GPU, which does not support loadables"),
        (with_a_layer_elsewhere, "device", "GPU for layer 'y'"),
        (with_a_constant_left, "left_over_constants", "constant"),
        (with_an_open_shape, "fixed_shapes", "input 'x' (-1, 8, 6, 6)"),
    ],
)
def test_each_rule_is_told_by_its_id_with_what_was_found(change, rule, found):
    network, config = standalone_network(), standalone_config()
    change(network, config)
    words = refused(network, config)
    assert f"[standalone.{rule}]" in words
    assert found in words


@pytest.mark.parametrize(("name", "meant"), [("CHW99", "CHW"), ("HWC4", "DLA_HWC4")])
def test_a_format_that_does_not_exist_is_refused_with_the_closest_name(name, meant):
    with pytest.raises(UnknownNameError, match=f"Did you mean '{meant}"):
        standalone_network(formats=[name])


def test_the_end_of_a_name_is_enough_to_guess_it():
    assert "Did you mean 'DLA_HWC4'?" in str(UnknownNameError("tensor format", "HWC4", ["HWC", "HWC8", "DLA_HWC4"]))


def test_formats_are_not_told_of_a_device_without_loadables():
    network, config = standalone_network(formats=None), standalone_config()
    on_the_gpu(network, config)
    words = refused(network, config)
    assert "[standalone.device]" in words
    assert "[standalone.formats]" not in words


def test_the_rules_hold_for_standalone_loadables_only():
    network, config = standalone_network(formats=None), standalone_config(BuilderFlag.GPU_FALLBACK)
    config.engine_capability = EngineCapability.STANDARD
    assert assess(network, config).can_be_built


def test_all_that_is_broken_is_told_at_once():
    network = standalone_network(formats=None)
    words = refused(network, standalone_config(BuilderFlag.GPU_FALLBACK))
    assert "[standalone.fallback]" in words
    assert "[standalone.formats]" in words


def test_a_layer_that_the_dla_refuses_is_told_with_its_rules():
    network = Network("refused")
    network.mark_output(elu(network, network.add_input("x", DataType.HALF, (1, 8, 6, 6)), "e"))
    for tensor in (*network.inputs, *network.outputs):
        tensor.allowed_formats = frozenset({"CHW16"})
    words = refused(network, standalone_config(), PlacementError)
    assert "'e' cannot run on DLA" in words
    assert "has no fallback: change the listed layers" in words


def test_an_input_in_another_type_than_is_computed_in_would_need_a_copy():
    network = Network("int8")
    x = network.add_input("x", DataType.INT8, (1, 8, 6, 6))
    x.dynamic_range = (-1.0, 1.0)
    network.mark_output(convolution(network, x, "c"))
    network.layers[0].set_output_type(0, DataType.HALF)
    x.allowed_formats, network.outputs[0].allowed_formats = frozenset({"CHW32"}), frozenset({"CHW16"})
    words = refused(network, standalone_config(), BuildError)
    assert f"[{NO_REFORMATS.id};" in words
    assert "tensor 'x' needs one" in words


def test_two_batches_are_two_loadables_and_refused():
    network = Network("two")
    outputs = []
    for name, batch in (("a", 1), ("b", 2)):
        x = network.add_input(f"{name}_in", DataType.HALF, (batch, 8, 6, 6))
        outputs.append(convolution(network, x, name))
        network.mark_output(outputs[-1])
    for tensor in (*network.inputs, *network.outputs):
        tensor.allowed_formats = frozenset({"CHW16"})
    network.layers[-1].set_output_type(0, DataType.HALF)
    network.layers[0].set_output_type(0, DataType.HALF)
    words = refused(network, standalone_config(), BuildError)
    assert f"[{ONE_LOADABLE.id};" in words
    assert "2 segments (2 on DLA)" in words


def test_a_standalone_loadable_is_no_engine():
    with pytest.raises(
        BuildError, match="With the engine capability DLA_STANDALONE, a build produces a loadable, not an engine"
    ):
        Builder().build_engine(standalone_network(), standalone_config())


def test_every_rule_has_a_source_and_a_remedy():
    rules = (*STANDALONE_RULES, *STANDALONE_OUTCOMES)
    assert all(rule.source and rule.remedy and rule.id.startswith("standalone.") for rule in rules)

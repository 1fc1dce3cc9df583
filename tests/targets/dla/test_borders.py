"""The rules on layers that read an input of the network or write an output."""

import pytest
from tests.targets.dla.questions import (
    activation,
    config,
    convolution,
    network_with,
    pooling,
    verdict,
    violated,
    with_ranges,
    zeros,
)

from dryfit.builder.config.builder_config import BuilderFlag, EngineCapability
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType


def test_an_inner_tensor_that_is_an_output_is_a_warning_and_no_refusal():
    layer = activation()
    layer.network.mark_output(layer.get_output(0))
    assert verdict(layer).warnings == ()
    layer.network.add_activation(layer.get_output(0), ActivationType.RELU)
    answer = verdict(layer)
    assert answer.supported
    assert [one.rule for one in answer.warnings] == ["dla.inner_output"]


@pytest.mark.parametrize(("channels", "allowed"), [(1, True), (2, False), (3, True), (4, True), (5, False)])
def test_an_hwc4_input_has_one_three_or_four_channels(channels, allowed):
    layer = convolution((1, channels, 16, 16))
    layer.get_input(0).allowed_formats = frozenset({"DLA_HWC4"})
    assert violated(layer) == ([] if allowed else ["formats.hwc4_input"])


def test_an_hwc4_input_goes_to_convolutions_only():
    layer = pooling((1, 3, 16, 16))
    layer.get_input(0).allowed_formats = frozenset({"DLA_HWC4"})
    assert violated(layer) == ["formats.hwc4_input"]
    layer.get_input(0).allowed_formats = frozenset({"DLA_HWC4", "CHW16"})
    assert violated(layer) == []


def test_an_output_is_never_hwc4():
    layer = activation(shape=(1, 3, 8, 8))
    layer.network.mark_output(layer.get_output(0))
    layer.get_output(0).allowed_formats = frozenset({"DLA_HWC4"})
    assert violated(layer) == ["formats.hwc4_output"]


def image_convolution(dtype):
    network, x = network_with((1, 3, 16, 16), dtype)
    layer = network.add_convolution_nd(x, 8, (3, 3), zeros(8, 3, 3, 3))
    x.allowed_formats = frozenset({"DLA_HWC4"})
    return with_ranges(layer)


@pytest.mark.parametrize(
    ("dtype", "flags", "allowed"),
    [
        (DataType.INT8, ("INT8", "FP16"), True),
        (DataType.INT8, ("FP16",), False),
        (DataType.HALF, ("FP16",), True),
        (DataType.HALF, ("INT8",), False),
        (DataType.FLOAT, ("FP16",), True),
        (DataType.FLOAT, ("INT8",), True),
    ],
)
def test_an_hwc4_input_has_the_type_of_the_convolution(dtype, flags, allowed):
    layer = image_convolution(dtype)
    assert violated(layer, flags=flags) == ([] if allowed else ["formats.hwc4_type"])
    for one in verdict(layer, flags=flags).violations:
        expected = ("input type", f"{dtype.text} for 'x'", "FP16" if "FP16" in flags else "INT8")
        assert (one.parameter, one.actual, one.allowed) == expected


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        (None, None),
        ({"CHW16"}, None),
        ({"LINEAR", "CHW16"}, None),
        ({"LINEAR"}, "allowed formats must be CHW16 or DLA_HWC4 or DLA_LINEAR (found 'x': LINEAR)"),
        ({"CHW4", "CHW32"}, "allowed formats must be CHW16 or DLA_HWC4 or DLA_LINEAR (found 'x': CHW32, CHW4)"),
    ],
)
def test_formats_of_which_the_dla_reads_none_are_a_warning_of_the_copy(formats, message):
    layer = activation()
    layer.get_input(0).allowed_formats = None if formats is None else frozenset(formats)
    answer = verdict(layer)
    assert answer.supported
    assert [one.message for one in answer.warnings] == ([] if message is None else [message])
    assert [one.rule for one in answer.warnings] == ([] if message is None else ["dla.formats.border"])


def test_an_output_is_warned_of_in_the_formats_that_the_dla_writes():
    layer = activation(shape=(1, 3, 8, 8))
    layer.network.mark_output(layer.get_output(0))
    layer.get_output(0).allowed_formats = frozenset({"LINEAR"})
    assert [one.allowed for one in verdict(layer).warnings] == ["CHW16 or DLA_LINEAR"]


def test_a_planar_input_is_noted_to_be_converted_inside():
    layer = activation()
    layer.get_input(0).allowed_formats = frozenset({"DLA_LINEAR"})
    answer = verdict(layer)
    assert answer.supported
    assert not answer.warnings
    assert [one.rule for one in answer.notes] == ["dla.formats.planar"]
    assert "one more pass than with CHW16" in answer.notes[0].message
    layer.get_input(0).allowed_formats = frozenset({"DLA_LINEAR", "CHW16"})
    assert not verdict(layer).notes


def warned(layer, one):
    return [found.rule.removeprefix("dla.") for found in one.can_run_on(layer, "DLA").warnings]


def test_a_standalone_loadable_warns_of_missing_direct_io_and_formats():
    layer, one = activation(), config()
    layer.network.mark_output(layer.get_output(0))
    assert warned(layer, one) == []
    one.engine_capability = EngineCapability.DLA_STANDALONE
    answer = one.can_run_on(layer, "DLA")
    assert answer.supported
    assert warned(layer, one) == ["standalone.direct_io", "standalone.formats"]
    assert answer.warnings[0].actual == "without DIRECT_IO"
    assert answer.warnings[1].actual == f"'x': all; '{layer.get_output(0).name}': all"
    one.set_flag(BuilderFlag.DIRECT_IO)
    layer.get_input(0).allowed_formats = frozenset({"CHW16", "DLA_LINEAR"})
    assert warned(layer, one) == ["standalone.formats"]
    layer.get_output(0).allowed_formats = frozenset({"CHW32"})
    found = one.can_run_on(layer, "DLA").warnings[0]
    assert (found.actual, found.allowed) == (f"'{layer.get_output(0).name}': CHW32", "CHW16 or DLA_LINEAR")
    layer.get_output(0).allowed_formats = frozenset({"CHW16"})
    assert warned(layer, one) == []


def test_a_layer_inside_a_standalone_loadable_is_not_asked_for_formats():
    layer, one = activation(), config()
    inner = layer.network.add_activation(layer.get_output(0), ActivationType.RELU)
    last = layer.network.add_activation(inner.get_output(0), ActivationType.RELU)
    layer.network.mark_output(last.get_output(0))
    one.engine_capability = EngineCapability.DLA_STANDALONE
    assert warned(inner, one) == []
    assert warned(last, one) == ["standalone.direct_io", "standalone.formats"]

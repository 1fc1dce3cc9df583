"""The arithmetic of an engine or a placement, as answers have it."""

from __future__ import annotations

import pytest

from dryfit.answers.arithmetic import arithmetic_blocks, arithmetic_of, plan_arithmetic
from dryfit.answers.placement import LayerAnswer, placement_of
from dryfit.answers.text import plain_text
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.network import Network


def softmax_plan(shape):
    network = Network()
    layer = network.add_softmax(network.add_input("x", DataType.FLOAT, shape))
    layer.name = "softmax"
    network.mark_output(layer.get_output(0))
    builder = Builder()
    config = builder.create_builder_config()
    config.default_device_type = "DLA"
    config.allow_fallback("GPU")
    config.set_flag(BuilderFlag.FP16)
    return builder.build_plan(network, config)


def layer(kind, device, segment, precision):
    return LayerAnswer("x", kind, (), device, segment, precision, "", {})


@pytest.mark.parametrize(("shape", "is_approximated"), [((1, 16, 2, 2), True), ((1, 16, 1, 1), False)])
def test_an_engine_names_the_layers_that_are_approximated(shape, is_approximated):
    found = plan_arithmetic(softmax_plan(shape))
    (entry,) = found
    assert (entry.device, entry.precision, entry.layers) == ("DLA", "HALF", 1)
    assert [one.layers for one in entry.approximations] == ([["softmax"]] if is_approximated else [])
    printed = plain_text(arithmetic_blocks(found))
    assert "DLA 10.16" in " ".join(printed.split())
    assert ("softmax: Softmax where C, H or W" in printed) is is_approximated


def test_a_placement_names_the_layers_of_the_kinds_that_may_be():
    plan = softmax_plan((1, 16, 1, 1))
    (entry,) = arithmetic_of(placement_of("model", plan, plan.settings).layers, plan.settings)
    assert [one.layers for one in entry.approximations] == [["softmax"]]


def test_a_device_whose_package_is_not_installed_has_no_entry():
    assert arithmetic_of([layer("softmax", "GONE", 0, "HALF")], {"software": {}}) == []


def test_layers_without_a_segment_or_a_device_have_no_arithmetic():
    layers = [layer("shape", "CPU", None, "INT64"), layer("convolution", None, None, "HALF")]
    assert arithmetic_of(layers, {"software": {}}) == []


def test_what_a_quantize_method_computes_is_not_in_the_arithmetic_of_its_device():
    kinds = ("quantized_operator", "convolution", "quantized_operator")
    (entry,) = arithmetic_of([layer(kind, "CPU", 0, "INT8") for kind in kinds], {"software": {}})
    assert entry.layers == 1

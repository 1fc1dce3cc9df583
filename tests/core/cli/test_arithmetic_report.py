"""The arithmetic of an engine or a placement, as reports tell it."""

from __future__ import annotations

import jsonschema
import pytest

from dryfit.answers.json_data import plain
from dryfit.answers.placement import placement_of
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.cli.arithmetic_report import ARITHMETIC_SCHEMA, arithmetic_report, plan_arithmetic, print_arithmetic
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


@pytest.mark.parametrize(("shape", "is_approximated"), [((1, 16, 2, 2), True), ((1, 16, 1, 1), False)])
def test_an_engine_names_the_layers_that_are_approximated(shape, is_approximated, capsys):
    report = plan_arithmetic(softmax_plan(shape))
    jsonschema.validate(report, ARITHMETIC_SCHEMA)
    (entry,) = report
    assert (entry["device"], entry["precision"], entry["layers"]) == ("DLA", "HALF", 1)
    assert [one["layers"] for one in entry["approximations"]] == ([["softmax"]] if is_approximated else [])
    print_arithmetic(report)
    printed = capsys.readouterr().out
    assert "DLA 10.16" in printed
    assert ("softmax: Softmax with an extent" in printed) is is_approximated


def test_a_placement_names_the_layers_of_the_kinds_that_may_be():
    plan = softmax_plan((1, 16, 1, 1))
    layers = plain(placement_of("model", plan, plan.settings).layers)
    (entry,) = arithmetic_report(layers, plan.settings)
    assert [one["layers"] for one in entry["approximations"]] == [["softmax"]]


def test_a_device_whose_package_is_not_installed_has_no_entry():
    layers = [{"name": "x", "kind": "softmax", "device": "GONE", "segment": 0, "precision": "HALF"}]
    assert arithmetic_report(layers, {"software": {}}) == []


def test_layers_without_a_segment_or_a_device_have_no_arithmetic():
    layers = [
        {"name": "x", "kind": "shape", "device": "CPU", "segment": None, "precision": "INT64"},
        {"name": "y", "kind": "convolution", "device": None, "segment": None, "precision": "HALF"},
    ]
    assert arithmetic_report(layers, {"software": {}}) == []


def test_what_a_quantize_method_computes_is_not_in_the_arithmetic_of_its_device():
    kinds = ("quantized_operator", "convolution", "quantized_operator")
    layers = [{"name": "x", "kind": kind, "device": "CPU", "segment": 0, "precision": "INT8"} for kind in kinds]
    (entry,) = arithmetic_report(layers, {"software": {}})
    assert entry["layers"] == 1

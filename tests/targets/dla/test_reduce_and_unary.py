"""The rules on reductions, unary layers, local response normalization and parametric ReLU that are functions."""

import pytest
from tests.targets.dla.questions import (
    lrn,
    network_with,
    one_violation,
    parametric_relu,
    reduction,
    unary,
    verdict,
    violated,
    with_ranges,
)

from dryfit.network.data_types import DataType

INT8 = ("INT8", "FP16")


@pytest.mark.parametrize(("axes", "allowed"), [((1,), True), ((2, 3), True), ((1, 2, 3), True), ((0,), False)])
def test_a_maximum_is_over_any_of_c_h_and_w(axes, allowed):
    layer = reduction(axes=axes)
    assert violated(layer) == ([] if allowed else ["reduce.axes"])
    assert all(
        (one.parameter, one.actual, one.allowed) == ("axes", "0 of rank 4", "1 to 3")
        for one in verdict(layer).violations
    )


def test_an_average_is_refused_with_the_way_to_pool_it():
    found = one_violation(verdict(reduction("AVG")))
    assert (found.parameter, found.actual, found.allowed) == ("op", "AVG", "MAX")
    assert "average-pool-cascade" in found.remedy


@pytest.mark.parametrize(
    ("platform", "software", "rules"),
    [
        ("orin", "8.6.12", []),
        ("orin", "10.3", []),
        ("orin", "8.6.11", ["reduce.software"]),
        ("xavier", "8.5", ["reduce.platform"]),
    ],
)
def test_the_maximum_came_to_orin_with_8_6_12(platform, software, rules):
    assert violated(reduction(), platform=platform, software=software) == rules


def test_the_version_that_is_too_old_is_told():
    found = one_violation(verdict(reduction(), software="8.6.2"))
    assert (found.parameter, found.actual, found.allowed) == ("software version", "8.6.2", "8.6.12 or newer")


@pytest.mark.parametrize(
    ("op", "platform", "software", "rules"),
    [
        ("ABS", "xavier", "8.2", ["unary.software"]),
        ("ABS", "xavier", "8.4", []),
        ("ABS", "orin", "8.4", []),
        ("SIN", "xavier", "8.5", ["unary.operation_xavier"]),
        ("COS", "orin", "8.6.11", ["unary.operation_8_6_11"]),
        ("ATAN", "orin", "8.6.12", []),
        ("EXP", "orin", "10.3", ["unary.operation"]),
    ],
)
def test_unary_operations_depend_on_platform_and_software(op, platform, software, rules):
    assert violated(with_ranges(unary(op)), platform=platform, software=software, flags=INT8) == rules


def test_a_sine_takes_int8_only_and_an_absolute_value_both():
    found = one_violation(verdict(unary("SIN")))
    assert found.rule == "dla.unary.int8"
    assert (found.parameter, found.actual, found.allowed) == ("input type", "FP16", "INT8")
    assert violated(with_ranges(unary("SIN")), flags=INT8) == []
    assert violated(unary("ABS")) == []


def test_a_window_of_even_size_is_refused():
    found = one_violation(verdict(lrn(4)))
    assert (found.parameter, found.actual, found.allowed) == ("window_size", "4", "3, 5, 7, 9")


def test_computed_slopes_are_refused_by_name():
    network, x = network_with((1, 16, 8, 8))
    layer = network.add_parametric_relu(x, network.add_input("slopes", DataType.FLOAT, (1, 16, 1, 1)))
    found = one_violation(verdict(layer))
    assert (found.rule, found.actual) == ("dla.parametric_relu.slopes", "computed: 'slopes'")
    assert violated(parametric_relu()) == []


@pytest.mark.parametrize(("software", "allowed"), [("8.2", False), ("8.4", True), ("8.5", True)])
def test_parametric_relu_came_with_8_4(software, allowed):
    found = violated(parametric_relu(), platform="xavier", software=software)
    assert found == ([] if allowed else ["parametric_relu.software"])

"""The rules on concatenation, scale, activation and softmax layers that are functions."""

import numpy as np
import pytest
from tests.targets.dla.questions import (
    activation,
    concatenation,
    network_with,
    one_violation,
    scale,
    softmax,
    verdict,
    violated,
    with_ranges,
)

from dryfit.network.data_types import DataType
from dryfit.network.layers.movement import Concatenation

INT8 = ("INT8", "FP16")


@pytest.mark.parametrize(("axis", "allowed"), [(0, False), (1, True), (2, False), (3, False)])
def test_tensors_are_joined_along_channels(axis, allowed):
    answer = verdict(concatenation(axis=axis))
    assert [one.rule for one in answer.violations] == ([] if allowed else ["dla.concatenation.axis"])
    assert all(
        (one.parameter, one.actual, one.allowed) == ("axis", f"{axis} of rank 4", "1") for one in answer.violations
    )


def test_tensors_that_are_joined_have_equal_height_and_width():
    network, x = network_with()
    y = network.add_input("y", DataType.FLOAT, (1, 16, 9, 16))
    found = verdict(network.add_layer(Concatenation(axis=2), [x, y])).violations
    assert [one.rule for one in found] == ["dla.concatenation.axis", "dla.concatenation.spatial"]
    assert found[1].actual == "(1, 16, 16, 16), (1, 16, 9, 16)"


def test_tensors_that_are_joined_in_int8_have_one_range():
    layer = concatenation()
    assert violated(with_ranges(layer), flags=INT8) == []
    assert violated(with_ranges(layer, x1=3.0), flags=INT8) == ["concatenation.ranges"]
    assert violated(with_ranges(layer, output=3.0), flags=INT8) == ["concatenation.ranges"]


def test_a_power_other_than_one_is_refused():
    assert violated(scale(power=np.ones(16, np.float32))) == []
    assert violated(scale(power=np.array([], np.float32))) == []
    found = one_violation(verdict(scale(power=np.linspace(1, 2, 16, dtype=np.float32))))
    assert (found.rule, found.actual) == ("dla.scale.power", "1 to 2")


def test_scales_are_along_the_channels():
    assert violated(scale(channel_axis=2)) == ["scale.channel_axis"]
    assert violated(scale("UNIFORM", channel_axis=2)) == []


def test_relu6_runs_and_a_clip_below_one_does_not():
    assert violated(activation("CLIP", beta=6.0)) == []
    found = one_violation(verdict(activation("CLIP", beta=0.5)))
    assert (found.parameter, found.actual, found.allowed) == ("beta", "0.5", "1 to 127")
    assert violated(activation("CLIP", alpha=-1.0, beta=1.0)) == ["activation.clip_lower"]


def test_softmax_is_for_orin():
    assert violated(softmax()) == []
    found = one_violation(verdict(softmax(), platform="xavier-nx"))
    assert (found.rule, found.actual, found.allowed) == ("dla.softmax.platform", "xavier", "orin")


def test_softmax_over_the_batch_is_refused():
    assert violated(softmax((4, 16, 1, 1), axis=0)) == ["softmax.axis"]


def test_a_long_softmax_runs_in_the_accurate_mode_only():
    assert violated(softmax((1, 8192, 1, 1))) == []
    assert verdict(softmax((1, 8192, 1, 1))).warnings == ()
    assert violated(softmax((1, 1025, 2, 1))) == ["softmax.optimized_axis"]


def test_the_optimized_softmax_warns_of_its_errors():
    answer = verdict(softmax((1, 16, 8, 8)))
    assert answer.supported
    assert [one.rule for one in answer.warnings] == ["dla.softmax.approximation"]


@pytest.mark.parametrize(
    ("shape", "rules"),
    [
        ((1, 16, 1, 1), []),
        ((1, 16, 2, 1), ["softmax.accurate_8_4"]),
        ((2, 16, 1, 1), ["softmax.batch_8_4"]),
    ],
)
def test_softmax_of_8_4_is_accurate_and_for_one_image(shape, rules):
    assert violated(softmax(shape), software="8.4") == rules
    assert violated(softmax(shape), software="8.5") == []

"""What the device does with a layer by itself is noted, and refuses nothing."""

import pytest
from tests.targets.dla.questions import (
    activation,
    convolution,
    elementwise,
    fully_connected,
    lrn,
    noted,
    softmax,
    verdict,
    with_ranges,
)

INT8 = {"flags": ("INT8", "FP16")}


@pytest.mark.parametrize(
    ("layer", "rule"),
    [
        (activation("SIGMOID"), "activation.int8_promotion"),
        (activation("TANH"), "activation.int8_promotion"),
        (activation("RELU"), None),
        (lrn(), "lrn.int8_promotion"),
        (softmax(), "softmax.int8_promotion"),
    ],
)
def test_some_int8_layers_are_computed_in_fp16(layer, rule):
    with_ranges(layer)
    assert noted(layer, **INT8) == ([rule] if rule else [])
    assert noted(layer) == []
    answer = verdict(layer, **INT8)
    assert answer.supported
    assert answer.precision.name == ("HALF" if rule else "INT8")
    assert [one.message for one in answer.notes] == (
        [f"{layer.kind} runs in FP16 although INT8 was requested"] if rule else []
    )


@pytest.mark.parametrize("make", [convolution, fully_connected])
def test_an_fp16_convolution_is_slower_on_orin(make):
    layer = with_ranges(make())
    assert noted(layer) == [f"{layer.kind}.fp16_on_orin"]
    assert noted(layer, platform="xavier") == []
    assert noted(layer, **INT8) == []
    assert verdict(layer).notes[0].message == "in FP16 it can take up to twice as long on Orin"


def test_a_comparison_may_fail_to_compile():
    warnings = verdict(with_ranges(elementwise("LESS")), **INT8).warnings
    assert [one.rule for one in warnings] == ["dla.elementwise.comparison_risk"]
    assert warnings[0].message == "a loadable with LESS may fail to compile"
    assert verdict(with_ranges(elementwise("SUM")), **INT8).warnings == ()

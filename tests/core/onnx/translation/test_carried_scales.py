"""Scales carry over to other tensors only where that changes nothing, and none is made up."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model
from tests.core.onnx.translation.quantized_models import NOWHERE, named, pair, scalars

from dryfit.errors import CalibrationError
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.translation.carried_scales import CarriedScales, UnequalScales, carried_scales
from dryfit.onnx.translation.implicit_model import ImplicitPolicy, implicit_model
from dryfit.onnx.translation.plain_model import plain_model

POOL = "MaxPool<kernel_shape = [2, 2]>"
IMAGE = "float[1,2,4,4] x"


def carried(
    body: str,
    outputs: str,
    unequal: UnequalScales = UnequalScales.LARGEST,
    inputs: str = IMAGE,
    **scales: float,
) -> CarriedScales:
    """The scales of a Q/DQ model."""
    parsed = named(model(body, inputs=inputs, outputs=outputs, weights=scalars(**scales)))
    plain = plain_model(parsed, NOWHERE)
    return carried_scales(network_from_onnx(plain.model), plain.scales, plain.dequantized, unequal=unequal)


def told(found: CarriedScales, tensor: str) -> tuple[float | None, str, str, str]:
    """(scale, origin, source, rule) of a tensor."""
    one = found.entries[tensor]
    return one.scale, one.origin.value, one.source, one.rule


def test_a_scale_goes_forward_over_layers_that_move_or_pick_values() -> None:
    found = carried(f"{pair('x', 'a', 's')} b = {POOL}(a) c = Flatten(b) y = Exp(c)", "float[1,18] y", s=0.5)
    assert told(found, "b") == (0.5, "propagated", "x", "pooling")
    assert told(found, "c") == (0.5, "propagated", "b", "shuffle")
    assert told(found, "y") == (None, "missing", "", "")
    assert found.on_grid == {"b", "c"}


def test_an_output_that_was_left_real_gets_no_scale() -> None:
    found = carried(f"{pair('x', 'a', 's')} y = {POOL}(a)", "float[1,2,3,3] y", s=0.5)
    assert told(found, "y") == (None, "missing", "", "")


def test_a_reader_of_real_values_carries_no_scale_forward() -> None:
    found = carried(
        f"{pair('x', 'a', 's')} b = Exp(a) c = {POOL}(x) d = Exp(c) e = {POOL}(b) y = Add(d, e)",
        "float[1,2,3,3] y",
        s=0.5,
    )
    assert told(found, "c") == (None, "missing", "", "")


@pytest.mark.parametrize("operator", ["Relu", "Clip(six)", POOL])
def test_a_scale_goes_backward_over_layers_after_which_rounding_is_the_same(operator: str) -> None:
    body = operator.replace("(six)", "") + ("(a, z0, six)" if "six" in operator else "(a)")
    shape = "[1,2,3,3]" if operator == POOL else "[1,2,4,4]"
    parsed = named(
        model(
            f"a = Exp(x) b = {body} {pair('b', 'c', 's')} y = Exp(c)",
            inputs=IMAGE,
            outputs=f"float{shape} y",
            weights={**scalars(s=0.5), "z0": np.float32([0])[0].reshape(()), "six": np.array(6, np.float32)},
        )
    )
    plain = plain_model(parsed, NOWHERE)
    found = carried_scales(network_from_onnx(plain.model), plain.scales, plain.dequantized)
    assert told(found, "a")[:3] == (0.5, "propagated", "b")


def test_rounding_before_a_limit_is_rounding_after_it_for_every_code() -> None:
    """The rule that lets a clip carry a scale backward, over ties and values beyond the range."""
    scale = np.float32(0.37)
    x = np.arange(-60, 60, 0.37 / 8, dtype=np.float32)
    for upper in (np.float32(6.0), np.float32(0.37 * 10), np.float32(100)):
        after = np.clip(np.rint(np.clip(x, 0, upper) / scale), -128, 127)
        rounded = np.clip(np.rint(x / scale), -128, 127).astype(np.float32) * scale
        before = np.clip(np.rint(np.clip(rounded, 0, upper) / scale), -128, 127)
        np.testing.assert_array_equal(before, after)


def test_a_scale_does_not_go_backward_to_a_tensor_that_others_read() -> None:
    found = carried(f"a = Exp(x) b = Relu(a) {pair('b', 'c', 's')} d = Exp(c) y = Add(d, a)", "float[1,2,4,4] y", s=0.5)
    assert told(found, "a") == (None, "missing", "", "")


CONCATENATION = (
    f"{pair('x', 'a', 's')} b = Exp(a) {pair('b', 'c', 't')} d = {POOL}(c) e = {POOL}(a) {pair('e', 'f', 'u')} "
    f"g = Concat<axis = 1>(d, f) {pair('g', 'h', 'v')} y = Exp(h)"
)


def test_around_a_concatenation_the_largest_scale_is_taken_and_told() -> None:
    found = carried(CONCATENATION, "float[1,4,3,3] y", s=0.5, t=0.25, u=0.75, v=0.625)
    assert {found.entries[name].scale for name in ("b", "d", "e", "g", "x")} == {0.75}
    assert (found.entries["b"].origin.value, found.entries["b"].stated) == ("shared", 0.25)
    told_conflicts = {(one.tensor, one.scale, one.other_scale) for one in found.conflicts}
    assert told_conflicts >= {("b", 0.25, 0.75), ("g", 0.625, 0.75), ("x", 0.5, 0.75)}
    assert "'b' was quantized by 0.25, and 'e', which shares its scale by concatenation, by 0.75" in "\n".join(
        map(str, found.conflicts)
    )


def test_unequal_scales_may_be_kept() -> None:
    found = carried(CONCATENATION, "float[1,4,3,3] y", UnequalScales.KEEP, s=0.5, t=0.25, u=0.75, v=0.625)
    assert [found.entries[name].scale for name in ("x", "b", "e", "g")] == [0.5, 0.25, 0.75, 0.625]
    assert found.conflicts


def test_unequal_scales_may_be_refused() -> None:
    parsed = named(
        model(CONCATENATION, inputs=IMAGE, outputs="float[1,4,3,3] y", weights=scalars(s=0.5, t=0.25, u=0.75, v=0.625))
    )
    with pytest.raises(CalibrationError, match=r"'b' was quantized by 0\.25"):
        implicit_model(parsed, NOWHERE, ImplicitPolicy(UnequalScales.REFUSE))


def test_equal_scales_around_a_concatenation_are_no_conflict() -> None:
    found = carried(CONCATENATION, "float[1,4,3,3] y", s=0.5, t=0.5, u=0.5, v=0.5)
    assert not found.conflicts
    assert {one.scale for one in found.entries.values()} == {0.5, None}


def test_of_two_quantizations_of_one_tensor_the_larger_counts_and_the_other_is_told() -> None:
    found = carried(
        f"{pair('x', 'a', 's')} {pair('x', 'b', 't')} c = Exp(a) d = Exp(b) y = Add(c, d)",
        "float[1,2,4,4] y",
        s=0.5,
        t=0.25,
    )
    assert found.entries["x"].scale == 0.5
    assert [(one.tensor, one.scale, one.other_scale) for one in found.conflicts] == [("x", 0.25, 0.5)]

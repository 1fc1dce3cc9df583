"""The rules on elementwise layers that are functions."""

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.targets.dla.questions import (
    config,
    elementwise,
    network_with,
    one_violation,
    verdict,
    violated,
    with_ranges,
)

from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit_dla.loadable_file import read_loadable

INT8 = ("INT8", "FP16")


NCHW = (2, 16, 8, 8)


@pytest.mark.parametrize(
    ("b", "allowed"),
    [
        (NCHW, True),
        ((2, 16, 1, 1), True),
        ((2, 1, 1, 1), True),
        ((1, 16, 8, 8), False),
        ((1, 1, 1, 1), False),
        ((2, 1, 8, 8), False),
        ((2, 16, 1, 8), False),
        ((2, 16, 8, 1), False),
    ],
)
def test_broadcasting_has_three_shapes_for_either_operand(b, allowed):
    for layer in (elementwise(a=NCHW, b=b), elementwise(a=b, b=NCHW)):
        assert violated(layer) == ([] if allowed else ["elementwise.broadcast"])
    found = verdict(elementwise(a=NCHW, b=b)).violations
    assert all(str(b) in one.actual and "(2, 16, 1, 1)" in one.allowed for one in found)


def test_two_operands_that_both_broadcast_are_refused():
    assert violated(elementwise(a=(2, 1, 8, 8), b=(2, 16, 1, 1))) == ["elementwise.broadcast"]


def test_a_division_in_fp16_is_refused_and_in_int8_it_runs():
    layer = elementwise("DIV")
    assert violated(layer) == ["elementwise.div_types"]
    assert violated(with_ranges(layer), flags=INT8) == []


def test_a_constant_divisor_has_one_value_and_an_int8_dividend():
    uniform = elementwise("DIV", b=(1, 16, 1, 1), constant=np.full((1, 16, 1, 1), 3.0))
    assert violated(with_ranges(uniform), flags=INT8) == []
    found = one_violation(verdict(uniform))
    assert found.rule == "dla.elementwise.div_constant"
    assert "'x': FP16" in found.actual
    different = elementwise("DIV", b=(1, 16, 1, 1), constant=np.arange(1, 17).reshape(1, 16, 1, 1))
    found = one_violation(verdict(with_ranges(different), flags=INT8))
    assert found.rule == "dla.elementwise.div_constant"
    assert "different values in" in found.actual


def test_a_power_has_a_constant_of_one_value_and_an_int8_tensor():
    layer = elementwise("POW", b=(1, 1, 1, 1), constant=np.full((1, 1, 1, 1), 2.0))
    assert violated(with_ranges(layer), flags=INT8) == []
    assert violated(layer) == ["elementwise.pow_operands"]
    assert violated(with_ranges(elementwise("POW")), flags=INT8) == ["elementwise.pow_operands"]


@pytest.mark.parametrize(
    ("platform", "software", "rule"),
    [
        ("orin", "8.6.12", None),
        ("orin", "10.3", None),
        ("orin", "8.6.11", "elementwise.operation_8_6_11"),
        ("orin", "8.6.2", "elementwise.operation_8_6_11"),
        ("orin", "8.5", "elementwise.operation_8_6_11"),
        ("xavier", "8.5", "elementwise.operation_xavier"),
    ],
)
def test_division_came_to_orin_with_8_6_12(platform, software, rule):
    layer = with_ranges(elementwise("DIV"))
    assert violated(layer, platform=platform, software=software, flags=INT8) == ([rule] if rule else [])


def comparison(op="GREATER", *, tail="cast", to_type=DataType.HALF):
    """A comparison and the cast, or the identity with an output type, behind it."""
    layer = elementwise(op, b=(1, 1, 1, 1), constant=np.full((1, 1, 1, 1), 0.5))
    with_ranges(layer)
    layer.precision = DataType.INT8
    if tail is None:
        return layer, None
    if tail == "cast":
        cast = layer.network.add_cast(layer.get_output(0), to_type)
    else:
        cast = layer.network.add_identity(layer.get_output(0))
        cast.set_output_type(0, to_type)
    cast.precision = DataType.INT8
    return layer, cast


def on_the_dla(*layers):
    one = config(flags=INT8)
    for layer in layers:
        one.set_device_type(layer, "DLA")
    return one


CONSUMER, FOLLOWS = "dla.elementwise.comparison_consumer", "dla.cast.follows_comparison"


@pytest.mark.parametrize("op", ["EQUAL", "GREATER", "LESS"])
@pytest.mark.parametrize("tail", ["cast", "identity"])
@pytest.mark.parametrize("to_type", [DataType.HALF, DataType.INT8])
def test_a_comparison_and_the_cast_behind_it_run_when_both_are_put_on_the_dla(op, tail, to_type):
    layer, cast = comparison(op, tail=tail, to_type=to_type)
    one = on_the_dla()
    assert [v.rule for v in one.can_run_on(layer, "DLA").violations] == [CONSUMER]
    assert [v.rule for v in one.can_run_on(cast, "DLA").violations] == [FOLLOWS]
    one = on_the_dla(layer, cast)
    assert one.can_run_on(layer, "DLA").violations == ()
    assert one.can_run_on(cast, "DLA").violations == ()
    assert one.can_run_on_DLA(layer)
    assert one.can_run_on_DLA(cast)


def lacking(change):
    layer, cast = comparison(to_type=DataType.FLOAT if change == "type" else DataType.HALF)
    if change == "precision of the cast":
        cast.reset_precision()
    if change == "precision of the comparison":
        layer.reset_precision()
    put = {"device of the cast": [layer], "device of the comparison": [cast]}.get(change, [layer, cast])
    if change == "output format of the cast":
        layer.network.mark_output(cast.get_output(0))
        cast.get_output(0).allowed_formats = frozenset({"DLA_HWC4"})
    if change == "constant of the comparison":
        layer.network.layers[0].weights = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 16, 1, 1)
        layer.network.layers[0].shape = (1, 16, 1, 1)
    return layer, cast, put


@pytest.mark.parametrize(
    "change",
    [
        "type",
        "precision of the cast",
        "precision of the comparison",
        "device of the cast",
        "device of the comparison",
        "output format of the cast",
        "constant of the comparison",
    ],
)
def test_a_comparison_and_its_cast_run_on_the_dla_together_or_not_at_all(change):
    layer, cast, put = lacking(change)
    one = on_the_dla(*put)
    assert not one.can_run_on_DLA(layer)
    assert not one.can_run_on_DLA(cast)
    one.allow_gpu_fallback(True)
    if change != "output format of the cast":
        if not layer.network.outputs:
            layer.network.mark_output(cast.get_output(0))
        devices = designed(layer.network, one).assignment.devices
        assert {devices[layer.name], devices[cast.name]} == {"GPU"}


@pytest.mark.parametrize("default", ["DLA", "GPU"])
def test_a_comparison_with_its_cast_is_exported_as_a_loadable(default):
    layer, cast = comparison()
    network = layer.network
    network.mark_output(cast.get_output(0))
    network.inputs[0].dtype = DataType.INT8
    for tensor, formats in ((network.inputs[0], "CHW32"), (network.outputs[0], "CHW16")):
        tensor.allowed_formats = frozenset({formats})
    one = on_the_dla(layer, cast)
    one.default_device_type = default
    loadable = read_loadable(Builder().build_loadables(network, one).files[0])
    codes = np.arange(-64, 64, dtype=np.int8).reshape(1, 16, 8, 1).repeat(8, axis=3)
    (y,) = loadable.create_engine().create_execution_context(1).run({"x": codes}).values()
    np.testing.assert_array_equal(y, (codes > round(0.5 * 127)).astype(np.float16))


@pytest.mark.parametrize("tail", ["cast", "identity"])
def test_a_comparison_with_its_cast_is_one_loadable_that_computes_it(tail):
    layer, cast = comparison(tail=tail)
    network = layer.network
    network.mark_output(cast.get_output(0))
    for tensor, formats in ((network.inputs[0], "CHW32"), (network.outputs[0], "CHW16")):
        tensor.allowed_formats = frozenset({formats})
    one = on_the_dla(layer, cast)
    one.allow_gpu_fallback(True)
    assert set(designed(network, one).assignment.devices.values()) == {"DLA"}
    x = np.linspace(-1, 1, 16 * 64, dtype=np.float32).reshape(1, 16, 8, 8)
    (y,) = Builder().build_engine(network, one).create_execution_context().run({"x": x}).values()
    assert y.dtype == np.float16
    codes, half = np.rint(x * 127), np.rint(0.5 * 127)
    is_clear = np.abs(codes - half) > 1
    np.testing.assert_array_equal(y[is_clear], (codes > half)[is_clear])


def test_a_comparison_needs_int8_and_a_uniform_constant():
    layer, cast = comparison()
    one = on_the_dla(layer, cast)
    layer.precision = None
    found = one_violation(one.can_run_on(layer, "DLA"))
    assert found.rule == "dla.elementwise.comparison_types"
    assert "precision not set" in found.actual


def test_a_comparison_feeds_nothing_but_one_cast():
    one = config(flags=INT8)
    layer, _ = comparison()
    one.set_device_type(layer, "DLA")
    layer.network.add_cast(layer.get_output(0), DataType.HALF)
    assert one_violation(one.can_run_on(layer, "DLA")).actual == "cast, cast"
    alone, _ = comparison(tail=None)
    one.set_device_type(alone, "DLA")
    assert one_violation(one.can_run_on(alone, "DLA")).actual == "none"


def test_a_cast_to_fp32_does_not_end_a_comparison():
    layer, cast = comparison(to_type=DataType.FLOAT)
    one = on_the_dla(layer, cast)
    assert one_violation(one.can_run_on(cast, "DLA")).actual == "FP32 after the cast"
    assert one_violation(one.can_run_on(layer, "DLA")).actual == "FP32 after the cast"


def test_a_cast_elsewhere_is_refused():
    network, x = network_with()
    found = one_violation(verdict(network.add_cast(x, DataType.HALF)))
    assert (found.rule, found.actual) == ("dla.cast.follows_comparison", "network input before it")


def test_xavier_adds_int8_tensors_of_one_range_only():
    layer = with_ranges(elementwise(), y=2.0)
    assert violated(layer, flags=INT8) == []
    found = one_violation(verdict(layer, platform="xavier", flags=INT8))
    assert found.rule == "dla.elementwise.ranges"
    assert found.actual == "'x': 1, 'y': 2"
    assert violated(with_ranges(elementwise()), platform="xavier", flags=INT8) == []

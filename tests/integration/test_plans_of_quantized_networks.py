"""Plans in which operations repeat dequantizations: what may be repeated, and what may not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import dryfit
from dryfit.engine.plan_check import check_plan
from dryfit.errors import EngineFileError


def plan_of_a_shared_dequantization():
    """Two activations that read one dequantization, each quantized again: `a` and `b`."""
    network = dryfit.Network("shared")
    scale = network.add_constant((), np.array(0.1, np.float32)).get_output(0)
    x = network.add_quantize(network.add_input("x", dryfit.DataType.FLOAT, (1, 4)), scale)
    real = network.add_dequantize(x.get_output(0), scale)
    x.name, real.name = "x.q", "x.dq"
    for name in "ab":
        layer = network.add_activation(real.get_output(0), dryfit.ActivationType.RELU)
        quantize = network.add_quantize(layer.get_output(0), scale)
        layer.name, quantize.name = name, f"{name}.q"
        network.mark_output(quantize.get_output(0))
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    return dryfit.Builder().build_engine(network, config).plan


def with_layers(plan, index, layers):
    operations = list(plan.operations)
    operations[index] = attrs.evolve(operations[index], layers=layers)
    return attrs.evolve(plan, operations=operations)


def test_operations_may_repeat_a_dequantization():
    plan = plan_of_a_shared_dequantization()
    assert [list(one.layers) for one in plan.operations] == [["x.q"], ["x.dq", "a", "a.q"], ["x.dq", "b", "b.q"]]
    check_plan(plan)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["x.dq", "a", "a.q", "b", "b.q"], "run only once"),
        (["x.dq", "x.dq", "b", "b.q"], "run only once"),
        (["b", "b.q"], "An operation must run after its inputs are computed"),
        (["b", "x.dq", "b.q"], "An operation must run after its inputs are computed"),
        (["x.dq", "b"], "Every layer must belong to an operation"),
    ],
)
def test_nothing_else_may_be_repeated_left_out_or_mixed(layers, message):
    with pytest.raises(EngineFileError, match=message):
        check_plan(with_layers(plan_of_a_shared_dequantization(), 2, layers))


def test_branches_of_one_dequantization_are_no_chain():
    with pytest.raises(EngineFileError, match="must be a chain"):
        check_plan(with_layers(plan_of_a_shared_dequantization(), 1, ["x.dq", "a", "b", "a.q"]))


def test_a_dequantization_that_nothing_in_the_operation_reads_is_refused():
    plan = plan_of_a_shared_dequantization()
    with pytest.raises(EngineFileError, match="must be a chain") as caught:
        check_plan(with_layers(plan, 0, ["x.dq", "x.q"]))
    assert "x.dq" in str(caught.value)

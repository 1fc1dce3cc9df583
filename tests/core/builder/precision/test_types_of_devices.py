"""A layer runs on a device only in a type that the device's target declares, whoever wrote the target."""

import attrs
import numpy as np
import pytest
from tests.core.testing.acme_npu import TARGET

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.errors import NetworkError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.plugin_function import layer_plugin
from dryfit.target.limits import LimitTable
from dryfit.testing import declared_checks

HALF_ONLY = attrs.evolve(TARGET, precisions=[DataType.HALF], default_precision=DataType.HALF)


def network(dtype=DataType.FLOAT, flags=0):
    made = Network("relu", flags)
    layer = made.add_activation(made.add_input("x", dtype, (1, 8, 4, 4)), ActivationType.RELU)
    layer.name = "r"
    made.mark_output(layer.get_output(0))
    return made


def config(*flags, fallback=True):
    made = BuilderConfig()
    made.default_device_type = "ACME_NPU"
    for flag in flags:
        made.set_flag(flag)
    if fallback:
        made.allow_fallback("CPU")
    return made


def placed(made, settings):
    plan = Builder().build_plan(made, settings)
    (layer,) = plan.layers
    (operation,) = (one for one in plan.operations if "r" in one.source_layers)
    return layer.device, layer.precision, operation.kernel


@pytest.mark.parametrize("flags", [(), (BuilderFlag.FP16,)], ids=["no flag", "FP16"])
def test_a_default_precision_is_used_and_with_it_the_kernel_that_the_target_brings(install, flags):
    install(HALF_ONLY)
    assert placed(network(), config(*flags)) == ("ACME_NPU", DataType.HALF, "acme.relu")


def test_a_default_precision_is_used_though_the_device_also_has_the_type_of_the_network(install):
    install(attrs.evolve(TARGET, default_precision=DataType.HALF))
    assert placed(network(), config()) == ("ACME_NPU", DataType.HALF, "acme.relu")


def test_a_default_precision_does_not_widen_what_the_network_has(install):
    install(TARGET)
    assert placed(network(DataType.HALF), config())[:2] == ("ACME_NPU", DataType.HALF)


def test_formats_of_the_declared_type_are_used(install):
    install(HALF_ONLY)
    plan = Builder().build_plan(network(), config(BuilderFlag.FP16))
    assert {one.destination for one in plan.reformats} & {"ACME_NPU HALF CHW8", "ACME_NPU HALF LINES"}
    assert list(declared_checks.plan_problems(plan, HALF_ONLY)) == []


def test_a_layer_that_asks_for_a_type_of_another_device_is_refused(install):
    install(HALF_ONLY)
    made = network()
    made.layer("r").precision = DataType.FLOAT
    (found,) = config().can_run_on(made.layer("r"), "ACME_NPU").violations
    assert (found.rule, found.actual, found.allowed) == ("acme_npu.precision", "FLOAT", "HALF")
    assert "FP16" in found.remedy
    assert found.source
    assert placed(made, config())[:2] == ("CPU", DataType.FLOAT)


def test_a_strongly_typed_network_of_another_type_is_refused(install):
    install(HALF_ONLY)
    strong = 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED.value
    refused = config().can_run_on(network(flags=strong).layer("r"), "ACME_NPU")
    assert [one.rule for one in refused.violations] == ["acme_npu.precision"]
    assert config().can_run_on(network(DataType.HALF, strong).layer("r"), "ACME_NPU")


def test_a_table_without_rules_has_the_rule_on_types(install):
    table = LimitTable("ACME_NPU", [], supported_kinds={"activation"}, source="a manual")
    assert [one.id for one in table.all_rules] == ["acme_npu.layer.kind"]
    known = install(attrs.evolve(HALF_ONLY)).limits
    assert known.rule("acme_npu.precision").text == "the layer must be computed in FP16"
    assert known is HALF_ONLY.limits


def _copy(x: np.ndarray) -> np.ndarray:
    return x.copy()


@pytest.mark.parametrize(
    ("formats", "device"),
    [
        (None, "CPU"),
        ([[DataType.FLOAT] * 2], "CPU"),
        ([[DataType.FLOAT] * 2, [DataType.HALF] * 2], "ACME_NPU"),
    ],
    ids=["none stated", "FLOAT", "FLOAT or HALF"],
)
def test_a_layer_plugin_runs_on_a_device_whose_types_it_states(install, formats, device):
    limits = attrs.evolve(TARGET.limits, supported_kinds=frozenset({"plugin"}), unsupported={}, precisions=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.core.testing.acme_npu.PLUGIN_LIMITS", limits, raising=False)
        install(attrs.evolve(HALF_ONLY, limits_at="tests.core.testing.acme_npu:PLUGIN_LIMITS"))
        from dryfit.network.plugin_table import register_layer_plugin

        register_layer_plugin(layer_plugin(f"Copy{device}{formats is None}", formats=formats)(_copy))
        made = Network("copy")
        layer = made.add_plugin(
            [made.add_input("x", DataType.FLOAT, (1, 8, 4, 4))], f"Copy{device}{formats is None}", {}
        )
        layer.name = "r"
        made.mark_output(layer.get_output(0))
        (found,) = Builder().build_plan(made, config(BuilderFlag.FP16)).layers
        assert (found.device, found.precision) == (device, DataType.HALF if device == "ACME_NPU" else DataType.FLOAT)


def test_int8_that_is_taken_back_where_the_device_has_nothing_else_is_an_error(install):
    install(attrs.evolve(TARGET, precisions=[DataType.INT8], default_precision=None))
    made = Network("two")
    x = made.add_input("x", DataType.FLOAT, (1, 4, 4, 4))
    first = made.add_convolution_nd(x, 4, (3, 3), np.ones((4, 4, 3, 3), np.float32))
    second = made.add_activation(first.get_output(0), ActivationType.RELU)
    made.mark_output(second.get_output(0))
    x.set_dynamic_range(-1, 1)
    second.get_output(0).set_dynamic_range(-1, 1)
    settings = config(BuilderFlag.INT8)
    settings.set_device_type(second, "CPU")
    # The tensor between both has no scale, and exists only inside a step: on two devices there is no such step.
    with pytest.raises(NetworkError, match=r"(?s)on ACME_NPU \(INT8\) would be computed in FP32.*scale"):
        Builder().build_plan(made, settings)

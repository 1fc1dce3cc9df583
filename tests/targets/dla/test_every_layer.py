"""The rules on every layer."""

import pytest
from tests.targets.dla.questions import (
    activation,
    concatenation,
    config,
    convolution,
    elementwise,
    network_with,
    one_violation,
    pooling,
    scale,
    softmax,
    verdict,
    violated,
    with_ranges,
)

from dryfit.builder.config.builder_config import EngineCapability
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation


def test_a_layer_within_all_limits_can_run():
    for layer in (convolution(), pooling(), activation(), elementwise(), concatenation(), scale(), softmax()):
        answer = verdict(layer)
        assert answer.supported, str(answer)
        assert bool(answer)
        assert (answer.device, answer.platform, answer.layer) == ("DLA", "agx-orin-64", layer.name)


def test_without_a_precision_flag_the_refusal_says_which_flags_help():
    found = one_violation(verdict(activation(), flags=()))
    assert found.rule == "dla.precision"
    assert (found.parameter, found.actual, found.allowed) == ("precision", "FLOAT", "HALF, INT8")
    assert found.message == "precision must be one of FP16, INT8 (found FP32)"
    assert "flag FP16" in found.remedy


def test_int8_without_scales_names_the_tensors_that_lack_them():
    layer = activation()
    found = one_violation(verdict(layer, flags=("INT8",)))
    assert (found.rule, found.allowed) == ("dla.int8.scales", "one for every tensor")
    assert found.actual == f"none for 'x', '{layer.get_output(0).name}'"
    layer.get_input(0).set_dynamic_range(-1, 1)
    assert one_violation(verdict(layer, flags=("INT8",))).actual == f"none for '{layer.get_output(0).name}'"
    assert verdict(layer, flags=("INT8", "FP16")).supported


def test_a_layer_that_asks_for_int8_needs_a_scale_on_every_tensor():
    layer = activation()
    layer.precision = DataType.INT8
    found = one_violation(verdict(layer))
    assert (found.rule, found.allowed) == ("dla.int8.scales", "one for every tensor")
    assert verdict(with_ranges(layer)).supported


def test_assumed_scales_stand_for_missing_ones():
    layer = activation()
    one = config(flags=("INT8",))
    assert not one.can_run_on_DLA(layer)
    one.assume_scales = True
    assert one.can_run_on_DLA(layer)


def test_a_layer_that_asks_for_fp32_cannot_run():
    layer = activation()
    layer.precision = DataType.FLOAT
    assert violated(layer) == ["precision"]


@pytest.mark.parametrize("dtype", [DataType.BF16, DataType.DOUBLE])
def test_a_tensor_of_another_type_is_refused_by_name(dtype):
    found = one_violation(verdict(activation(dtype=dtype)))
    assert found.rule == "dla.types"
    assert f"'x': {dtype.text}" in found.actual


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64, DataType.UINT8])
def test_an_integer_tensor_is_refused(dtype):
    network, x = network_with(dtype=dtype)
    layer = network.add_elementwise(x, x, ElementWiseOperation.SUM)
    assert violated(layer) == ["types"]


@pytest.mark.parametrize("dtype", [DataType.FLOAT, DataType.HALF])
def test_floating_point_tensors_pass(dtype):
    assert violated(activation(dtype=dtype)) == []


def test_an_output_type_that_the_user_asks_for_is_fp16_or_int8():
    layer = activation()
    layer.set_output_type(0, DataType.FLOAT)
    assert violated(layer) == ["output_types"]
    layer.set_output_type(0, DataType.HALF)
    assert violated(layer) == []


def test_a_dynamic_dimension_is_refused_until_every_profile_fixes_it():
    layer = activation(shape=(-1, 16, 8, 8))
    one = config()
    assert [v.rule for v in one.can_run_on(layer, "DLA").violations] == ["dla.dynamic_dimensions"]
    fixed = OptimizationProfile()
    fixed.set_shape("x", *[(4, 16, 8, 8)] * 3)
    one.add_optimization_profile(fixed)
    assert one.can_run_on_DLA(layer)
    ranged = OptimizationProfile()
    ranged.set_shape("x", (1, 16, 8, 8), (4, 16, 8, 8), (4, 16, 8, 8))
    one.add_optimization_profile(ranged)
    assert not one.can_run_on_DLA(layer)


def test_the_shapes_of_a_fixed_profile_are_the_ones_that_are_judged():
    layer = activation(shape=(-1, 16, 8, 8))
    one = config()
    profile = OptimizationProfile()
    profile.set_shape("x", *[(4097, 16, 8, 8)] * 3)
    one.add_optimization_profile(profile)
    found = one_violation(one.can_run_on(layer, "DLA"))
    assert found.rule == "dla.batch"
    assert "4097" in found.actual


def test_the_batch_is_the_product_of_all_axes_before_the_last_three():
    assert violated(concatenation([(64, 64, 3, 8, 8)] * 2)) == []
    found = one_violation(verdict(concatenation([(64, 65, 3, 8, 8)] * 2)))
    assert found.rule == "dla.batch"
    assert "4160 for 'x0' of shape (64, 65, 3, 8, 8)" in found.actual
    assert found.allowed == "each 1 to 4096"


def test_an_extent_past_the_limit_is_shown_with_its_tensor():
    found = one_violation(verdict(pooling((1, 3, 8, 8193), stride_nd=(2, 2))))
    assert found.rule == "dla.extents"
    assert "'x': (1, 3, 8, 8193)" in found.actual
    assert found.allowed == "each 1 to 8192"
    assert "General Restrictions" in found.source


def test_a_platform_without_a_dla_refuses_every_layer():
    found = one_violation(verdict(activation(), platform="orin-nano"))
    assert (found.rule, found.actual) == ("dla.platform.cores", "0 on orin-nano")


def test_a_safety_engine_has_no_dla():
    layer, one = activation(), config()
    one.engine_capability = EngineCapability.SAFETY
    assert [v.rule for v in one.can_run_on(layer, "DLA").violations] == ["dla.engine_capability"]
    one.engine_capability = EngineCapability.DLA_STANDALONE
    assert one.can_run_on_DLA(layer)


def test_all_rules_that_fail_are_told_not_only_the_first():
    layer = convolution((1, 16, 64, 64), kernel=(33, 3), stride_nd=(9, 1), pre_padding=(0, 32))
    assert violated(layer, flags=()) == [
        "precision",
        "convolution.kernel",
        "convolution.padding",
        "convolution.padding_below_kernel",
        "convolution.stride",
    ]

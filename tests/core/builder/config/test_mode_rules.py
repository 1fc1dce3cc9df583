"""What excludes one another is refused before anything is built: rule, finding, source and remedy, all at once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.enumerations import EngineCapability, QuantizationFlag
from dryfit.builder.config.mode_rules import EXPLICIT_RULES, STRONGLY_TYPED_RULES, broken_rules
from dryfit.builder.config.quantization_mode import QuantizationMode, quantization_mode
from dryfit.building import Builder, assess
from dryfit.errors import ConfigError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibrator import Calibrator, Solution

FLOAT, HALF, INT8, FP8 = DataType.FLOAT, DataType.HALF, DataType.INT8, DataType.FP8
MAGNITUDE = Calibrator(
    name="magnitude", title="the largest magnitude", solve=lambda histogram: Solution.of_threshold(histogram.magnitude)
)


def plain(*, strong=False):
    """c, r: a convolution and a ReLU."""
    network = Network("net", strong << NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    x = network.add_input("x", FLOAT, (1, 8, 6, 6))
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    return network


def explicit(*types):
    """A ReLU behind a quantization and a dequantization of each type: q0, dq0, r0, ..."""
    network, x = image_network()
    for index, dtype in enumerate(types):
        scale = named(network.add_constant((), np.float32(0.1)), f"scale{index}")
        quantized = named(network.add_quantize(x, scale, dtype), f"q{index}")
        x = activation(network, named(network.add_dequantize(quantized, scale), f"dq{index}"), f"r{index}")
    network.mark_output(x)
    return network


def config_with(*flags):
    config = BuilderConfig()
    for flag in flags:
        config.set_flag(flag)
    return config


def broken(network, config):
    return {rule.id: found for rule, found in broken_rules(network, config)}


def test_a_network_with_quantize_or_dequantize_layers_is_explicit_whatever_flags_say():
    for config in (BuilderConfig(), config_with(BuilderFlag.INT8)):
        assert quantization_mode(explicit(INT8), config) is QuantizationMode.EXPLICIT
    assert quantization_mode(plain(), config_with(BuilderFlag.INT8)) is QuantizationMode.IMPLICIT
    assert quantization_mode(plain(), BuilderConfig()) is QuantizationMode.NONE


@pytest.mark.parametrize("dtype", [INT8, FP8])
@pytest.mark.parametrize("with_flags", [False, True])
def test_an_explicit_network_needs_no_flags_and_takes_them(dtype, with_flags):
    config = config_with(*([BuilderFlag[dtype.name], BuilderFlag.FP16] if with_flags else []))
    assert broken(explicit(dtype), config) == {}
    plan = Builder().build_plan(explicit(dtype), config)
    assert list(plan.warnings) == []


def test_an_explicit_network_is_not_calibrated():
    config = config_with(BuilderFlag.INT8)
    config.calibrate_with(MAGNITUDE, [])
    config.calibration_cache = CalibrationCache("1", {"x": 0.5})
    assert broken(explicit(INT8), config) == {"explicit.calibration": "a calibrator, a calibration cache"}
    with pytest.raises(
        ConfigError, match="An explicitly quantized network must not be calibrated: its scales are in its layers"
    ) as caught:
        Builder().build_plan(explicit(INT8), config)
    assert "mutually exclusive" in caught.value.source
    assert caught.value.remedy.startswith(
        "Remove calibrator and cache from the config, or use the network without quantize and dequantize layers"
    )


def test_an_explicit_network_has_no_dynamic_ranges():
    network = explicit(INT8)
    network.tensor("r0").dynamic_range = (-1, 1)
    assert broken(network, BuilderConfig()) == {"explicit.dynamic_range": "tensor 'r0'"}


def test_int8_and_fp8_are_not_in_one_network():
    network = explicit(INT8, FP8, INT8)
    assert broken(network, BuilderConfig()) == {
        "explicit.one_type_of_8_bits": "INT8 in 'q0', 'dq0', 'q2', 'dq2', FP8 in 'q1', 'dq1'"
    }
    assert broken(explicit(FP8, DataType.FP4), BuilderConfig()) == {}


@pytest.mark.parametrize("is_standalone", [False, True])
def test_constraints_are_obeyed_or_preferred_and_not_both_in_any_build(is_standalone):
    network = plain()
    config = config_with(BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    if is_standalone:
        config.engine_capability = EngineCapability.DLA_STANDALONE
    found = broken(network, config)
    assert found["builder_flags.constraints"] == "OBEY_PRECISION_CONSTRAINTS, PREFER_PRECISION_CONSTRAINTS"
    with pytest.raises(ConfigError, match=r"builder_flags\.constraints"):
        assess(network, config)
    config.clear_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    assert "builder_flags.constraints" not in broken(network, config)


@pytest.mark.parametrize("flag", [BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS])
@pytest.mark.parametrize("dtype", [INT8, FP8])
def test_quantized_types_are_no_constraints_in_an_explicit_network(flag, dtype):
    network = explicit(INT8)
    network.layer("r0").precision = dtype
    network.layer("dq0").set_output_type(0, dtype)
    assert broken(network, config_with(flag)) == {
        "explicit.precision": f"{dtype.name} of layer 'r0'",
        "explicit.output_type": f"{dtype.name} of output 0 of layer 'dq0'",
    }


def test_real_types_are_constraints_and_a_quantize_layer_may_say_its_own_type_twice():
    network = explicit(INT8)
    network.layer("r0").precision = HALF
    network.layer("q0").set_output_type(0, INT8)
    assert broken(network, BuilderConfig()) == {}
    network.layer("q0").set_output_type(0, FP8)
    assert list(broken(network, BuilderConfig())) == ["explicit.output_type"]


def test_all_that_is_broken_is_told_at_once_before_anything_is_built():
    network, config = explicit(INT8, FP8), config_with(BuilderFlag.INT8)
    network.tensor("x").dynamic_range = (-1, 1)
    network.layer("r1").precision = INT8
    config.calibrate_with(MAGNITUDE, iter(()))
    for build in (Builder().build_plan, assess):
        with pytest.raises(ConfigError, match="The network and the config are incompatible") as caught:
            build(network, config)
        text = str(caught.value)
        for rule in EXPLICIT_RULES[:4]:
            assert f"[{rule.id}]" in text
            assert rule.source in text
            assert rule.remedy in text
    assert not Builder().is_network_supported(network, config)


def test_what_tensorrt_only_overlooks_is_a_warning():
    config = config_with(BuilderFlag.INT8)
    config.assume_scales = True
    config.set_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    because = "has no effect, because the network has quantize and dequantize layers"
    assert list(Builder().build_plan(explicit(INT8), config).warnings) == [
        f"The setting assume_scales {because}",
        f"The quantization flag CALIBRATE_BEFORE_FUSION {because}",
    ]


def test_a_strongly_typed_network_takes_no_flags_of_precision():
    flags = [BuilderFlag.FP16, BuilderFlag.INT8, BuilderFlag.OBEY_PRECISION_CONSTRAINTS]
    config = config_with(*flags, BuilderFlag.STRICT_NANS)
    assert broken(plain(strong=True), config) == {"strongly_typed.flags": "FP16, INT8, OBEY_PRECISION_CONSTRAINTS"}
    with pytest.raises(ConfigError, match="neither required nor allowed"):
        Builder().build_plan(plain(strong=True), config)


def test_a_strongly_typed_network_takes_no_types_of_layers_and_no_implicit_scales():
    network, config = plain(strong=True), BuilderConfig()
    network.layer("c").precision = HALF
    network.layer("r").set_output_type(0, HALF)
    network.tensor("c").dynamic_range = (-1, 1)
    config.calibrate_with(MAGNITUDE, [])
    assert broken(network, config) == {
        "strongly_typed.precision": "FP16 of layer 'c'",
        "strongly_typed.output_type": "FP16 of output 0 of layer 'r'",
        "strongly_typed.calibration": "a calibrator",
        "strongly_typed.dynamic_range": "tensor 'c'",
    }


def test_what_both_modes_forbid_is_told_once():
    network = explicit(INT8)
    strong = Network("strong", 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    x = strong.add_input("x", FLOAT, (4,))
    strong.mark_output(named(strong.add_quantize(x, named(strong.add_constant((), np.float32(1)), "s")), "q"))
    for one in (network, strong):
        one.tensor("x").dynamic_range = (-1, 1)
    assert list(broken(network, BuilderConfig())) == ["explicit.dynamic_range"]
    assert list(broken(strong, BuilderConfig())) == ["strongly_typed.dynamic_range"]


def test_rules_have_ids_of_their_own():
    ids = [rule.id for rule in (*EXPLICIT_RULES, *STRONGLY_TYPED_RULES)]
    assert len(set(ids)) == len(ids)

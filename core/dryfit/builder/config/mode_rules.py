"""What excludes one another: explicit quantization, calibration, precision constraints, strong typing, standalone mode.

The rules are a table, which is the check and its words at once. They are looked at before anything is built, and all
that is broken is told together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dryfit.builder.config import mode_checks
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.quantization_mode import QuantizationMode, quantization_mode
from dryfit.builder.config.standalone import STANDALONE_RULES, is_standalone
from dryfit.errors import ConfigError, one_error
from dryfit.network.network import Network
from dryfit.rule import Rule

CHAPTER = 'TensorRT "Working with Quantized Types"'
EXCLUSIVE = f"{CHAPTER}, explicit vs implicit quantization: the two are mutually exclusive"
CONSTRAINTS = f"{CHAPTER}, explicit quantization: INT8 and FP8 must not be used as type constraints"
NO_FLAGS = f"{CHAPTER}, explicit quantization: flags are neither required nor allowed for a strongly typed network"
TYPES_FOLLOW = "TensorRT 11 inference library, Precision Control: strongly typed networks"
NO_IMPLICIT = f"{CHAPTER}, explicit vs implicit quantization: implicit cannot be used together with strong typing"


FLAG_RULES: Sequence[Rule] = (
    Rule(
        "builder_flags.constraints",
        "The flags OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS are not both set",
        "TensorRT, whose config takes one of the two flags and refuses the other",
        "Clear one of them",
        "SA-06",
        finder=mode_checks.two_constraints,
    ),
)
"""What holds for every build."""

CALIBRATED_BEFORE_FUSION = Rule(
    "implicit.dla_calibrator",
    "A calibrator for the DLA finds the ranges of tensors before layers are fused",
    "TensorRT 8 developer guide, INT8: IInt8EntropyCalibrator2 is required for DLA, whose fusions differ; the flag "
    "overrides that older calibrators look at what is left after fusion",
    "Use the calibrator entropy2 (IInt8EntropyCalibrator2) or minmax (IInt8MinMaxCalibrator), or set the quantization "
    "flag CALIBRATE_BEFORE_FUSION (`dryfit calibrate --before-fusion`)",
    finder=mode_checks.calibration_after_fusion,
)

IMPLICIT_RULES: Sequence[Rule] = (CALIBRATED_BEFORE_FUSION,)
"""What holds for a network whose scales are found by a calibrator."""

EXPLICIT_RULES: Sequence[Rule] = (
    Rule(
        "explicit.calibration",
        "An explicitly quantized network has its scales in its layers, and is not calibrated",
        EXCLUSIVE,
        "Take calibrator and cache out of the config, or build the network without quantize and dequantize layers",
        finder=mode_checks.calibration,
    ),
    Rule(
        "explicit.dynamic_range",
        "An explicitly quantized network has its scales in its layers, and its tensors have no dynamic ranges",
        EXCLUSIVE,
        "Call reset_dynamic_range on them, or build the network without quantize and dequantize layers",
        finder=mode_checks.dynamic_ranges,
    ),
    Rule(
        "explicit.one_type_of_8_bits",
        "A network is quantized to INT8 or to FP8, not to both",
        f"{CHAPTER}, quantization schemes: FP8 and INT8 in the same network are not allowed",
        "Quantize all of these to one type",
        finder=mode_checks.int8_beside_fp8,
    ),
    Rule(
        "explicit.precision",
        "In an explicitly quantized network no layer's precision is set to a quantized type",
        CONSTRAINTS,
        "Call reset_precision on these layers: quantize and dequantize layers around them say what they compute in",
        finder=mode_checks.quantized_precisions,
    ),
    Rule(
        "explicit.output_type",
        "In an explicitly quantized network no output type is set to a quantized type, but those of layer plugins",
        CONSTRAINTS,
        "Call reset_output_type on these layers; a quantize layer has its type as `to_type`",
        finder=mode_checks.quantized_output_types,
    ),
)
"""What holds for a network with quantize or dequantize layers."""

STRONGLY_TYPED_RULES: Sequence[Rule] = (
    Rule(
        "strongly_typed.flags",
        "A strongly typed network is built without flags that permit or constrain precisions",
        NO_FLAGS,
        "Clear these flags (on the command line: leave out --precision and --int8): the network's types say it all",
        finder=mode_checks.precision_flags,
    ),
    Rule(
        "strongly_typed.precision",
        "In a strongly typed network no layer has a precision of its own",
        TYPES_FOLLOW,
        "Call reset_precision on these layers, and add cast layers where another type is meant",
        finder=mode_checks.precisions,
    ),
    Rule(
        "strongly_typed.output_type",
        "In a strongly typed network no layer but a layer plugin has an output type of its own",
        TYPES_FOLLOW,
        "Call reset_output_type on these layers; casts, fills, quantize and dequantize layers have `to_type`",
        finder=mode_checks.output_types,
    ),
    Rule(
        "strongly_typed.calibration",
        "A strongly typed network is not quantized implicitly, so it is not calibrated",
        NO_IMPLICIT,
        "Quantize it by quantize and dequantize layers, or create it without STRONGLY_TYPED",
        finder=mode_checks.calibration,
    ),
    Rule(
        "strongly_typed.dynamic_range",
        "A strongly typed network is not quantized implicitly, so its tensors have no dynamic ranges",
        NO_IMPLICIT,
        "Quantize it by quantize and dequantize layers, or create it without STRONGLY_TYPED",
        finder=mode_checks.dynamic_ranges,
    ),
)
"""What holds for a network that was created with STRONGLY_TYPED."""


def check_modes(network: Network, config: BuilderConfig) -> list[ConfigError]:
    """Refuse a network and a config that mix what excludes one another.

    What only keeps it from being a standalone loadable leaves its layers a place each: that is given back, to be told
    beside them. Not so where a calibrator would have to find scales first, which may take long.

    Returns:
        an error for each broken rule on standalone loadables.

    Raises:
        ConfigError: lists every other broken rule with what breaks it, its source and a remedy.
    """
    broken = list(broken_rules(network, config))
    errors = [mode_error(rule, found) for rule, found in broken]
    is_told_later = not config.has_calibrator and all(rule in STANDALONE_RULES for rule, _ in broken)
    if errors and not is_told_later:
        raise one_error("The network and the config do not go together", errors)
    return errors


def mode_error(rule: Rule, found: str) -> ConfigError:
    """The error for a broken rule."""
    return ConfigError(f"{rule.text} [{rule.id}]", found=found, source=rule.source, remedy=rule.remedy)


def broken_rules(network: Network, config: BuilderConfig) -> Iterator[tuple[Rule, str]]:
    """The rules that do not hold, each with what breaks it."""
    mode = quantization_mode(network, config)
    implicit = IMPLICIT_RULES if mode is QuantizationMode.IMPLICIT and not network.is_strongly_typed else ()
    strongly_typed = STRONGLY_TYPED_RULES if network.is_strongly_typed else ()
    # What the rules of both modes would tell is told once, by the stricter one.
    told = {_subject(rule) for rule in strongly_typed}
    explicit = (
        [rule for rule in EXPLICIT_RULES if _subject(rule) not in told] if mode is QuantizationMode.EXPLICIT else []
    )
    standalone = STANDALONE_RULES if is_standalone(config) else ()
    for rule in (*FLAG_RULES, *strongly_typed, *implicit, *explicit, *standalone):
        found: Sequence[str] = rule.finder(network, config)
        if found:
            yield rule, ", ".join(found)


def _subject(rule: Rule) -> str:
    """What a rule speaks of: its id without the mode."""
    return rule.id.partition(".")[2]

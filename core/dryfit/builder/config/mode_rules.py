"""Mutually exclusive modes: explicit quantization, calibration, precision constraints, strong typing, standalone mode.

The rules are a table that contains both the checks and their messages. They are checked before anything is built, and
all violations are reported together. Each check returns its findings in words, in network order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.config.quantization_mode import QuantizationMode, quantization_mode
from dryfit.builder.config.standalone import STANDALONE_RULES, is_standalone
from dryfit.errors import ConfigError, one_error
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.rule import Rule

PRECISION_FLAGS = (
    *(BuilderFlag.FP16, BuilderFlag.BF16, BuilderFlag.INT8, BuilderFlag.FP8, BuilderFlag.INT4, BuilderFlag.FP4),
    *(BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS),
)
"""Flags that permit a type of computation, or say what wishes for one count. TF32 is none: it narrows no tensor."""


def calibration(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the config settings that provide scales."""
    del network
    given = [("a calibrator", config.has_calibrator), ("a calibration cache", config.calibration_cache is not None)]
    return [name for name, is_given in given if is_given]


def calibration_after_fusion(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the calibrator that observes tensors after fusion, if layers are assigned to the DLA."""
    calibration = config.calibration()
    if calibration is None or config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION):
        return []
    calibrator = calibration[0]
    return [f"calibrator {calibrator.name!r}"] if not calibrator.before_fusion and is_for_dla(network, config) else []


def is_for_dla(network: Network, config: BuilderConfig) -> bool:
    """Return whether layers are assigned to the DLA, by default or individually."""
    return DeviceType.DLA in (config.default_device_type, *config.explicit_device_types(network).values())


def dynamic_ranges(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the tensors that have dynamic ranges."""
    del config
    return [f"tensor {tensor.name!r}" for tensor in network.tensors if tensor.dynamic_range is not None]


def int8_beside_fp8(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the Q/DQ layers of INT8 and of FP8, if the network has both."""
    del config
    found: dict[DataType, list[str]] = {DataType.INT8: [], DataType.FP8: []}
    for layer in network.layers:
        dtype = _quantized_type(layer)
        if dtype in found:
            found[dtype].append(layer.name)
    if not all(found.values()):
        return []
    return [f"{dtype.text} in {', '.join(map(repr, names))}" for dtype, names in found.items()]


def quantized_precisions(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the layers whose precision is set to a quantized type."""
    del config
    return [one for one, dtype in _precisions(network) if dtype.is_quantized]


def quantized_output_types(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the outputs whose type is set to a quantized type that the layer does not produce by itself."""
    del config
    return [one for one, dtype in _output_types(network) if dtype.is_quantized]


def precision_flags(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the precision flags that are set."""
    del network
    return [flag.name for flag in PRECISION_FLAGS if config.get_flag(flag)]


def two_constraints(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the two precision constraint flags, if both are set."""
    del network
    flags = (BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    return [flag.name for flag in flags] if all(map(config.get_flag, flags)) else []


def precisions(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the layers that have a precision of their own."""
    del config
    return [one for one, _ in _precisions(network)]


def output_types(network: Network, config: BuilderConfig) -> Sequence[str]:
    """Return the outputs whose type is set to one that the layer does not produce by itself."""
    del config
    return [one for one, _ in _output_types(network)]


def _precisions(network: Network) -> list[tuple[str, DataType]]:
    return [
        (f"{layer.precision.text} of layer {layer.name!r}", layer.precision)
        for layer in network.layers
        if layer.precision is not None
    ]


def _output_types(network: Network) -> list[tuple[str, DataType]]:
    """Return the output types that are set, without those that the outputs already have.

    A quantized type of a layer plugin's output is not a constraint: it declares support for quantized tensors.
    """
    return [
        (f"{dtype.text} of output {index} of layer {layer.name!r}", dtype)
        for layer in network.layers
        for index, dtype in sorted(layer.output_types.items())
        if index < len(layer.outputs) and layer.outputs[index].dtype is not dtype
        if not (layer.kind == "plugin" and dtype.is_quantized)
    ]


def _quantized_type(layer: Layer) -> DataType | None:
    """Return the type on the quantized side of a quantize or dequantize layer; None for other layers."""
    if layer.kind in ("quantize", "dynamic_quantize"):
        return layer.outputs[0].dtype
    source = layer.inputs[0] if layer.kind == "dequantize" else None
    return None if source is None else source.dtype


CHAPTER = 'TensorRT "Working with Quantized Types"'
EXCLUSIVE = f"{CHAPTER}, explicit vs implicit quantization: the two are mutually exclusive"
CONSTRAINTS = f"{CHAPTER}, explicit quantization: INT8 and FP8 must not be used as type constraints"
NO_FLAGS = f"{CHAPTER}, explicit quantization: flags are neither required nor allowed for a strongly typed network"
TYPES_FOLLOW = "TensorRT 11 inference library, Precision Control: strongly typed networks"
NO_IMPLICIT = f"{CHAPTER}, explicit vs implicit quantization: implicit cannot be used together with strong typing"


FLAG_RULES: Sequence[Rule] = (
    Rule(
        "builder_flags.constraints",
        "The flags OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS must not both be set",
        "TensorRT, whose config accepts only one of the two flags",
        "Clear one of them",
        "SA-06",
        finder=two_constraints,
    ),
)
"""What holds for every build."""

CALIBRATED_BEFORE_FUSION = Rule(
    "implicit.dla_calibrator",
    "A calibrator for the DLA must find the ranges of tensors before layers are fused",
    "TensorRT 8 developer guide, INT8: IInt8EntropyCalibrator2 is required for DLA, whose fusions differ; the flag "
    "overrides that older calibrators see only the tensors left after fusion",
    "Use the calibrator entropy2 (IInt8EntropyCalibrator2) or minmax (IInt8MinMaxCalibrator), or set the quantization "
    "flag CALIBRATE_BEFORE_FUSION (`dryfit calibrate --before-fusion`)",
    finder=calibration_after_fusion,
)

IMPLICIT_RULES: Sequence[Rule] = (CALIBRATED_BEFORE_FUSION,)
"""What holds for a network whose scales are found by a calibrator."""

EXPLICIT_RULES: Sequence[Rule] = (
    Rule(
        "explicit.calibration",
        "An explicitly quantized network must not be calibrated: its scales are in its layers",
        EXCLUSIVE,
        "Remove calibrator and cache from the config, or use the network without quantize and dequantize layers",
        finder=calibration,
    ),
    Rule(
        "explicit.dynamic_range",
        "An explicitly quantized network must not have dynamic ranges: its scales are in its layers",
        EXCLUSIVE,
        "Call reset_dynamic_range on them, or use the network without quantize and dequantize layers",
        finder=dynamic_ranges,
    ),
    Rule(
        "explicit.one_type_of_8_bits",
        "A network must be quantized either to INT8 or to FP8, not to both",
        f"{CHAPTER}, quantization schemes: FP8 and INT8 in the same network are not allowed",
        "Quantize all of these to one type",
        finder=int8_beside_fp8,
    ),
    Rule(
        "explicit.precision",
        "In an explicitly quantized network, no layer's precision may be set to a quantized type",
        CONSTRAINTS,
        "Call reset_precision on these layers: the quantize and dequantize layers around them determine it",
        finder=quantized_precisions,
    ),
    Rule(
        "explicit.output_type",
        "In an explicitly quantized network, only layer plugins may have a quantized output type",
        CONSTRAINTS,
        "Call reset_output_type on these layers; a quantize layer has its type as `to_type`",
        finder=quantized_output_types,
    ),
)
"""What holds for a network with quantize or dequantize layers."""

STRONGLY_TYPED_RULES: Sequence[Rule] = (
    Rule(
        "strongly_typed.flags",
        "A strongly typed network must be built without flags that permit or constrain precisions",
        NO_FLAGS,
        "Clear these flags (on the command line: leave out --precision and --int8): the network's types "
        "determine all precisions",
        finder=precision_flags,
    ),
    Rule(
        "strongly_typed.precision",
        "In a strongly typed network, layers must not set a precision",
        TYPES_FOLLOW,
        "Call reset_precision on these layers, and add cast layers where another type is meant",
        finder=precisions,
    ),
    Rule(
        "strongly_typed.output_type",
        "In a strongly typed network, only layer plugins may set an output type",
        TYPES_FOLLOW,
        "Call reset_output_type on these layers; casts, fills, quantize and dequantize layers have `to_type`",
        finder=output_types,
    ),
    Rule(
        "strongly_typed.calibration",
        "A strongly typed network must not be calibrated: implicit quantization is not supported",
        NO_IMPLICIT,
        "Add quantize and dequantize layers, or create the network without STRONGLY_TYPED",
        finder=calibration,
    ),
    Rule(
        "strongly_typed.dynamic_range",
        "A strongly typed network must not have dynamic ranges: implicit quantization is not supported",
        NO_IMPLICIT,
        "Add quantize and dequantize layers, or create the network without STRONGLY_TYPED",
        finder=dynamic_ranges,
    ),
)
"""What holds for a network that was created with STRONGLY_TYPED."""


def check_modes(network: Network, config: BuilderConfig) -> list[ConfigError]:
    """Reject a network and a config that combine mutually exclusive modes.

    Violations that only prevent a standalone loadable are returned, so that they can be reported with the placement.
    Exception: a calibrator would have to run first, which may take long.

    Returns:
        One error for each violated rule on standalone loadables.

    Raises:
        ConfigError: Other rules are violated; the message lists each with its cause, source and remedy.
    """
    broken = list(broken_rules(network, config))
    errors = [mode_error(rule, found) for rule, found in broken]
    is_told_later = not config.has_calibrator and all(rule in STANDALONE_RULES for rule, _ in broken)
    if errors and not is_told_later:
        raise one_error("The network and the config are incompatible", errors)
    return errors


def mode_error(rule: Rule, found: str) -> ConfigError:
    """Return the error for a violated rule."""
    return ConfigError(f"{rule.text} [{rule.id}]", found=found, source=rule.source, remedy=rule.remedy)


def broken_rules(network: Network, config: BuilderConfig) -> Iterator[tuple[Rule, str]]:
    """Return the violated rules, each with its cause."""
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
    """Return the subject of a rule: its id without the mode."""
    return rule.id.partition(".")[2]

"""What the rules on modes look at.

Each check returns what it found, in words, in the order of the network.
"""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network

PRECISION_FLAGS = (
    *(BuilderFlag.FP16, BuilderFlag.BF16, BuilderFlag.INT8, BuilderFlag.FP8, BuilderFlag.INT4, BuilderFlag.FP4),
    *(BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS),
)
"""Flags that permit a type of computation, or say what wishes for one count. TF32 is none: it narrows no tensor."""


def calibration(network: Network, config: BuilderConfig) -> Sequence[str]:
    """What the config has to find scales by."""
    del network
    given = [("a calibrator", config.has_calibrator), ("a calibration cache", config.calibration_cache is not None)]
    return [name for name, is_given in given if is_given]


def calibration_after_fusion(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The calibrator that looks at the tensors that are left after fusion, where layers are for the DLA."""
    calibration = config.calibration()
    if calibration is None or config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION):
        return []
    calibrator = calibration[0]
    return [f"calibrator {calibrator.name!r}"] if not calibrator.before_fusion and is_for_dla(network, config) else []


def is_for_dla(network: Network, config: BuilderConfig) -> bool:
    """Whether layers are put on the DLA, by default or by a device of their own."""
    return DeviceType.DLA in (config.default_device_type, *config.explicit_device_types(network).values())


def dynamic_ranges(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The tensors that have dynamic ranges."""
    del config
    return [f"tensor {tensor.name!r}" for tensor in network.tensors if tensor.dynamic_range is not None]


def int8_beside_fp8(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The quantize and dequantize layers of INT8 and of FP8, if there are both."""
    del config
    found: dict[DataType, list[str]] = {DataType.INT8: [], DataType.FP8: []}
    for layer in network.layers:
        dtype = _quantized_type(layer)
        if dtype in found:
            found[dtype].append(layer.name)
    if not all(found.values()):
        return []
    return [f"{dtype.name} in {', '.join(map(repr, names))}" for dtype, names in found.items()]


def quantized_precisions(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The layers whose precision is set to a quantized type."""
    del config
    return [one for one, dtype in _precisions(network) if dtype.is_quantized]


def quantized_output_types(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The outputs whose type is set to a quantized type that the layer does not have of itself."""
    del config
    return [one for one, dtype in _output_types(network) if dtype.is_quantized]


def precision_flags(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The flags that are on and speak of precisions."""
    del network
    return [flag.name for flag in PRECISION_FLAGS if config.get_flag(flag)]


def two_constraints(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The two flags on precision constraints, where both are on."""
    del network
    flags = (BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    return [flag.name for flag in flags] if all(map(config.get_flag, flags)) else []


def precisions(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The layers that have a precision of their own."""
    del config
    return [one for one, _ in _precisions(network)]


def output_types(network: Network, config: BuilderConfig) -> Sequence[str]:
    """The outputs whose type is set to one that the layer does not have of itself."""
    del config
    return [one for one, _ in _output_types(network)]


def _precisions(network: Network) -> list[tuple[str, DataType]]:
    return [
        (f"{layer.precision.name} of layer {layer.name!r}", layer.precision)
        for layer in network.layers
        if layer.precision is not None
    ]


def _output_types(network: Network) -> list[tuple[str, DataType]]:
    """Output types that are set, without those that the outputs have anyway.

    A quantized type of a layer plugin's output is no constraint: it says that the plugin takes quantized tensors.
    """
    return [
        (f"{dtype.name} of output {index} of layer {layer.name!r}", dtype)
        for layer in network.layers
        for index, dtype in sorted(layer.output_types.items())
        if index < len(layer.outputs) and layer.outputs[index].dtype is not dtype
        if not (layer.kind == "plugin" and dtype.is_quantized)
    ]


def _quantized_type(layer: Layer) -> DataType | None:
    """The type on the quantized side of a quantize or dequantize layer; None for other layers."""
    if layer.kind in ("quantize", "dynamic_quantize"):
        return layer.outputs[0].dtype
    source = layer.inputs[0] if layer.kind == "dequantize" else None
    return None if source is None else source.dtype

"""The quantization mode of a network: explicit by Q/DQ layers, or implicit by flag and ranges."""

from __future__ import annotations

import enum

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.errors import CalibrationError
from dryfit.network.network import Network


class QuantizationMode(enum.Enum):
    """The two quantization modes; a build uses at most one.

    Source: TensorRT "Working with Quantized Types", explicit vs implicit quantization.
    """

    NONE = "none"
    """Nothing is quantized."""
    IMPLICIT = "implicit"
    """The flag INT8 is on, and the builder chooses among the layers whose tensors have scales."""
    EXPLICIT = "explicit"
    """Quantize and dequantize layers say what is quantized, and the builder chooses nothing."""


def quantization_mode(network: Network, config: BuilderConfig) -> QuantizationMode:
    """Return the quantization mode of a network with a config."""
    if is_explicit(network):
        return QuantizationMode.EXPLICIT
    return QuantizationMode.IMPLICIT if config.get_flag(BuilderFlag.INT8) else QuantizationMode.NONE


def is_explicit(network: Network) -> bool:
    """Return whether a network is explicitly quantized by Q/DQ layers."""
    return any(layer.is_quantization for layer in network.layers)


def has_zero_points(network: Network) -> bool:
    """Return whether a Q/DQ layer has a zero point that is not 0 or is computed."""
    codes = (layer.get_input(2) for layer in network.layers if layer.is_quantization and len(layer.inputs) > 2)
    return any(one is not None and (one.spec.value is None or bool(one.spec.value.any())) for one in codes)


def require_calibratable(network: Network) -> None:
    """Reject the calibration of a network that contains its scales.

    Raises:
        CalibrationError: The network has Q/DQ layers; the message lists them.
    """
    names = [layer.name for layer in network.layers if layer.is_quantization]
    if names:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise CalibrationError(
            "A network with quantize and dequantize layers must not be calibrated: its scales are in these layers",
            where=f"network {network.name!r}",
            found=f"layer {names[0]!r}{others}",
            source='TensorRT "Working with Quantized Types", explicit vs implicit quantization',
            remedy="Calibrate the model as it was before it was quantized, or use the scales of this one: "
            "`dryfit translate MODEL --to implicit` makes a calibration cache of them",
        )

"""Why a layer has the precision that it has, for reports."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs


class PrecisionCause(enum.Enum):
    """What decided on a layer's precision. The values are those of the JSON of `dryfit explain --quantization`."""

    INT8 = "int8"
    """It has the scales for INT8, and INT8 pays."""
    EXPLICIT = "explicit"
    """The network has quantize and dequantize layers, which alone say what is quantized."""
    STRONGLY_TYPED = "strongly_typed"
    """The network is strongly typed: its types are those of the computation."""
    FLAGS = "flags"
    """The flags permit nothing narrower."""
    NO_ARITHMETIC = "no_arithmetic"
    """It computes nothing on real numbers, or its types are part of what it means."""
    NO_SCALES = "no_scales"
    """Tensors that it reads or writes have no scale."""
    CONSTRAINT = "constraint"
    """The user set the layer's precision."""
    KIND = "kind"
    """Layers of this kind are not computed in INT8."""
    DEVICE = "device"
    """The device does not compute in INT8."""
    PROMOTED = "promoted"
    """The device computes such a layer in a wider type whatever is asked for."""
    NOISE_REDUCTION = "noise_reduction"
    """It lies between the last sum of many products and a network output in real numbers."""
    DOES_NOT_PAY = "does_not_pay"
    """Conversions around it would move more bytes than INT8 saves."""


@attrs.frozen
class PrecisionReason:
    """The reason.

    Attributes:
        cause: in one word.
        text: in words, for people.
        tensors: names of the tensors that have no scale, for that cause.
    """

    cause: PrecisionCause
    text: str
    tensors: Sequence[str] = ()

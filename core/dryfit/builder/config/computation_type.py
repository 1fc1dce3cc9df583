"""The computation type that a layer is asked about and built in, as flags, scales and the layer's own wish have it."""

from __future__ import annotations

from collections.abc import Collection

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer
from dryfit.quantization.int8_steps import has_scales
from dryfit.target.target import Target

REDUCED_TYPES = ((BuilderFlag.FP16, DataType.HALF), (BuilderFlag.BF16, DataType.BF16))
"""Flags and the narrower floating-point types that they permit, the one that is preferred first."""


def computation_type(
    layer: Layer, target: Target, flags: Collection[BuilderFlag], *, assume_scales: bool = False
) -> DataType:
    """The layer's own precision; else INT8 where flag and scales allow; else FP16, BF16; else the device's default.

    A layer of a strongly typed network is computed in the type that it has, whatever flags say.

    A device without a default (the DLA needs a precision flag) is asked for INT8 where only that is permitted, and else
    for FLOAT: its rules then refuse the layer, for its missing scales or for the missing flag.

    Source: TensorRT `BuilderFlag` (flags permit a type); a layer that lacks a range runs in FP16 where that is
    permitted.
    """
    if is_strongly_typed(layer):
        return typed_precision(layer)
    if layer.precision is not None:
        return layer.precision
    may_be_int8 = BuilderFlag.INT8 in flags and DataType.INT8 in target.precisions
    if may_be_int8 and (assume_scales or has_scales(layer)):
        return DataType.INT8
    for flag, precision in REDUCED_TYPES:
        if flag in flags and precision in target.precisions:
            return precision
    if target.default_precision is not None:
        return target.default_precision
    return DataType.INT8 if may_be_int8 else DataType.FLOAT


def is_strongly_typed(layer: Layer) -> bool:
    """Whether a layer is in a network that was created with STRONGLY_TYPED."""
    return layer.network is not None and layer.network.is_strongly_typed


def typed_precision(layer: Layer) -> DataType:
    """The type that a layer computes in by the types of its tensors: floating point, or else quantized, or FLOAT."""
    types = [tensor.dtype for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
    real = [dtype for dtype in types if dtype in EXCHANGED_TYPES]
    return next(iter([*real, *(dtype for dtype in types if dtype.is_quantized)]), DataType.FLOAT)

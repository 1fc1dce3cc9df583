"""The computation type of a layer, determined by flags, scales and the layer's own precision."""

from __future__ import annotations

from collections.abc import Collection

from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer
from dryfit.quantization.int8_steps import has_scales
from dryfit.quantization.quantized_group import code_type
from dryfit.target.target import Target

REDUCED_TYPES = ((BuilderFlag.FP16, DataType.HALF), (BuilderFlag.BF16, DataType.BF16))
"""Flags and the narrower floating-point types that they permit, the one that is preferred first."""

_REAL_TYPES = frozenset(dtype for dtype in DataType if dtype.is_floating_point)


def computation_type(
    layer: Layer, target: Target, flags: Collection[BuilderFlag], *, assume_scales: bool = False
) -> DataType:
    """Return the layer's own precision; else INT8 if allowed; else FP16, BF16; else the device's default.

    A layer of a strongly typed network is computed in its own type, regardless of flags.

    A device without a default type (the DLA requires a precision flag) is checked for INT8 if only INT8 is allowed, and
    otherwise for FP32. Its rules then reject the layer for the missing scales or the missing flag.

    A device without floating point computes a layer of a quantized network in the type of its codes (see `code_type`).

    Source: TensorRT `BuilderFlag` (flags allow a type); a layer without a range runs in FP16 if allowed.
    """
    if is_strongly_typed(layer):
        return typed_precision(layer)
    if layer.precision is not None:
        return layer.precision
    codes = code_type(layer) if computes_on_codes(target) else None
    if codes is not None and codes in target.precisions:
        return codes
    may_be_int8 = BuilderFlag.INT8 in flags and DataType.INT8 in target.precisions
    if may_be_int8 and (assume_scales or has_scales(layer)):
        return DataType.INT8
    for flag, precision in REDUCED_TYPES:
        if flag in flags and precision in target.precisions:
            return precision
    if target.default_precision is not None:
        return target.default_precision
    return DataType.INT8 if may_be_int8 else DataType.FLOAT


def computes_on_codes(target: Target) -> bool:
    """Return whether a device has no floating-point arithmetic, so that it runs quantized layers only."""
    return bool(target.precisions) and _REAL_TYPES.isdisjoint(target.precisions)


def is_strongly_typed(layer: Layer) -> bool:
    """Return whether a layer belongs to a network that was created with STRONGLY_TYPED."""
    return layer.network is not None and layer.network.is_strongly_typed


def typed_precision(layer: Layer) -> DataType:
    """Return the computation type given by the layer's tensor types: floating point, else quantized, else FP32."""
    types = [tensor.dtype for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
    real = [dtype for dtype in types if dtype in EXCHANGED_TYPES]
    return next(iter([*real, *(dtype for dtype in types if dtype.is_quantized)]), DataType.FLOAT)

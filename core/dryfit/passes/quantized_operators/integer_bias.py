"""A bias in the unit of a layer's sums: INT32, of the input's scale times the weights' scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.tensor import Tensor
from dryfit.reference.registry import evaluate

Array = np.ndarray[Any, Any]

_SAME_SCALE = 2.0**-20
"""How far, as a share, a stored scale of the bias may be from the product of the two scales that it is a rounding of.
Our choice: some roundings in FP32 (2^-24 each); TFLite itself takes the integers as they are, whatever is stored."""

_LARGEST_EXACT = 2**24
"""FP32 holds every whole number up to this."""


class BiasError(Exception):
    """Why a bias cannot be had in INT32, in words."""


def integer_bias(layer: Layer, unit: Array) -> Array | None:
    """The bias of a convolution, deconvolution or fully connected layer as int32[K]; None where it has none.

    Integers that the network has are taken as they are where their scale is the unit; other numbers are divided by the
    unit in FP64 and rounded to the nearest, ties to even. That gives back integers that were dequantized in FP32 up to
    2^23.

    Args:
        layer: has its bias as a parameter, or as input 2.
        unit: input scale * weight scale, rounded to FP32 once: float32 of shape () or [K].

    Raises:
        BiasError: it is computed at run time, or does not fit into INT32.
    """
    tensor = layer.get_input(2)
    parameter: Array | None = getattr(layer, "bias", None)
    if tensor is None and parameter is None:
        return None
    if tensor is not None and isinstance(tensor.producer, Dequantize):
        kept = _kept_integers(tensor.producer, unit)
        if kept is not None:
            return kept
        real = _dequantized(tensor.producer)
    else:
        real = parameter if tensor is None else tensor.spec.value
    if real is None:
        raise BiasError("its bias is computed at run time")
    codes = np.rint(real.reshape(-1).astype(np.float64) / unit.astype(np.float64))
    if not np.all(np.abs(codes) < 2.0**31):  # false for what is not finite too
        raise BiasError("its bias does not fit into INT32 by the scales of input and weights")
    return codes.astype(np.int32)


def real_bias(layer: Layer, unit: Array, integers: Array) -> Array | None:
    """A bias in real numbers, float32[K], that is no whole units: not what these integers are, dequantized in FP32.

    Above 2**24, where FP32 has whole numbers only, all would be.

    Args:
        layer: has its bias as a parameter, or as input 2.
        unit: input scale * weight scale, rounded to FP32 once: float32 of shape () or [K].
        integers: what `integer_bias` gave.
    """
    tensor = layer.get_input(2)
    if tensor is not None and isinstance(tensor.producer, Dequantize):
        if _kept_integers(tensor.producer, unit) is not None:
            return None
        real = _dequantized(tensor.producer)
    else:
        real = getattr(layer, "bias", None) if tensor is None else tensor.spec.value
    if real is None:
        return None
    is_whole = (integers.astype(np.float64) * unit).astype(np.float32) == real.reshape(-1)
    return None if np.all(is_whole & (np.abs(integers) < _LARGEST_EXACT)) else real.reshape(-1).astype(np.float32)


def _kept_integers(dequantize: Dequantize, unit: Array) -> Array | None:
    """The INT32 codes of a bias, where their scale is the unit of the sums and no zero point is beside it."""
    codes, scale, zero_point = (_value(dequantize.get_input(index)) for index in range(3))
    if codes is None or scale is None or codes.dtype != np.int32 or (zero_point is not None and zero_point.any()):
        return None
    distance = np.abs(scale.astype(np.float64).reshape(-1) - unit.reshape(-1))
    is_unit = scale.size in (1, codes.size) and bool(np.all(distance <= _SAME_SCALE * unit.reshape(-1)))
    return codes.reshape(-1) if is_unit else None


def _dequantized(dequantize: Dequantize) -> Array | None:
    values = [_value(tensor) for tensor in dequantize.inputs]
    return None if any(value is None for value in values) else evaluate(dequantize, values)[0]


def _value(tensor: Tensor | None) -> Array | None:
    return None if tensor is None else tensor.spec.value

"""Conversion between all element types: what a cast, a quantize and a fill share.

Source: ONNX `Cast`, the tables of its description. What ONNX leaves undefined is decided here, the same on every
machine: a floating-point value that a 32-bit or 64-bit integer cannot hold becomes the nearest one that it can,
narrower integers keep the low bits, and NaN becomes 0.
"""

from __future__ import annotations

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.cast import CastRounding
from dryfit.reference.registry import Array

_FLOAT8 = (DataType.FP8, DataType.FP8_E4M3FNUZ, DataType.FP8_E5M2, DataType.FP8_E5M2FNUZ)
_LARGEST = {
    DataType.FP8: 448.0,
    DataType.FP8_E4M3FNUZ: 240.0,
    DataType.FP8_E5M2: 57344.0,
    DataType.FP8_E5M2FNUZ: 57344.0,
    DataType.FP4: 6.0,
}


def limits(dtype: DataType) -> tuple[float, float]:
    """(lowest, highest) finite value of an integer type or a floating-point type of 8 or 4 bits."""
    if dtype in _LARGEST:
        return -_LARGEST[dtype], _LARGEST[dtype]
    signed = dtype.numpy_name.startswith("int")
    return (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if signed else (0, 2**dtype.bits - 1)


def convert(x: Array, dtype: DataType, *, saturate: bool = True, rounding: CastRounding = CastRounding.UP) -> Array:
    """The elements in another type; the array itself where it has the type already."""
    source = DataType.from_numpy(x.dtype)
    if source is dtype:
        return x
    if source is DataType.BOOL:
        x, source = x.view(np.uint8), DataType.UINT8
    elif source.is_floating_point and source.numpy.kind != "f":
        x = x.astype(np.float32)  # ml_dtypes values; all of them are FP32 values
    elif source.is_integer and source.bits < 8:
        x = x.astype(np.int8 if source.numpy_name.startswith("i") else np.uint8)
    if dtype is DataType.BOOL:
        return np.not_equal(x, 0)
    if dtype is DataType.E8M0:
        return _to_e8m0(x, rounding, saturate=saturate)
    if dtype in _FLOAT8:
        wide = x if x.dtype == np.float64 else x.astype(np.float32)
        if saturate:
            wide = np.clip(wide, *limits(dtype))
        return wide.astype(dtype.numpy)
    if dtype.is_integer and source.is_floating_point:
        return truncated(x, dtype)
    if dtype.is_integer and dtype.bits < 8:
        return _low_bits(x, dtype)
    if dtype.is_floating_point and source.is_integer and dtype.numpy.kind != "f":
        x = x.astype(np.float32)
    return x.astype(dtype.numpy)


def truncated(x: Array, dtype: DataType) -> Array:
    """Floating-point values without their fractions, in an integer type."""
    # Below 32 bits the low bits are kept, as from integer to integer: ONNX's own cases and ONNX Runtime have it so.
    wide = dtype if dtype.bits >= 32 else DataType.INT64
    low, high = limits(wide)
    kind = wide.numpy.type
    x = np.trunc(x.astype(np.float64))
    inside = (x >= low) & (x < float(high))
    # The highest 64-bit integer is no float64, so what is beyond it is put in as an integer.
    outside = np.where(x >= float(high), kind(high), np.where(x < low, kind(low), kind(0)))
    whole: Array = np.where(inside, np.where(inside, x, 0).astype(wide.numpy), outside)
    return _low_bits(whole, dtype) if dtype.bits < 8 else whole.astype(dtype.numpy)


def _low_bits(x: Array, dtype: DataType) -> Array:
    bits: Array = x.astype(np.int64) & (2**dtype.bits - 1)
    if dtype.numpy_name.startswith("int"):
        bits -= (bits >> (dtype.bits - 1)) << dtype.bits
    return bits.astype(np.int8).astype(dtype.numpy)


def _to_e8m0(x: Array, rounding: CastRounding, *, saturate: bool) -> Array:
    """Powers of two from 2**-127 to 2**127. NaN and negative values are NaN."""
    x = x.astype(np.float64)
    mantissa, exponent = np.frexp(x)  # x = mantissa * 2**exponent, mantissa in [0.5, 1)
    power = exponent - 1
    if rounding is CastRounding.UP:
        power = np.where(mantissa > 0.5, exponent, power)
    elif rounding is CastRounding.NEAREST:
        power = np.where(mantissa >= 0.75, exponent, power)
    power = np.where(x == 0, -1000, np.where(np.isposinf(x), 1000, power))
    bits = np.clip(power + 127, 0, 254)
    wrong = np.isnan(x) | (x < 0)
    if not saturate:
        wrong |= (power < -127) | (power > 127)
    codes: Array = np.where(wrong, 255, bits).astype(np.uint8)
    return codes.view(DataType.E8M0.numpy)

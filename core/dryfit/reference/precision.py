"""Element types: where the references round, and how elements become those of another type.

References round once, at the end. Weighted sums and functions are never computed in an integer type, which would cut
weights to 0 and wrap around: FP32 serves the types that it holds, FP64 the wider integers. What needs no fraction
(sums, products, maxima, comparisons) is computed in the integer type itself: see `registry.compute_type`.

Conversion is what a cast, a quantize and a fill share. Source: ONNX `Cast`, the tables of its description. What ONNX
leaves undefined is decided here, the same on every machine: a floating-point value that a 32-bit or 64-bit integer
cannot hold becomes the nearest one that it can, narrower integers keep the low bits, and NaN becomes 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import CastRounding
from dryfit.network.tensor import Array

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


def computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The floating-point type in which a layer on elements of `dtype` computes weighted sums and functions.

    FP64 holds integers of more than 16 bits exactly up to 2^53. BOOL stays as it is.
    """
    kind = DataType.from_numpy(dtype)
    if kind.is_integer:
        return np.dtype(np.float32 if kind.bits <= 16 else np.float64)
    is_narrow = kind.is_floating_point and kind.bits < np.dtype(np.float32).itemsize * 8
    return np.dtype(np.float32) if is_narrow else np.dtype(dtype)


def widened(x: Array) -> Array:
    """The array in the type that is computed in; the array itself where that is its own."""
    return x.astype(computed_in(x.dtype), copy=False)


def rounded(y: Array, dtype: np.dtype[Any]) -> Array:
    """The result in a layer's output type.

    Rounding: to nearest, ties to even. Integers saturate, and so do FP8 E4M3 and FP4, which have no infinity; wider
    floating-point types overflow to infinity.
    """
    if y.dtype == dtype:
        return y
    kind = DataType.from_numpy(dtype)
    if kind.is_integer:
        if np.issubdtype(y.dtype, np.integer):
            return y.astype(dtype)
        low, high = limits(kind)
        result = np.asarray(np.clip(np.rint(y), low, high).astype(dtype))
        # The largest INT32 is no FP32 number, the largest INT64 no FP64 number: the cast alone would wrap around.
        result[y >= high] = high
        return result
    if kind in (DataType.FP8, DataType.FP4):
        y = np.clip(y, *limits(kind))
    with np.errstate(over="ignore"):
        return y.astype(dtype)


def cut_off(y: Array, dtype: np.dtype[Any]) -> Array:
    """The result in a layer's output type; of integers the fraction is dropped, not rounded."""
    return rounded(np.trunc(y) if DataType.from_numpy(dtype).is_integer else y, dtype)


def weights_for(x: Array, weights: Array) -> Array:
    """Weights as a layer on `x` multiplies with them: rounded to FP16 or BF16 where x is that, then widened.

    Biases are not: a device keeps them in the type of its accumulator. They are only brought to the type that is
    computed in.
    """
    if x.dtype.itemsize == np.dtype(np.float16).itemsize and DataType.from_numpy(x.dtype).is_floating_point:
        weights = weights.astype(x.dtype)
    return weights.astype(computed_in(x.dtype))

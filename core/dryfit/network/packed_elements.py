"""Stored elements: packing of narrow types, and stand-ins for omitted arrays.

Elements of 4 and 2 bits are packed two or four per byte, the first in the lowest bits. numpy stores such elements one
per byte. ONNX files, engine files and TensorRT's weights pack them. Source: TensorRT "Working with Quantized Types",
quantized weights; ONNX `TensorProto`, `raw_data` and `int32_data`.

A stand-in has an array's type and shape, but no memory. It is a single element, 1, broadcast to the shape, so that
layers that inspect a value find a valid one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.tensor import Array


def packed(elements: Array) -> Array:
    """Return the elements in row-major order as `uint8[bytes]`; unused bits of the last byte are 0.

    Args:
        elements: elements of a type below 8 bits, in any shape.
    """
    dtype = DataType.from_numpy(elements.dtype)
    each = 8 // dtype.bits
    codes = np.zeros((dtype.bytes_of(elements.size), each), np.uint8)
    codes.reshape(-1)[: elements.size] = elements.reshape(-1).view(np.uint8) & np.uint8(2**dtype.bits - 1)
    shifts = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    together: Array = np.bitwise_or.reduce(codes << shifts, axis=1, dtype=np.uint8)
    return together


def unpacked(data: Array, dtype: DataType, count: int) -> Array:
    """Return the first `count` elements in packed bytes, as a vector of `dtype`.

    Args:
        data: `uint8[bytes]`, at least as many bytes as the elements require.
        dtype: a type below 8 bits.
        count: number of elements.
    """
    elements: Array = _elements_of_bytes(dtype)[data[: dtype.bytes_of(count)]].reshape(-1)[:count]
    return elements


@functools.cache
def _elements_of_bytes(dtype: DataType) -> Array:
    """`dtype[256, elements a byte]`: what each byte holds."""
    codes = (np.arange(256)[:, None] >> np.arange(0, 8, dtype.bits)) & (2**dtype.bits - 1)
    if dtype.numpy_name.startswith("int"):
        codes -= (codes >> (dtype.bits - 1)) << dtype.bits
    elements: Array = codes.astype(np.uint8).view(dtype.numpy) if dtype.is_floating_point else codes.astype(dtype.numpy)
    return elements


def stand_in(dtype: DataType, shape: Sequence[int]) -> Array:
    """Return a stand-in for an array of this type and shape."""
    return np.broadcast_to(_one(dtype), shape)


def is_stand_in(array: Array) -> bool:
    """Return whether an array is a stand-in, or a part of one."""
    one = _one(DataType.from_numpy(array.dtype))
    return bool(array.__array_interface__["data"][0] == one.__array_interface__["data"][0])


@functools.cache
def _one(dtype: DataType) -> Array:
    return np.ones((), dtype.numpy)

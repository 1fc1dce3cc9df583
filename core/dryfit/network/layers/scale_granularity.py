"""Granularity of quantization scales: per-tensor, per-channel or per-block. Shared by quantize and dequantize.

Source: TensorRT "Working with Quantized Types", quantization modes; ONNX `QuantizeLinear`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer
from dryfit.network.packed_elements import is_stand_in
from dryfit.network.tensor import Shape, Tensor

DEVICE_SCALE_TYPES = (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.E8M0)
"""Scale types that devices support: high precision, and the powers of two of MXFP8."""
SCALE_TYPES = (*DEVICE_SCALE_TYPES, DataType.DOUBLE, DataType.INT32)
"""Supported scale types; the last two are host only (ONNX quantizes INT32 with INT32 scales)."""
LARGEST_BLOCKED_RANK = 3
"""Axes of data that devices quantize in blocks."""


def check_scale(layer: Layer, inputs: Inputs, axis: int, block_shape: Sequence[int]) -> None:
    """Check the scale (input 1) and the shape of the zero point (input 2) against the data (input 0).

    Raises:
        NetworkError: A shape or the type of the scale is invalid, or a known scale is not finite or not positive.
    """
    x, scale = layer.required(inputs, 0), layer.required(inputs, 1)
    if scale.dtype not in SCALE_TYPES:
        raise layer.problem(
            "This type is not supported for scales",
            found=f"{scale.dtype.text}{_named(layer, 1)}",
            allowed=", ".join(dtype.text for dtype in SCALE_TYPES),
            remedy="Dequantize the scales first, with the scale of the scales" if scale.dtype is DataType.FP8 else None,
        )
    block_extents(layer, x.shape, scale.shape, axis, block_shape)
    check_positive(layer, inputs)
    zero_point = inputs[2] if len(inputs) > 2 else None
    if zero_point is not None and not _fits(zero_point.shape, scale.shape):
        raise layer.problem(
            "The zero point must have the shape of the scale",
            found=zero_point.shape,
            allowed=scale.shape,
            remedy="Reshape the zero point",
        )


def check_positive(layer: Layer, inputs: Inputs) -> None:
    """Check the values of the scale (input 1), if they are known.

    Raises:
        NetworkError: A scale is not finite or not positive. The message names the tensor and the index.
    """
    scale = layer.required(inputs, 1)
    wrong = None if scale.value is None or is_stand_in(scale.value) else wrong_scales(scale.value)
    if wrong is not None:
        raise layer.problem(
            "Scales must be finite and positive", found=f"{wrong}{_named(layer, 1)}", remedy="Replace these scales"
        )


def wrong_scales(scales: np.ndarray[Any, Any]) -> str | None:
    """Return a description of the scales that are not finite or not positive, with the first index; or None."""
    numbers = scales.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if not wrong.size:
        return None
    value = float(numbers.reshape(-1)[wrong[0]])
    if numbers.size == 1:
        return str(value)
    index = [int(i) for i in np.unravel_index(wrong[0], numbers.shape)]
    others = f", and {wrong.size - 1} more" if wrong.size > 1 else ""
    return f"{value} at index {index}{others}"


def reasons_against_devices(layer: Layer, quantized: Tensor | None, axis: int, block_shape: Sequence[int]) -> list[str]:
    """Return why no device supports a quantize or dequantize layer; empty if devices support it.

    Source: TensorRT "Working with Quantized Types": symmetric quantization to INT8, FP8, INT4 and FP4; scales of FP32,
        FP16 or BF16; one-dimensional blocks of data with up to 3 dimensions. An even number of 4-bit values:
        onnx-tensorrt, onnxOpImporters.cpp.
    """
    return [
        *([] if quantized is None else _against_values(quantized)),
        *_against_scales(layer, axis, block_shape),
    ]


def _against_values(quantized: Tensor) -> Iterator[str]:
    if not quantized.dtype.is_quantized:
        yield f"values of type {quantized.dtype.text} (tensor {quantized.name!r})"
    elif quantized.dtype.bits == 4 and quantized.spec.is_static and math.prod(quantized.shape) % 2:
        yield f"an odd number of 4-bit values, {math.prod(quantized.shape)} (tensor {quantized.name!r})"


def _against_scales(layer: Layer, axis: int, block_shape: Sequence[int]) -> Iterator[str]:
    zero_point = layer.get_input(2)
    if zero_point is not None and (zero_point.spec.value is None or zero_point.spec.value.astype(np.float32).any()):
        yield f"a zero point that is not 0{_named(layer, 2)}"
    x, scale = layer.get_input(0), layer.get_input(1)
    if x is None or scale is None:
        return
    if scale.dtype not in DEVICE_SCALE_TYPES:
        yield f"scales of type {scale.dtype.text}{_named(layer, 1)}"
    if set(scale.shape) <= {1} or (len(scale.shape) == 1 and len(x.shape) > 1):
        return
    blocks = block_extents(layer, x.shape, scale.shape, axis, block_shape)
    if len(x.shape) > LARGEST_BLOCKED_RANK:
        yield f"blocks of data with {len(x.shape)} axes{_named(layer, 0)}"
    if sum(block > 1 for block in blocks) > 1:
        yield f"blocks of shape {blocks}, along more than one axis{_named(layer, 1)}"


def _named(layer: Layer, index: int) -> str:
    """The tensor at an input, for a message; nothing where none is connected."""
    tensor = layer.get_input(index)
    return "" if tensor is None else f" (tensor {tensor.name!r})"


def block_extents(layer: Layer, shape: Shape, scale: Shape, axis: int, block_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the extents of the block that shares a scale, one per axis; the whole axis if shared along it.

    A scale with one element applies to the whole tensor. A vector with an `axis` has one element per index of that
    axis. A scale with the rank of the data has one element per block; the last block of an axis may be partial. Without
    a `block_shape`, the block size is the one that divides the axis evenly. An extent is -1 if it depends on a dynamic
    extent.

    Raises:
        NetworkError: The scale matches the data in none of these ways, possibly because `axis` is not set yet.
    """
    rank = len(shape)
    if block_shape:
        if len(block_shape) != rank or min(block_shape) < 1:
            raise layer.problem(
                "`block_shape` must have one extent per axis, each at least 1",
                found=tuple(block_shape),
                allowed=f"{rank} extents",
                remedy="Set `block_shape`",
            )
        counts = tuple(-1 if e < 0 else -(-e // block) for e, block in zip(shape, block_shape, strict=True))
        if not _fits(scale, counts):
            raise layer.problem(
                "The scale must have one element per block",
                found=scale,
                allowed=counts,
                remedy="Reshape the scale, or set `block_shape`",
            )
        return tuple(block_shape)
    if scale in ((), (1,)):
        return shape
    if len(scale) == 1 and rank != 1:
        if axis == -1:
            raise layer.problem(
                "`axis` must be set for a per-channel scale",
                found=f"a scale of {scale} for {shape}",
                remedy="Set `axis` to the axis of the channels",
                is_mendable=True,
            )
        if not 0 <= axis < rank:
            raise layer.problem(
                "`axis` must be an axis of the input",
                found=axis,
                allowed=f"-1 or 0 to {rank - 1}",
                is_mendable=True,
                remedy="Set `axis` to one of these",
            )
        if not _fits(scale, (shape[axis],)):
            raise layer.problem(
                "The scale must have one element per index of `axis`",
                found=scale,
                allowed=shape[axis],
                is_mendable=True,
                remedy="Set `axis`, or give a scale of that length",
            )
        return (*shape[:axis], 1, *shape[axis + 1 :])
    if len(scale) != rank or any(
        -1 not in (extent, count) and (count < 1 or extent % count) for extent, count in zip(shape, scale, strict=True)
    ):
        raise layer.problem(
            "The scale must divide the input into blocks of equal size",
            found=f"{scale} scales for {shape}",
            is_mendable=True,
            remedy="Reshape the scale",
        )
    return tuple(-1 if -1 in pair else pair[0] // pair[1] for pair in zip(shape, scale, strict=True))


def _fits(shape: Shape, expected: Shape) -> bool:
    if expected in ((), (1,)):
        return shape in ((), (1,))
    return len(shape) == len(expected) and all(-1 in (e, w) or e == w for e, w in zip(shape, expected, strict=True))

"""Which elements share a quantization scale: all, one axis's, or a block's. Shared by quantize and dequantize.

Source: TensorRT "Working with Quantized Types", quantization granularities; ONNX `QuantizeLinear`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Inputs, Layer
from dryfit.network.tensor import Shape


def check_scale(layer: Layer, inputs: Inputs, axis: int, block_shape: Sequence[int]) -> None:
    """Check the scale (input 1) and the shape of the zero point (input 2) against the data (input 0).

    Raises:
        NetworkError: a shape does not fit, or a scale that is known is not finite or not positive.
    """
    x, scale = layer.required(inputs, 0), layer.required(inputs, 1)
    if not scale.dtype.is_floating_point and not scale.dtype.is_integer:
        raise layer.problem("A scale is a number", found=scale.dtype.name)
    block_extents(layer, x.shape, scale.shape, axis, block_shape)
    if scale.value is not None:
        numbers = scale.value.astype(np.float64).reshape(-1)
        wrong = numbers[~(np.isfinite(numbers) & (numbers > 0))]
        if wrong.size:
            raise layer.problem("A scale is finite and positive", found=float(wrong[0]))
    zero_point = inputs[2] if len(inputs) > 2 else None
    if zero_point is not None and not _fits(zero_point.shape, scale.shape):
        raise layer.problem("The zero point has the scale's shape", found=zero_point.shape, allowed=scale.shape)


def block_extents(layer: Layer, shape: Shape, scale: Shape, axis: int, block_shape: Sequence[int]) -> tuple[int, ...]:
    """The extents of the block that shares a scale, one an axis: the whole axis where the scale does not follow it.

    A scale of one element serves the whole tensor. A vector with an `axis` has one element for each of its indices. A
    scale of the data's rank has one element a block, the last block of an axis being cut short; without a `block_shape`
    the blocks are as large as it takes to divide the axis evenly. An extent is -1 where it depends on a dynamic one.

    Raises:
        NetworkError: the scale fits the data in none of these ways, perhaps because `axis` is not set yet.
    """
    rank = len(shape)
    if block_shape:
        if len(block_shape) != rank or min(block_shape) < 1:
            raise layer.problem(
                "`block_shape` has one extent an axis, each at least 1",
                found=tuple(block_shape),
                allowed=f"{rank} extents",
            )
        counts = tuple(-1 if e < 0 else -(-e // block) for e, block in zip(shape, block_shape, strict=True))
        if not _fits(scale, counts):
            raise layer.problem("The scale has one element a block", found=scale, allowed=counts)
        return tuple(block_shape)
    if scale in ((), (1,)):
        return shape
    if len(scale) == 1 and rank != 1:
        if axis == -1:
            raise layer.problem(
                "The scale is a vector, and `axis` does not say of which axis",
                found=f"a scale of {scale} for {shape}",
                remedy="Set `axis`",
                is_mendable=True,
            )
        if not 0 <= axis < rank:
            raise layer.problem(
                "`axis` is not an axis of the input", found=axis, allowed=f"-1 or 0 to {rank - 1}", is_mendable=True
            )
        if not _fits(scale, (shape[axis],)):
            raise layer.problem(
                "The scale has one element for each index of `axis`", found=scale, allowed=shape[axis], is_mendable=True
            )
        return (*shape[:axis], 1, *shape[axis + 1 :])
    if len(scale) != rank or any(
        -1 not in (extent, count) and (count < 1 or extent % count) for extent, count in zip(shape, scale, strict=True)
    ):
        raise layer.problem(
            "The scale does not divide the input into blocks", found=f"{scale} scales for {shape}", is_mendable=True
        )
    return tuple(-1 if -1 in pair else pair[0] // pair[1] for pair in zip(shape, scale, strict=True))


def _fits(shape: Shape, expected: Shape) -> bool:
    if expected in ((), (1,)):
        return shape in ((), (1,))
    return len(shape) == len(expected) and all(-1 in (e, w) or e == w for e, w in zip(shape, expected, strict=True))

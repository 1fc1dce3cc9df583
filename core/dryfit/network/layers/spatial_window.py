"""The arithmetic of a window that slides over spatial axes, shared by convolution, deconvolution and pooling.

Source: TensorRT's `PaddingMode`, and ONNX Conv and the pooling operators.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class PaddingMode(enum.Enum):
    """How padding and the rounding of the output extent follow from the parameters; TensorRT's `PaddingMode`."""

    EXPLICIT_ROUND_DOWN = "explicit_round_down"
    EXPLICIT_ROUND_UP = "explicit_round_up"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"


def ints(values: int | Sequence[int] | None) -> tuple[int, ...]:
    """A tuple of Python ints; the converter of every parameter that holds one value a spatial axis."""
    if values is None:
        return ()
    return (int(values),) if isinstance(values, int) else tuple(int(value) for value in values)


def dilated(kernel: int, dilation: int) -> int:
    """The extent that a dilated kernel covers."""
    return (kernel - 1) * dilation + 1


def resolved_padding(
    mode: PaddingMode, extent: int, kernel: int, stride: int, dilation: int, pre: int, post: int
) -> tuple[int, int]:
    """(pre, post) padding of one axis as the mode has it; for the SAME modes it follows from the extent."""
    if mode not in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER) or extent < 0:
        return pre, post
    total = max((-(-extent // stride) - 1) * stride + dilated(kernel, dilation) - extent, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if mode is PaddingMode.SAME_UPPER else (large, small)


def output_extent(mode: PaddingMode, extent: int, kernel: int, stride: int, dilation: int, pre: int, post: int) -> int:
    """Output extent of one axis of a convolution: -1 for a dynamic extent, 0 where the window does not fit."""
    if extent < 0:
        return -1
    if mode in (PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER):
        return -(-extent // stride)
    span = extent + pre + post - dilated(kernel, dilation)
    return max((-(-span // stride) if mode is PaddingMode.EXPLICIT_ROUND_UP else span // stride) + 1, 0)

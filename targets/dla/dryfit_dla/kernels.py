"""Softmax as the DLA's optimized mode has it: an approximation whose error grows with the axis.

TensorRT's guide says of the mode only when it is taken (an extent of C, H or W beside the axis is more than 1), that
the axis has at most 1024 elements, that it approximates, and that the error grows as the axis comes near 1024. What is
computed is not published. This is our reading, made of the device's own means, a table and FP16 sums:

    t  = FP16(x - largest x)
    e  = FP16(table(t))          exp from 257 entries, -16 to 0 in steps of 1/16, linear between them in FP32
    s  = FP16(s + sum of 16)     the axis in blocks of 16, in order: FP32 inside a block, FP16 from block to block
    y  = FP16(e * FP16(1 / s))

A block of 16 is the width of the format CHW16. Each further block rounds the sum once more, so the error grows with the
axis. It shows how sensitive a network is to such a mode; it does not tell the device's own numbers.

Source: TensorRT 10 developer guide, DLA supported layers and restrictions: Softmax layer. Fidelity: inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.normalization import Softmax
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Kernel, Specs, kernel

TABLE_STEPS = 16
"""Entries a unit."""
TABLE_RANGE = 16
"""What lies further below 0 takes the last entry. exp(-16) is a step of the smallest numbers of FP16."""
BLOCK = 16
"""Elements that are summed in FP32."""
LARGEST_AXIS = 1024
"""Extent up to which the mode exists."""

TABLE: Array = np.exp(-np.arange(TABLE_RANGE * TABLE_STEPS + 1) / TABLE_STEPS).astype(np.float32)
"""exp of 0, -1/16, -2/16, ... -16, rounded to FP32 and stored as such."""


def is_optimized(shape: Sequence[int], axis: int) -> bool:
    """Whether the device takes its optimized mode: an extent of C, H or W beside the axis is more than 1."""
    others = [extent for place, extent in enumerate(shape) if place >= len(shape) - 3 and place != axis]
    return any(extent > 1 for extent in others) and 1 <= shape[axis] <= LARGEST_AXIS


def optimized_softmax(x: Array, axis: int) -> Array:
    """The approximation. NaN, and an infinity of either sign as the largest element, give NaN along the axis.

    Args:
        x: `float16`, of any shape.
        axis: along which results add up to about 1.

    Returns:
        `float16` of the same shape.
    """
    values = np.moveaxis(x, axis, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        below = (values - values.max(axis=0)).astype(np.float16)
        exponents = _looked_up(below)
        return np.moveaxis(exponents * (np.float16(1) / _sum(exponents)), 0, axis)


def _looked_up(below: Array) -> Array:
    """The exponential of numbers that are 0 or less, from the table."""
    place = np.minimum(-below.astype(np.float32), np.float32(TABLE_RANGE)) * np.float32(TABLE_STEPS)
    is_number = ~np.isnan(place)
    entry = np.minimum(np.where(is_number, place, 0).astype(np.int64), len(TABLE) - 2)
    part = place - entry.astype(np.float32)
    return np.asarray((TABLE[entry] + (TABLE[entry + 1] - TABLE[entry]) * part).astype(np.float16))


def _sum(values: Array) -> Array:
    """Sums along the first axis, as the module's text has them."""
    total = np.zeros(values.shape[1:], np.float16)
    for start in range(0, values.shape[0], BLOCK):
        block = np.zeros(values.shape[1:], np.float32)
        for one in values[start : start + BLOCK]:
            block = block + one.astype(np.float32)
        total = (total.astype(np.float32) + block).astype(np.float16)
    return total


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Softmax) or len(group.layers) > 1 or layer.inputs[0] is None:
        return False
    spec = specs[layer.inputs[0].name]
    return spec.is_static and is_optimized(spec.shape, layer.axis)


@kernel("dla.optimized_softmax", kinds="softmax", data_types=DataType.HALF, accepts=_accepts)
def take_optimized_softmax(binding: Binding) -> Callable[[], None]:
    """What computes the approximation."""
    (x,), (y,), layer = binding.inputs, binding.outputs, binding.group.main
    axis = layer.axis if isinstance(layer, Softmax) else -1

    def run() -> None:
        np.copyto(y, optimized_softmax(x, axis))

    return run


KERNELS: tuple[Kernel, ...] = (take_optimized_softmax,)
"""What the DLA computes in a way of its own; the host's kernels run the rest with the arithmetic that it declares."""

"""Dynamic quantize: NVFP4 and MXFP8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layers.dynamic_quantize import DynamicQuantize
from dryfit.reference.conversion import convert, limits
from dryfit.reference.registry import Array, reference


@reference(DynamicQuantize)
def dynamic_quantize(layer: DynamicQuantize, inputs: Sequence[Array | None]) -> list[Array]:
    """Data and scales, computed in FP32.

    The data is divided by the scale as it is stored, so that a dequantize layer with it comes close to the input. A
    block of zeros has a zero FP8 scale (the lowest E8M0 scale), and its data is zero.
    """
    x, outer = [*inputs, None][:2]
    if x is None:
        raise layer.problem("Input 0 is not connected")
    wide = np.moveaxis(x.astype(np.float32), layer.axis, -1)
    blocks = wide.reshape(*wide.shape[:-1], -1, layer.block_size)
    global_scale = np.float32(1) if outer is None else outer.astype(np.float32).reshape(())
    largest = np.float32(limits(layer.to_type)[1])
    exact = np.abs(blocks).max(axis=-1) / (largest * global_scale)
    scales = convert(exact, layer.scale_type)
    divisor = scales.astype(np.float32)[..., None] * global_scale
    ratio = np.divide(blocks, divisor, out=np.zeros_like(blocks), where=divisor != 0)
    data = convert(ratio, layer.to_type).reshape(wide.shape)
    return [np.moveaxis(data, -1, layer.axis), np.moveaxis(scales, -1, layer.axis)]

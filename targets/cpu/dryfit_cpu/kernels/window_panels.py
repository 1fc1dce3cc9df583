"""What sliding windows read beside the image: panels of weights, laid out as `compiler/window_variants.py` says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.compiler.window_variants import HIGH, LOW, REAL_SUMS, STARTS, Variants, group_rows
from dryfit_cpu.descriptors import WindowAxis
from dryfit_cpu.kernels.operands import aligned_empty


def channel_order(width: int) -> Array:
    """The channel, counted in the block, that each place of a panel for byte products belongs to.

    Bytes of rows are interleaved within each 16 bytes of a register, which leaves channels in this order; packing
    the results puts them right again.
    """
    places, lanes = np.arange(width), width // 4
    vector, lane = places // lanes, places % lanes
    return 16 * (lane // 4) + 4 * vector + lane % 4


def block_table(
    variants: Variants,
    channels: int,
    rows: WindowAxis,
    columns: WindowAxis,
    panels: Sequence[Array] = (),
) -> Array:
    """The blocks of an image as native functions read them.

    The panels of the blocks have to be kept; there are none where nothing is read from them.

    Returns:
        INT64 `[blocks, 4]`: first channel, width, number of the code, address of the panel or 0.
    """
    blocks = variants.blocks(channels)
    window = (rows.extent, columns.extent)
    addresses = [panel.ctypes.data for panel in panels] or [0] * len(blocks)
    return np.array(
        [
            (first, width, variants.number(window, columns.step, columns.dilation, width), address)
            for (first, width), address in zip(blocks, addresses, strict=True)
        ],
        np.int64,
    )


def outside_of(value: int) -> Array:
    """What padding is, for as many channels as a block may have."""
    bytes_of = aligned_empty((64,), np.int8)
    bytes_of[:] = value
    return bytes_of


def real_zeros() -> Array:
    """FP32 zeros, for as many channels as a block may have."""
    zeros = aligned_empty((max(REAL_SUMS.widths),), np.float32)
    zeros[:] = 0
    return zeros


@frozen
class Limits:
    """The limits of two roundings and what is between and after them, as `kernels/requantization.py` has them."""

    first: tuple[float, float]
    ratio: float
    last: tuple[float, float]
    zero_point: int = 0

    def header(self, *, has_bias: bool) -> Array:
        """The first 64 bytes of a panel."""
        words = np.zeros(STARTS // 4, np.int32)
        rounded = np.clip(np.rint(np.array(self.last)) + self.zero_point, -128, 127).astype(np.int8)
        words[:2] = np.repeat(rounded[:, None], 4, axis=1).view(np.int32)[:, 0]
        words[2:7] = np.array([*self.first, self.ratio, *self.last], np.float32).view(np.int32)
        words[7:9] = has_bias, self.zero_point
        return words.view(np.uint8)


def packed_panel(
    kernel: Array, bias: Array, multipliers: Array, limits: Limits, real_bias: Array | None = None
) -> Array:
    """The panel of a block.

    Of a kernel `[window rows, window columns, width]` in INT8, or distances from zero points in FP32; INT32 bias in
    units of the products, FP32 multipliers, and a real bias that is added to scaled sums.

    Returns:
        Bytes, aligned to 64.
    """
    rows, columns, width = kernel.shape
    has_bytes = current_tier().has_byte_products and kernel.dtype == np.int8
    # Made when the engine is loaded, not when it is built: the order of channels is this machine's.
    order = channel_order(width) if has_bytes else np.arange(width)
    kernel, bias = kernel[..., order], bias[order]
    if has_bytes:
        groups = -(-rows // 4)
        filled = np.zeros((4 * groups, columns, width), np.int8)
        filled[:rows] = kernel
        weights = filled.reshape(groups, 4, columns, width).transpose(2, 0, 3, 1)
        starts = bias - current_tier().byte_shift * kernel.sum(axis=(0, 1), dtype=np.int32)
    elif group_rows() == 2:
        groups = -(-rows // 2)
        pairs = np.zeros((2 * groups, columns, width), np.int16)
        pairs[:rows] = kernel
        weights, starts = pairs.reshape(groups, 2, columns, width).transpose(2, 0, 1, 3), bias
    else:
        weights, starts = kernel.swapaxes(0, 1).astype(np.float32), bias.astype(np.float32)
    added = np.zeros(width, np.float32) if real_bias is None else real_bias[order]
    parts = [limits.header(has_bias=real_bias is not None), starts, multipliers[order], added, weights]
    data = np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.uint8) for part in parts])
    panel = aligned_empty(data.shape, np.uint8)
    panel[:] = data
    return panel


def real_panel(kernel: Array, bias: Array, limits: tuple[float, float]) -> Array:
    """The panel of a block in FP32, as `compiler/depthwise_block.py` has it.

    Of a kernel `[window rows, window columns, width]` and a bias `[width]`.

    Returns:
        FP32, aligned to 64 bytes.
    """
    panel = aligned_empty((STARTS // 4 + bias.size + kernel.size,), np.float32)
    panel[: STARTS // 4] = 0
    panel[LOW // 4], panel[HIGH // 4] = limits
    panel[STARTS // 4 :] = np.concatenate([bias, kernel.swapaxes(0, 1).reshape(-1)])
    return panel

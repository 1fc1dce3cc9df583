"""Convolution whose window elements are each moved by an offset that is data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin, PluginField
from dryfit.network.layers.window_layer import PaddingMode, output_extent
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type
from dryfit_plugins.layers.bilinear import sample


class DeformableConvolution(LayerPlugin):
    """A 2-D convolution that reads `x` at moved positions, bilinearly, and weighted by a mask.

    Inputs: `x[N, C, H, W]`, `weights[K, C / group, kh, kw]`, `offset[N, offset_group * kh * kw * 2, oH, oW]` as (row,
    column) pairs, and optionally `bias[K]` and `mask[N, offset_group * kh * kw, oH, oW]`.
    Fields: `group`, `offset_group`, `kernel_shape`, `strides`, `pads`, `dilations`. Source: ONNX `DeformConv`.
    """

    plugin_name = "DeformConv"
    declared_fields = {
        "group": PluginField(int, default=1),
        "offset_group": PluginField(int, default=1),
        "kernel_shape": PluginField(tuple[int, ...], default=()),
        "strides": PluginField(tuple[int, int], default=(1, 1)),
        "pads": PluginField(tuple[int, int, int, int], default=(0, 0, 0, 0)),
        "dilations": PluginField(tuple[int, int], default=(1, 1)),
    }

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, K, oH, oW]` of the input's type."""
        if len(inputs) < 3 or any(spec is None for spec in inputs[:3]):
            raise ValueError("input, weights and offset are required")
        x, weights = inputs[0], inputs[1]
        if x is None or weights is None or x.rank != 4 or weights.rank != 4:
            raise ValueError("input and weights have two spatial axes")
        kernel = weights.shape[2:]
        strides, pads, dilations = (fields[name] for name in ("strides", "pads", "dilations"))
        extents = [_extent(x.shape[2 + a], kernel[a], strides[a], dilations[a], pads[a], pads[2 + a]) for a in range(2)]
        return [TensorSpec((x.shape[0], weights.shape[0], *extents), x.dtype)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The convolution, computed in FP32 at least."""
        x, weights, offset = (np.asarray(array) for array in inputs[:3])
        bias = inputs[3] if len(inputs) > 3 else None
        mask = inputs[4] if len(inputs) > 4 else None
        work = compute_type(x.dtype)
        groups, offset_groups = fields["group"], fields["offset_group"]
        batch, channels = x.shape[:2]
        outputs, kernel_height, kernel_width = weights.shape[0], *weights.shape[2:]
        height, width = offset.shape[2:]
        taps = kernel_height * kernel_width
        moves = offset.reshape(batch, offset_groups, taps, 2, height, width).astype(np.float64)
        weight = np.ones((batch, offset_groups, taps, height, width), work)
        if mask is not None:
            weight = mask.reshape(weight.shape).astype(work)
        strides, pads, dilations = (fields[name] for name in ("strides", "pads", "dilations"))
        rows = np.arange(height)[:, None] * strides[0] - pads[0]
        columns = np.arange(width)[None, :] * strides[1] - pads[1]
        taken = np.empty((batch, channels, taps, height, width), work)
        share = channels // offset_groups
        for index in np.ndindex(batch, offset_groups, taps):
            n, group, tap = index
            y = rows + tap // kernel_width * dilations[0] + moves[n, group, tap, 0]
            z = columns + tap % kernel_width * dilations[1] + moves[n, group, tap, 1]
            chosen = slice(group * share, (group + 1) * share)
            taken[n, chosen, tap] = sample(x[n, chosen].astype(work), y, z) * weight[n, group, tap]
        matrix = weights.astype(work).reshape(groups, outputs // groups, -1)
        columns_by_group = taken.reshape(batch, groups, -1, height * width)
        result = np.matmul(matrix, columns_by_group).reshape(batch, outputs, height, width)
        if bias is not None:
            result = result + bias.astype(work)[:, None, None]
        return [result.astype(x.dtype)]


def _extent(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """The output's extent along an axis; -1 where the input's or the kernel's is not known."""
    if kernel < 0:
        return -1
    return output_extent(PaddingMode.EXPLICIT_ROUND_DOWN, extent, kernel, stride, dilation, before, after)


PLUGIN = DeformableConvolution()

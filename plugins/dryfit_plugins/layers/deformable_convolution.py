"""Convolution whose window elements are each moved by an offset that is data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layers.plugin import Fields
from dryfit.network.layers.spatial_window import PaddingMode, output_extent
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type
from dryfit_plugins.layers.bilinear import sample

Array = np.ndarray[Any, Any]


class DeformableConvolution:
    """A 2-D convolution that reads `x` at moved positions, bilinearly, and weighted by a mask.

    Inputs: `x[N, C, H, W]`, `weights[K, C / group, kh, kw]`, `offset[N, offset_group * kh * kw * 2, oH, oW]` as (row,
    column) pairs, and optionally `bias[K]` and `mask[N, offset_group * kh * kw, oH, oW]`.
    Fields: `group`, `offset_group`, `kernel_shape`, `strides`, `pads`, `dilations`. Source: ONNX `DeformConv`.
    """

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, K, oH, oW]` of the input's type."""
        if len(inputs) < 3 or any(spec is None for spec in inputs[:3]):
            raise ValueError("input, weights and offset are required")
        x, weights = inputs[0], inputs[1]
        if x is None or weights is None or x.rank != 4 or weights.rank != 4:
            raise ValueError("input and weights have two spatial axes")
        kernel = weights.shape[2:]
        strides, dilations, pads = _window(fields)
        extents = [
            output_extent(
                PaddingMode.EXPLICIT_ROUND_DOWN,
                x.shape[2 + a],
                kernel[a],
                strides[a],
                dilations[a],
                pads[a],
                pads[2 + a],
            )
            for a in range(2)
        ]
        return [TensorSpec((x.shape[0], weights.shape[0], *extents), x.dtype)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The convolution, computed in FP32 at least."""
        x, weights, offset = (np.asarray(array) for array in inputs[:3])
        bias = inputs[3] if len(inputs) > 3 else None
        mask = inputs[4] if len(inputs) > 4 else None
        work = compute_type(x.dtype)
        groups, offset_groups = int(str(fields["group"])), int(str(fields["offset_group"]))
        batch, channels = x.shape[:2]
        outputs, kernel_height, kernel_width = weights.shape[0], *weights.shape[2:]
        height, width = offset.shape[2:]
        taps = kernel_height * kernel_width
        moves = offset.reshape(batch, offset_groups, taps, 2, height, width).astype(np.float64)
        weight = np.ones((batch, offset_groups, taps, height, width), work)
        if mask is not None:
            weight = mask.reshape(weight.shape).astype(work)
        strides, dilations, pads = _window(fields)
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


def _window(fields: Fields) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(strides, dilations, pads)."""
    strides, dilations, pads = (
        fields.get(name) or default
        for name, default in (("strides", (1, 1)), ("dilations", (1, 1)), ("pads", (0, 0, 0, 0)))
    )
    if not (isinstance(strides, tuple) and isinstance(dilations, tuple) and isinstance(pads, tuple) and len(pads) == 4):
        raise ValueError("strides and dilations have two values, pads four")
    return strides, dilations, pads


PLUGIN = DeformableConvolution()

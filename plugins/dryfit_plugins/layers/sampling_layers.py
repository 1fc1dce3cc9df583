"""Layers that read a picture between its elements: regions pooled to one size, and deformable convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Fields, LayerPlugin, PluginField
from dryfit.network.layers.window_layer import PaddingMode, output_extent
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.registry import compute_type
from dryfit_plugins.layers.onnx_operators import require_floating_point


def corners(position: Array, extent: int) -> tuple[Array, Array, Array]:
    """(lower index, upper index, weight of the upper one) along an axis, for positions inside `[0, extent - 1]`."""
    low = np.clip(np.floor(position).astype(np.int64), 0, extent - 1)
    high = np.minimum(low + 1, extent - 1)
    return low, high, np.clip(position - low, 0, 1)


def sample(picture: Array, rows: Array, columns: Array) -> Array:
    """`picture[..., rows, columns]` between elements, the four neighbours weighted; 0 where outside by 1 or more.

    Args:
        picture: `[..., H, W]`.
        rows: positions on the axis before the last.
        columns: positions on the last axis, in the shape of `rows`.
    """
    height, width = picture.shape[-2:]
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = rows - top, columns - left
    total = np.zeros(picture.shape[:-2] + rows.shape, picture.dtype)
    for row, row_weight in ((top, 1 - down), (top + 1, down)):
        for column, column_weight in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            values = picture[..., np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
            total += values * (inside * row_weight * column_weight).astype(picture.dtype)
    return total


class RegionAlign(LayerPlugin):
    """`[regions, C, output_height, output_width]`: each bin is the average or maximum of points read bilinearly.

    Inputs: `x[N, C, H, W]`, regions `[R, 4]` as (x1, y1, x2, y2), and for each region its index of N.
    Fields: `mode` (`avg`, `max`), `output_height`, `output_width`, `sampling_ratio` (points per bin and axis; 0 derives
    it from the region's extent), `spatial_scale`, `coordinate_transformation_mode`. Source: ONNX `RoiAlign`.
    """

    plugin_name = "RoiAlign"
    declared_fields = {
        "mode": PluginField(str, default="avg"),
        "output_height": PluginField(int, default=1),
        "output_width": PluginField(int, default=1),
        "sampling_ratio": PluginField(int, default=0),
        "spatial_scale": PluginField(float, default=1.0),
        "coordinate_transformation_mode": PluginField(str, default="half_pixel"),
    }

    def output_specs(self, fields: Fields, inputs: Inputs) -> Sequence[TensorSpec]:
        """The shape above, of the input's type."""
        x, regions = inputs[0], inputs[1] if len(inputs) == 3 else None
        if x is None or regions is None or x.rank != 4 or regions.rank != 2:
            raise ValueError("the inputs must be x[N, C, H, W], regions[R, 4] and batch indices[R]")
        require_floating_point(x)
        height, width = fields["output_height"], fields["output_width"]
        return [TensorSpec((regions.shape[0], x.shape[1], height, width), x.dtype)]

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> list[Array]:
        """The pooled regions, computed in FP32 at least."""
        x, regions, batch = (np.asarray(array) for array in inputs[:3])
        work = compute_type(x.dtype)
        height, width = fields["output_height"], fields["output_width"]
        output = np.empty((regions.shape[0], x.shape[1], height, width), work)
        for index, region in enumerate(regions.astype(np.float64)):
            picture = x[int(batch[index])].astype(work)
            output[index] = _pooled(picture, region, height, width, fields)
        return [output.astype(x.dtype)]


def _pooled(picture: Array, region: Array, height: int, width: int, fields: Fields) -> Array:
    half_pixel = fields["coordinate_transformation_mode"] == "half_pixel"
    left, top, right, bottom = region * fields["spatial_scale"] - (0.5 if half_pixel else 0.0)
    tall, wide = bottom - top, right - left
    if not half_pixel:  # regions of no extent were enlarged before half pixels came
        tall, wide = max(tall, 1.0), max(wide, 1.0)
    ratio = fields["sampling_ratio"]
    points_y = ratio if ratio > 0 else math.ceil(tall / height)
    points_x = ratio if ratio > 0 else math.ceil(wide / width)
    row_weights = _points(top, tall / height, height, points_y, picture.shape[1])
    column_weights = _points(left, wide / width, width, points_x, picture.shape[2])
    (y0, y1, dy, inside_y), (x0, x1, dx, inside_x) = row_weights, column_weights
    dy, dx = dy[:, None].astype(picture.dtype), dx[None, :].astype(picture.dtype)
    terms = [
        picture[:, y0[:, None], x0] * ((1 - dy) * (1 - dx)),
        picture[:, y0[:, None], x1] * ((1 - dy) * dx),
        picture[:, y1[:, None], x0] * (dy * (1 - dx)),
        picture[:, y1[:, None], x1] * (dy * dx),
    ]
    inside = inside_y[:, None] & inside_x[None, :]
    shape = (picture.shape[0], height, points_y, width, points_x)
    if fields["mode"] == "avg":
        return np.asarray(np.where(inside, sum(terms), 0).reshape(shape).mean(axis=(2, 4)))
    # The maximum is over the weighted neighbours, not over their sums: this is how ONNX defines the operator.
    largest = np.maximum.reduce([np.where(inside, term, 0) for term in terms])
    return np.asarray(largest.reshape(shape).max(axis=(2, 4)))


def _points(start: float, bin_extent: float, bins: int, points: int, extent: int) -> tuple[Array, Array, Array, Array]:
    """(lower index, upper index, weight of the upper, inside) of every sampling point along an axis."""
    offsets = (np.arange(points) + 0.5) * bin_extent / points
    position = (start + np.arange(bins)[:, None] * bin_extent + offsets).reshape(-1)
    inside = (position >= -1.0) & (position <= extent)
    return *corners(np.clip(position, 0, extent - 1), extent), inside


REGION_ALIGN = RegionAlign()


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
            raise ValueError("input and weights must have two spatial axes")
        require_floating_point(x)
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


DEFORMABLE_CONVOLUTION = DeformableConvolution()

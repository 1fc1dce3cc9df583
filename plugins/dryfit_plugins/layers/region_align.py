"""Regions of a picture, pooled to one size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dryfit.network.layer import Inputs
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin, PluginField
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import compute_type
from dryfit_plugins.layers.bilinear import corners


class RegionAlign(LayerPlugin):
    """`[regions, C, output_height, output_width]`: each bin is the average or maximum of points read bilinearly.

    Inputs: `x[N, C, H, W]`, regions `[R, 4]` as (x1, y1, x2, y2), and for each region its index of N.
    Fields: `mode` (`avg`, `max`), `output_height`, `output_width`, `sampling_ratio` (points a bin and axis; 0 follows
    from the region's extent), `spatial_scale`, `coordinate_transformation_mode`. Source: ONNX `RoiAlign`.
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
            raise ValueError("the inputs are x[N, C, H, W], regions[R, 4] and batch indices[R]")
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


PLUGIN = RegionAlign()

"""Operators that sample a tensor on another grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dryfit.network.data_types import DataType
from dryfit.network.layers.resize import (
    GridSample,
    InterpolationMode,
    Resize,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.network.layers.slice import SampleMode
from dryfit.onnx.composition import cast, positive_axes
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.tensors import NodeInput

_MODES = {
    "nearest": InterpolationMode.NEAREST,
    "linear": InterpolationMode.LINEAR,
    "bilinear": InterpolationMode.LINEAR,
    "cubic": InterpolationMode.CUBIC,
    "bicubic": InterpolationMode.CUBIC,
}
_ROUNDING = {
    "round_prefer_floor": ResizeRoundMode.HALF_DOWN,
    "round_prefer_ceil": ResizeRoundMode.HALF_UP,
    "floor": ResizeRoundMode.FLOOR,
    "ceil": ResizeRoundMode.CEIL,
}
_TRANSFORMATIONS = {member.value: member for member in ResizeCoordinateTransformation}


@operator("Upsample", "Resize")
def upsample(node: Node) -> NodeInput:
    """Resize."""
    mode = _MODES[node.choice("mode", "nearest", ("nearest", "linear", "bilinear"))]
    layer = Resize(resize_mode=mode, coordinate_transformation=ResizeCoordinateTransformation.ASYMMETRIC)
    scales = node.get_floats("scales")
    if scales is not None:
        layer.scales = scales
        return node.add(layer, node[0])
    return _with_scales(node, layer, node[1])


@operator("Resize", since=11)
def resize(node: Node) -> NodeInput:
    """Resize."""
    x = node[0]
    word = node.choice("coordinate_transformation_mode", "half_pixel", tuple(_TRANSFORMATIONS))
    transformation, selector = _TRANSFORMATIONS[word], ResizeSelector.FORMULA
    if transformation is ResizeCoordinateTransformation.PYTORCH_HALF_PIXEL:
        # The same places, in the form that devices have: only an output extent of 1 takes the first element.
        transformation, selector = ResizeCoordinateTransformation.HALF_PIXEL, ResizeSelector.UPPER
    layer = Resize(
        resize_mode=_MODES[node.choice("mode", "nearest", ("nearest", "linear", "cubic"))],
        coordinate_transformation=transformation,
        selector_for_single_pixel=selector,
        nearest_rounding=_ROUNDING[node.choice("nearest_mode", "round_prefer_floor", tuple(_ROUNDING))],
        exclude_outside=bool(node.get_int("exclude_outside", 0)),
        cubic_coeff=node.get_float("cubic_coeff_a", -0.75),
        antialias=bool(node.get_int("antialias", 0)),
        extrapolation_value=node.get_float("extrapolation_value", 0.0),
    )
    axes = node.get_ints("axes")
    axes = None if axes is None else positive_axes(node, axes, x.rank)
    roi = _given(node, 1) if transformation is ResizeCoordinateTransformation.TF_CROP_AND_RESIZE else None
    if roi is not None:
        values = node.known(roi, "The region of interest").reshape(-1).tolist()
        half = len(values) // 2
        layer.roi = (
            *_on_all_axes(node, x, axes, values[:half], [0.0] * x.rank),
            *_on_all_axes(node, x, axes, values[half:], [1.0] * x.rank),
        )
    scales, sizes = _given(node, 2), _given(node, 3)
    if scales is not None and axes is None:
        return _with_scales(node, layer, scales)
    if scales is not None:
        values = node.known(scales, "The scales of some axes").tolist()
        layer.scales = tuple(_on_all_axes(node, x, axes, values, [1.0] * x.rank))
        return node.add(layer, x)
    if sizes is None:
        raise node.refusal(
            "Exactly one of scales and sizes must be given",
            code=ErrorCode.INVALID_NODE,
            remedy="Remove one of the two inputs",
        )
    policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if not sizes.is_known and axes is None and policy == "stretch":
        return node.add(layer, x, cast(node, sizes, DataType.INT64))
    values = [int(size) for size in node.known(sizes, "The sizes")]
    if policy != "stretch":
        values, layer.scales = _keeping_ratio(node, x, axes, values, larger=policy == "not_smaller")
    keep = x.shape if axes is None or policy != "stretch" or len(axes) == x.rank else node.static_shape(x, "The input")
    layer.shape = tuple(int(size) for size in _on_all_axes(node, x, axes, values, keep))
    return node.add(layer, x)


def _given(node: Node, index: int) -> NodeInput | None:
    """An input, unless it is absent or an empty list, which stands for absent."""
    operand = node.input(index)
    return None if operand is None or operand.shape == (0,) else operand


def _with_scales(node: Node, layer: Resize, scales: NodeInput) -> NodeInput:
    if scales.value is None:
        return node.add(layer, node[0], None, scales)
    layer.scales = tuple(scales.value.tolist())
    return node.add(layer, node[0])


def _on_all_axes(
    node: Node, x: NodeInput, axes: Sequence[int] | None, values: Sequence[Any], others: Sequence[Any]
) -> list[Any]:
    """Values of some axes put among those of the others."""
    axes = tuple(range(x.rank)) if axes is None else axes
    if len(values) != len(axes):
        raise node.refusal(
            "There must be one value per axis",
            code=ErrorCode.INVALID_VALUE,
            found=len(values),
            allowed=len(axes),
            remedy="Specify one value per axis",
        )
    merged = list(others)
    for axis, value in zip(axes, values, strict=True):
        merged[axis] = value
    return merged


def _keeping_ratio(
    node: Node, x: NodeInput, axes: Sequence[int] | None, sizes: Sequence[int], *, larger: bool
) -> tuple[list[int], tuple[float, ...]]:
    """(sizes, scales of all axes) with one scale for the resized axes: the smallest or largest that is asked for."""
    shape = node.static_shape(x, "The input of a Resize that keeps the aspect ratio")
    resized = tuple(range(x.rank)) if axes is None else tuple(axes)
    ratios = [size / shape[axis] for axis, size in zip(resized, sizes, strict=True)]
    scale = max(ratios) if larger else min(ratios)
    new = [math.floor(scale * shape[axis] + 0.5) for axis in resized]
    return new, tuple(scale if axis in resized else 1.0 for axis in range(x.rank))


_BORDERS = {"zeros": SampleMode.FILL, "border": SampleMode.CLAMP, "reflection": SampleMode.REFLECT}


@operator("GridSample")
def grid_sample(node: Node) -> NodeInput:
    """Grid sample."""
    layer = GridSample(
        interpolation_mode=_MODES[node.choice("mode", "bilinear", tuple(_MODES))],
        align_corners=bool(node.get_int("align_corners", 0)),
        sample_mode=_BORDERS[node.choice("padding_mode", "zeros", tuple(_BORDERS))],
    )
    return node.add(layer, node[0], node[1])

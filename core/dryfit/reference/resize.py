"""Resize, one axis after the other, and the interpolation kernels that grid sample shares.

Places are computed in FP32, as ONNX Runtime and devices do: in FP64 a scale such as 0.6 would put places on the
other side of an integer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layers.resize import (
    InterpolationMode,
    Resize,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
)
from dryfit.network.tensor import Array
from dryfit.reference.precision import cut_off, rounded, widened
from dryfit.reference.registry import reference


def linear_kernel(distance: Array) -> Array:
    """The weight of an element at this distance: a triangle of half width 1."""
    weight: Array = np.maximum(1 - np.abs(distance), 0)
    return weight


def cubic_kernel(distance: Array, a: float) -> Array:
    """The weight of an element at this distance: Keys' cubic convolution of half width 2.

    Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981; ONNX `Resize`.
    """
    d = np.abs(distance)
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0))


_F = np.float32


@frozen
class ResizedAxis:
    """One axis of a resize.

    Attributes:
        axis: which one.
        extent: of the input.
        output: extent of the output.
        length: the output's extent before it was rounded down, for ALIGN_CORNERS.
        scale: output by input.
        start: where the crop starts; 0 is the input's first element.
        end: where the crop ends; 1 is the input's last element.
    """

    axis: int
    extent: int
    output: int
    length: np.float32
    scale: np.float32
    start: np.float32
    end: np.float32

    @property
    def is_copied(self) -> bool:
        """Whether the output has the input's elements, but for a crop."""
        return self.extent == self.output and bool(self.scale == 1)


@reference(Resize)
def resize(layer: Resize, inputs: Sequence[Any]) -> list[Array]:
    """The input sampled at the places of the output's indices.

    NEAREST copies elements; the other modes are computed in floating-point numbers and rounded once. Linear ones of
    integers drop the fraction instead, toward zero.

    Source: ONNX Runtime (integers, linear) and ONNX's reference (integers, cubic and antialiased).

    Raises:
        NetworkError: the extents or scales that the inputs hold do not fit.
    """
    x: Array = inputs[0]
    axes = axes_of(layer, inputs)
    is_crop = layer.coordinate_transformation is ResizeCoordinateTransformation.TF_CROP_AND_RESIZE
    is_nearest = layer.resize_mode is InterpolationMode.NEAREST
    if any(a.extent == 0 and a.output for a in axes):
        raise layer.problem(
            "An empty axis cannot be extended", found=x.shape, remedy="Use an axis with at least one element"
        )
    if _drops_fractions(layer, x):
        # ONNX Runtime blends INT32 in FP32 too.
        y = _blended(layer, x.astype(np.float32 if x.itemsize <= 4 else np.float64), axes)
        return [cut_off(_with_extrapolation(layer, y, axes) if is_crop else y, x.dtype)]
    y = x if is_nearest else widened(x)
    for a in axes:
        if a.is_copied and not is_crop:
            continue
        places = places_of(layer, a)
        y = y.take(_nearest(layer, places, a), axis=a.axis) if is_nearest else _interpolated(layer, y, places, a)
    if is_crop:
        y = _with_extrapolation(layer, y, axes)
    return [y if is_nearest else rounded(y, x.dtype)]


def _drops_fractions(layer: Resize, x: Array) -> bool:
    is_plain = layer.resize_mode is InterpolationMode.LINEAR and not layer.antialias and not layer.exclude_outside
    return is_plain and DataType.from_numpy(x.dtype).is_integer


def axes_of(layer: Resize, inputs: Sequence[Any]) -> list[ResizedAxis]:
    """What is known of each axis of input 0, from parameters or inputs.

    Raises:
        NetworkError: extents or scales do not fit.
    """
    x, shape, scales, roi = (*inputs, None, None, None)[:4]
    shape = layer.shape if shape is None else shape.ravel().tolist()
    scales = layer.scales if scales is None else scales.ravel().tolist()
    roi = layer.roi if roi is None else roi.ravel().tolist()
    for name, values, count in (("shape", shape, x.ndim), ("scales", scales, x.ndim), ("roi", roi, 2 * x.ndim)):
        if len(values) not in (0, count):
            raise layer.problem(
                f"`{name}` has the wrong number of values",
                found=tuple(values),
                allowed=count,
                remedy="Specify one value per axis",
            )
    if min(shape, default=0) < 0 or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise layer.problem(
            "Dimensions must be at least 0, and scales finite and greater than 0",
            found=f"{tuple(shape)}, {tuple(scales)}",
            remedy="Fix shape or scales",
        )
    outputs = layer.output_extents(x.shape, shape or None, scales or None, roi or None)
    lengths = [_F(output) for output in outputs]
    if scales:
        lengths = [_F(extent) * _F(scale) for extent, scale in zip(x.shape, scales, strict=True)]
    if not scales:
        scales = [_F(output) / _F(max(extent, 1)) for output, extent in zip(outputs, x.shape, strict=True)]
    roi = roi or (0.0,) * x.ndim + (1.0,) * x.ndim
    return [
        ResizedAxis(
            axis,
            x.shape[axis],
            outputs[axis],
            lengths[axis],
            _F(scales[axis]),
            _F(roi[axis]),
            _F(roi[axis + x.ndim]),
        )
        for axis in range(x.ndim)
    ]


def places_of(layer: Resize, a: ResizedAxis) -> Array:
    """The place in the input, `float32[output]`, of each output index."""
    kind, mode = layer.coordinate_transformation, ResizeCoordinateTransformation
    index, half, last = np.arange(a.output, dtype=_F), _F(0.5), _F(a.extent - 1)
    if a.output == 1 and layer.selector_for_single_pixel is ResizeSelector.UPPER:
        return np.zeros(1, _F)
    if kind is mode.ASYMMETRIC:
        return index / a.scale
    if kind is mode.ALIGN_CORNERS:
        return index * last / (a.length - _F(1)) if a.length > 1 else np.zeros(a.output, _F)
    if kind is mode.TF_HALF_PIXEL_FOR_NN:
        return (index + half) / a.scale
    if kind is mode.PYTORCH_HALF_PIXEL and a.output == 1:
        return np.zeros(1, _F)
    if kind is mode.TF_CROP_AND_RESIZE:
        if a.output == 1:
            return np.array([half * (a.start + a.end) * last], _F)
        return a.start * last + index * (a.end - a.start) * last / _F(a.output - 1)
    places = (index + half) / a.scale - half
    if kind is mode.HALF_PIXEL_SYMMETRIC:
        # The output's extent was rounded down: shift, so that what was lost is lost on both sides alike.
        adjustment = _F(a.output) / (a.scale * _F(a.extent))
        places = _F(a.extent) / _F(2) * (_F(1) - adjustment) + places
    return places


def _nearest(layer: Resize, places: Array, a: ResizedAxis) -> Array:
    mode = layer.nearest_rounding
    if mode is ResizeRoundMode.FLOOR:
        index = np.floor(places)
    elif mode is ResizeRoundMode.CEIL:
        index = np.ceil(places)
    elif mode is ResizeRoundMode.HALF_UP:
        index = np.floor(places + _F(0.5))
    else:
        index = np.ceil(places - _F(0.5))
    return np.clip(index, 0, a.extent - 1).astype(np.intp)


def _blended(layer: Resize, y: Array, axes: Sequence[ResizedAxis]) -> Array:
    """Linear interpolation over all resized axes at once: the elements around each place, weighted and added.

    Where a fraction is dropped afterwards, the last bit of the sum decides. So weights and sums have the order of ONNX
    Runtime: the last axis's weight first, and its two elements after one another; the last two axes always take part.
    """
    is_crop = layer.coordinate_transformation is ResizeCoordinateTransformation.TF_CROP_AND_RESIZE
    resized = [a.axis for a in axes if is_crop or not a.is_copied]
    if not resized:
        return y
    around = axes[max(min(*resized, len(axes) - 2), 0) :]
    total = np.zeros((), y.dtype)
    for corner in itertools.product(*(_two_sides(layer, a) for a in around)):
        weight, elements = np.ones((), np.float32), y
        for a, (index, side) in zip(reversed(around), reversed(corner), strict=True):
            weight = weight * side.reshape(-1, *(1,) * (y.ndim - a.axis - 1))
            elements = elements.take(index, axis=a.axis)
        total = total + weight * elements
    return total


def _two_sides(layer: Resize, a: ResizedAxis) -> list[tuple[Array, Array]]:
    """(indices, FP32 weights) of the elements before and after each place; at the end of the input they are one."""
    places = np.clip(places_of(layer, a), _F(0), _F(a.extent - 1)).astype(_F)
    lower = np.minimum(places.astype(np.intp), a.extent - 1)
    upper = np.minimum(lower + 1, a.extent - 1)
    is_one = lower == upper
    distances = (np.abs(places - index.astype(_F)) for index in (upper, lower))
    return [(index, np.where(is_one, _F(0.5), weight)) for index, weight in zip((lower, upper), distances, strict=True)]


def _interpolated(layer: Resize, y: Array, places: Array, a: ResizedAxis) -> Array:
    """The axis sampled: a weighted sum of the elements around each place."""
    is_cubic = layer.resize_mode is InterpolationMode.CUBIC
    stretch = min(float(a.scale), 1.0) if layer.antialias else 1.0
    reach = math.floor((2 if is_cubic else 1) / stretch)
    reach += layer.antialias  # One more on each side: its weight is 0 where it is not needed.
    first = np.floor(places)
    taps = first[:, None].astype(np.intp) + np.arange(1 - reach, reach + 1)
    distance = (taps - places[:, None].astype(np.float64)) * stretch
    weights = cubic_kernel(distance, layer.cubic_coeff) if is_cubic else linear_kernel(distance)
    if layer.exclude_outside:
        weights = np.where((taps >= 0) & (taps < a.extent), weights, 0)
    if layer.exclude_outside or layer.antialias:
        weights /= weights.sum(axis=1, keepdims=True)
    taps = np.clip(taps, 0, a.extent - 1)
    weights = weights.astype(y.dtype).reshape(*weights.shape, *(1,) * (y.ndim - a.axis - 1))
    total = np.zeros((*y.shape[: a.axis], a.output, *y.shape[a.axis + 1 :]), y.dtype)
    for tap in range(taps.shape[1]):
        total += y.take(taps[:, tap], axis=a.axis) * weights[:, tap]
    return total


def _with_extrapolation(layer: Resize, y: Array, axes: Sequence[ResizedAxis]) -> Array:
    """The extrapolation value where the place of any axis is outside the input."""
    outside = np.zeros((1,) * y.ndim, np.bool_)
    for a in axes:
        places = places_of(layer, a)
        shape = [1] * y.ndim
        shape[a.axis] = -1
        outside = outside | ((places < 0) | (places > a.extent - 1)).reshape(shape)
    return np.where(outside, np.asarray(layer.extrapolation_value).astype(y.dtype), y)

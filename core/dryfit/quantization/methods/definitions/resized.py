"""Bilinear resizing of images `[N, C, H, W]`: which rows and columns a library blends, and with which weights.

Codes are blended as they are: input and output have one grid. A place is the coordinate in the input of an output
index; `lower` and `upper` are the two indices around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layers.resize import ResizeCoordinateTransformation
from dryfit.network.tensor import Array
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import shifted_right
from dryfit.reference.registry import evaluate

_F = np.float32
_KIND = ResizeCoordinateTransformation
_SPATIAL = (2, 3)


@frozen(eq=False)
class Blend:
    """What an output index takes of an axis.

    Attributes:
        lower, upper: indices of the input, `intp[output]`.
        part: the weight of `upper`, of the output's extent; integers in units of 2**-bits, or FP32.
        rest: the weight of `lower`.
    """

    lower: Array
    upper: Array
    part: Array
    rest: Array


def resized_by_whole_places(call: OperatorCall, rule: MethodRule) -> Array:
    """Places with 10 bits behind the point, whole numbers throughout, the sum of 20 bits rounded as the rule says.

    s = (1024 in + out div 2) div out, for aligned corners (1024 (in - 1) + (out - 1) div 2) div (out - 1);
    p = i s, for half pixels i s + s div 2 - 512; lower = max(trunc(p / 1024), 0), upper = trunc((p + 1023) / 1024).
    """

    def blend(extent: int, output: int, kind: ResizeCoordinateTransformation) -> Blend:
        is_aligned = kind is _KIND.ALIGN_CORNERS and output > 1
        span, steps = (extent - 1, output - 1) if is_aligned else (extent, output)
        step = (1024 * span + steps // 2) // steps
        places = np.arange(output, dtype=np.int64) * step
        if kind is _KIND.HALF_PIXEL:
            places += step // 2 - 512
        lower = np.maximum(_truncated(places, 1024), 0)
        upper = np.minimum(_truncated(places + 1023, 1024), extent - 1)
        part = places - 1024 * lower
        return Blend(lower, upper, part, 1024 - part)

    return _blended_integers(call, rule, 10, blend)


def resized_by_whole_weights(call: OperatorCall, rule: MethodRule) -> Array:
    """Places in FP32 within the input, weights rte(fraction * 2048), the sum of 22 bits rounded as the rule says."""

    def blend(extent: int, output: int, kind: ResizeCoordinateTransformation) -> Blend:
        step = _step(extent, output, kind)
        places = np.arange(output, dtype=_F) * step
        if kind is _KIND.HALF_PIXEL:
            places = places + (_F(0.5) * step - _F(0.5))
        places = np.clip(places, _F(0), _F(extent - 1))
        lower = places.astype(np.intp)
        part = np.rint((places - lower.astype(_F)) * _F(2048)).astype(np.int64)
        return Blend(lower, np.minimum(lower + 1, extent - 1), part, 2048 - part)

    return _blended_integers(call, rule, 11, blend)


def resized_in_real_numbers(call: OperatorCall, rule: MethodRule) -> Array:
    """FP32: places outside the input extrapolate from its edge to itself; a half is added and the rest cut off.

    The products are added in the order (y0, x0), (y1, x0), (y0, x1), (y1, x1), each `x * weight of y * weight of x`.
    """
    del rule
    x, (rows, columns) = call.operand(0).values.astype(_F), _blends(call, _extrapolated)
    down, stay = rows.part[:, None], rows.rest[:, None]
    total: Array = x[..., rows.lower, :][..., columns.lower] * stay * columns.rest
    total = total + x[..., rows.upper, :][..., columns.lower] * down * columns.rest
    total = total + x[..., rows.lower, :][..., columns.upper] * stay * columns.part
    total = total + x[..., rows.upper, :][..., columns.upper] * down * columns.part
    return np.trunc(total + _F(0.5)).astype(np.int32).astype(call.to_type.numpy)


def resized_by_products_of_weights(call: OperatorCall, rule: MethodRule) -> Array:
    """As `resized_in_real_numbers`, but x * f32(weight of y * weight of x): (y0, x0), (y0, x1), (y1, x0), (y1, x1)."""
    del rule
    x, (rows, columns) = call.operand(0).values.astype(_F), _blends(call, _extrapolated)
    down, stay = rows.part[:, None], rows.rest[:, None]
    total: Array = x[..., rows.lower, :][..., columns.lower] * (stay * columns.rest)
    total = total + x[..., rows.lower, :][..., columns.upper] * (stay * columns.part)
    total = total + x[..., rows.upper, :][..., columns.lower] * (down * columns.rest)
    total = total + x[..., rows.upper, :][..., columns.upper] * (down * columns.part)
    return np.trunc(total + _F(0.5)).astype(np.int32).astype(call.to_type.numpy)


def _extrapolated(extent: int, output: int, kind: ResizeCoordinateTransformation) -> Blend:
    """Places in FP32 that may lie outside the input: the part of `upper` is below 0 or above 1 there."""
    step, index = _step(extent, output, kind), np.arange(output, dtype=_F)
    places = (index + _F(0.5)) * step - _F(0.5) if kind is _KIND.HALF_PIXEL else index * step
    lower = np.maximum(np.floor(places), 0).astype(np.intp)
    upper = np.minimum(np.ceil(places), extent - 1).astype(np.intp)
    part = places - lower.astype(_F)
    return Blend(lower, upper, part, _F(1) - part)


def resized_and_cut_off(call: OperatorCall, rule: MethodRule) -> Array:
    """FP32 at ONNX's places within the input, as `dryfit.reference` resizes integers: the fraction is dropped."""
    del rule
    return evaluate(call.layer, [call.operand(0).values])[0].astype(call.to_type.numpy)


def _blended_integers(
    call: OperatorCall, rule: MethodRule, bits: int, blend: Callable[[int, int, ResizeCoordinateTransformation], Blend]
) -> Array:
    """Weights of `bits` bits on both axes: exact sums, one rounding."""
    x, (rows, columns) = call.operand(0).values.astype(np.int64), _blends(call, blend)
    between_rows = x[..., rows.lower, :] * rows.rest[:, None] + x[..., rows.upper, :] * rows.part[:, None]
    total = between_rows[..., columns.lower] * columns.rest + between_rows[..., columns.upper] * columns.part
    return shifted_right(total, 2 * bits, rule.record.rounding).astype(call.to_type.numpy)


def _blends(
    call: OperatorCall, blend: Callable[[int, int, ResizeCoordinateTransformation], Blend]
) -> tuple[Blend, Blend]:
    layer: Any = call.layer
    extents, outputs = call.operand(0).values.shape, call.output_shape
    rows, columns = (blend(extents[axis], outputs[axis], layer.coordinate_transformation) for axis in _SPATIAL)
    return rows, columns


def _step(extent: int, output: int, kind: ResizeCoordinateTransformation) -> np.float32:
    """Input by output extent in FP32; of what lies between the centres of the corners where these are aligned."""
    is_aligned = kind is _KIND.ALIGN_CORNERS and output > 1
    return _F(extent - is_aligned) / _F(output - is_aligned)


def _truncated(values: Array, divisor: int) -> Array:
    """The quotient without its fraction, toward zero."""
    return np.asarray(np.sign(values) * (np.abs(values) // divisor))

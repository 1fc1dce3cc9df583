"""The integers of quantized operators: grids of codes, and biases in the unit of a layer's sums.

A grid has the scales and zero points of a quantize or dequantize layer as quantized operators keep them. A bias is
INT32, or INT64 of INT16 data, of the input's scale times the weights' scale.
"""

from __future__ import annotations

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.registry import evaluate

CODE_TYPES = (DataType.INT8, DataType.UINT8, DataType.INT16)
"""The types of the codes that quantize methods compute on."""


@frozen(eq=False)
class CodeGrid:
    """What the codes of a tensor stand for: `(q - zero_point) * scale`.

    Attributes:
        scale: float32, of shape (), or [n] along an axis.
        zero_point: int32 of the same shape.
        axis: that axis; -1 for one scale.
    """

    scale: Array
    zero_point: Array
    axis: int = -1

    def is_same(self, other: CodeGrid) -> bool:
        """Whether the same codes stand for the same numbers."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return self.axis == other.axis and all(np.array_equal(one, two) for one, two in pairs)


def grid_of(layer: Quantize | Dequantize) -> CodeGrid:
    """The grid of a layer whose scale and zero point are constants, and of which `grid_problem` says nothing."""
    scale = _values(layer.inputs[1])
    if scale.size == 1:
        return CodeGrid(scale.astype(np.float32).reshape(()), _zero_points(layer).reshape(-1)[:1].reshape(()))
    zero_points = np.broadcast_to(_zero_points(layer).reshape(-1), scale.reshape(-1).shape)
    return CodeGrid(scale.astype(np.float32).reshape(-1), np.ascontiguousarray(zero_points), max(layer.axis, 0))


def grid_problem(layer: Quantize | Dequantize, axis: int | None = None) -> str:
    """Why quantize methods do not take the codes of a layer, in words; "" where they do.

    Args:
        layer: its scale and zero point are constants.
        axis: the axis along which there may be a scale for each index; None: there is one scale.
    """
    scale, zero_points = _values(layer.inputs[1]), _zero_points(layer)
    codes = layer.outputs[0].dtype if isinstance(layer, Quantize) else _tensor(layer.inputs[0]).dtype
    real = layer.outputs[0].dtype if isinstance(layer, Dequantize) else _tensor(layer.inputs[0]).dtype
    if codes not in CODE_TYPES:
        return f"its codes are {codes.text}, and methods require {' and '.join(one.name for one in CODE_TYPES)}"
    if real is not DataType.FLOAT or scale.dtype != np.float32:
        return f"its floating-point type is {real.text}, with a scale of {scale.dtype}, and methods require FP32"
    if scale.size == 1:
        return "" if zero_points.size == 1 else "it has more zero points than scales"
    if layer.block_shape or scale.ndim > 1 or axis is None:
        return f"it has {scale.size} scales, and methods require one for such a tensor"
    if max(layer.axis, 0) != axis:
        return f"its scales follow axis {layer.axis}, and the output channels are axis {axis}"
    return ""


def _zero_points(layer: Quantize | Dequantize) -> Array:
    tensor = layer.get_input(2)
    return np.zeros(1, np.int32) if tensor is None else _values(tensor).astype(np.int32)


def _values(tensor: Tensor | None) -> Array:
    value = _tensor(tensor).spec.value
    if value is None:
        raise ValueError("the scale or zero point is not constant")
    return value


def _tensor(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("an input is not connected")
    return tensor


_SAME_SCALE = 2.0**-20
"""How far, as a share, a stored scale of the bias may be from the product of the two scales that it is a rounding of.
Our choice: some roundings in FP32 (2^-24 each); TFLite itself takes the integers as they are, whatever is stored."""

_LARGEST_EXACT = 2**24
"""FP32 holds every whole number up to this."""


class BiasError(Exception):
    """Why a bias cannot be had in INT32, in words."""


def integer_bias(layer: Layer, unit: Array) -> Array | None:
    """The bias of a convolution, deconvolution or fully connected layer as int32[K] or int64[K]; None for none.

    Integers that the network has are taken as they are where their scale is the unit; other numbers are divided by the
    unit in FP64 and rounded to the nearest, ties to even. That gives back integers that were dequantized in FP32 up to
    2^23.

    Args:
        layer: has its bias as a parameter, or as input 2.
        unit: input scale * weight scale, rounded to FP32 once: float32 of shape () or [K].

    Raises:
        BiasError: it is computed at run time, or does not fit into INT32.
    """
    tensor = layer.get_input(2)
    parameter: Array | None = getattr(layer, "bias", None)
    if tensor is None and parameter is None:
        return None
    if tensor is not None and isinstance(tensor.producer, Dequantize):
        kept = _kept_integers(tensor.producer, unit)
        if kept is not None:
            return kept
        real = _dequantized(tensor.producer)
    else:
        real = parameter if tensor is None else tensor.spec.value
    if real is None:
        raise BiasError("its bias is computed at run time")
    codes = np.rint(real.reshape(-1).astype(np.float64) / unit.astype(np.float64))
    if not np.all(np.abs(codes) < 2.0**31):  # false for what is not finite too
        raise BiasError("its bias, divided by the scales of input and weights, exceeds INT32")
    return codes.astype(np.int32)


def real_bias(layer: Layer, unit: Array, integers: Array) -> Array | None:
    """A bias in real numbers, float32[K], that is no whole units: not what these integers are, dequantized in FP32.

    Above 2**24, where FP32 has whole numbers only, all would be.

    Args:
        layer: has its bias as a parameter, or as input 2.
        unit: input scale * weight scale, rounded to FP32 once: float32 of shape () or [K].
        integers: what `integer_bias` gave.
    """
    tensor = layer.get_input(2)
    if tensor is not None and isinstance(tensor.producer, Dequantize):
        if _kept_integers(tensor.producer, unit) is not None:
            return None
        real = _dequantized(tensor.producer)
    else:
        real = getattr(layer, "bias", None) if tensor is None else tensor.spec.value
    if real is None:
        return None
    is_whole = (integers.astype(np.float64) * unit).astype(np.float32) == real.reshape(-1)
    return None if np.all(is_whole & (np.abs(integers) < _LARGEST_EXACT)) else real.reshape(-1).astype(np.float32)


def _kept_integers(dequantize: Dequantize, unit: Array) -> Array | None:
    """The INT32 or INT64 codes of a bias, where their scale is the unit of the sums and no zero point is beside it."""
    codes, scale, zero_point = (_value(dequantize.get_input(index)) for index in range(3))
    if (
        codes is None
        or scale is None
        or codes.dtype not in (np.int32, np.int64)
        or (zero_point is not None and zero_point.any())
    ):
        return None
    distance = np.abs(scale.astype(np.float64).reshape(-1) - unit.reshape(-1))
    is_unit = scale.size in (1, codes.size) and bool(np.all(distance <= _SAME_SCALE * unit.reshape(-1)))
    return codes.reshape(-1) if is_unit else None


def _dequantized(dequantize: Dequantize) -> Array | None:
    values = [_value(tensor) for tensor in dequantize.inputs]
    return None if any(value is None for value in values) else evaluate(dequantize, values)[0]


def _value(tensor: Tensor | None) -> Array | None:
    return None if tensor is None else tensor.spec.value

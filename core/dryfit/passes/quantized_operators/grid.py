"""The grid of codes of a quantize or dequantize layer: scales and zero points as quantized operators keep them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import Quantize
from dryfit.network.tensor import Tensor

Array = np.ndarray[Any, Any]
CODE_TYPES = (DataType.INT8, DataType.UINT8)
"""The types of the codes that quantize methods compute on."""


@attrs.frozen(eq=False)
class Grid:
    """What the codes of a tensor stand for: `(q - zero_point) * scale`.

    Attributes:
        scale: float32, of shape (), or [n] along an axis.
        zero_point: int32 of the same shape.
        axis: that axis; -1 for one scale.
    """

    scale: Array
    zero_point: Array
    axis: int = -1

    def is_same(self, other: Grid) -> bool:
        """Whether the same codes stand for the same numbers."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return self.axis == other.axis and all(np.array_equal(one, two) for one, two in pairs)


def grid_of(layer: Quantize | Dequantize) -> Grid:
    """The grid of a layer whose scale and zero point are constants, and of which `grid_problem` says nothing."""
    scale = _values(layer.inputs[1])
    if scale.size == 1:
        return Grid(scale.astype(np.float32).reshape(()), _zero_points(layer).reshape(-1)[:1].reshape(()))
    zero_points = np.broadcast_to(_zero_points(layer).reshape(-1), scale.reshape(-1).shape)
    return Grid(scale.astype(np.float32).reshape(-1), np.ascontiguousarray(zero_points), max(layer.axis, 0))


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
        return f"its codes are {codes.name}, and methods have {' and '.join(one.name for one in CODE_TYPES)}"
    if real is not DataType.FLOAT or scale.dtype != np.float32:
        return f"its real numbers are {real.name} by a scale of {scale.dtype}, and methods have FLOAT"
    if scale.size == 1:
        return "" if zero_points.size == 1 else "it has more zero points than scales"
    if layer.block_shape or scale.ndim > 1 or axis is None:
        return f"it has {scale.size} scales, and methods have one for such a tensor"
    if max(layer.axis, 0) != axis:
        return f"its scales follow axis {layer.axis}, and the output channels are axis {axis}"
    return ""


def _zero_points(layer: Quantize | Dequantize) -> Array:
    tensor = layer.get_input(2)
    return np.zeros(1, np.int32) if tensor is None else _values(tensor).astype(np.int32)


def _values(tensor: Tensor | None) -> Array:
    value = _tensor(tensor).spec.value
    if value is None:
        raise ValueError("the scale or zero point is no constant")
    return value


def _tensor(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("an input is not connected")
    return tensor

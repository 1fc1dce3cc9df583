"""The numbers of quantize and dequantize layers: what two of them must share to mean the same codes."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.passes.quantization.axis_paths import Specs
from dryfit.quantization.rewrites import held_identity

Array = np.ndarray[Any, Any]


@frozen
class QuantizationNumbers:
    """What a code of a tensor stands for.

    Attributes:
        dtype: of the codes.
        scale: the values, where they are constant; else the tensor.
        zero_point: the same; None where there is none, or where it holds only zeros.
        axis: whose indices have a scale each; -1 where one serves the tensor, or blocks have their own.
        block_shape: extents of the blocks; () where there are none.
    """

    dtype: DataType
    scale: object
    zero_point: object
    axis: int
    block_shape: tuple[int, ...]

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale serves all elements."""
        return self.axis < 0 and not self.block_shape

    @property
    def words(self) -> str:
        """Scale and zero point, for reports."""
        if not isinstance(self.scale, _Values):
            return "a scale that is computed"
        values = self.scale.array
        if values.size > 1:
            place = f"axis {self.axis}" if self.axis >= 0 else f"blocks {self.block_shape}"
            return f"{values.size} scales of {place}, the first {values.reshape(-1)[0]:.9g},"
        beside = f" with zero point {self.zero_point}" if self.zero_point is not None else ""
        return f"scale {values.item():.9g}{beside}"


@frozen
class _Values:
    """Values that compare by their numbers, unless scales are held: every type of scale is exact in FP64."""

    shape: tuple[int, ...]
    content: bytes = attrs.field(eq=False)
    identity: object

    def __str__(self) -> str:
        return ", ".join(f"{value:.9g}" for value in self.array.reshape(-1))

    @property
    def array(self) -> Array:
        return np.frombuffer(self.content, np.float64).reshape(self.shape)


def numbers_of(layer: Quantize | Dequantize, specs: Specs) -> QuantizationNumbers:
    """The numbers of a layer whose data and scale are connected."""
    data, scale = layer.inputs[0], layer.inputs[1]
    if data is None or scale is None:
        raise layer.problem("Data and scale must be connected", remedy="Connect inputs 0 and 1")
    dtype = layer.to_type if isinstance(layer, Quantize) else specs[data].dtype
    shape = specs[scale].shape
    is_single = shape in ((), (1,)) and not layer.block_shape
    extents = specs[data].shape
    # A vector beside a vector has one element a block, which may hold one element.
    has_blocks = not is_single and (
        bool(layer.block_shape) or len(shape) > 1 or (len(extents) == 1 and extents != shape)
    )
    blocks = (layer.block_shape or _even_blocks(extents, shape)) if has_blocks else ()
    axis = -1 if is_single or has_blocks else max(layer.axis, 0)
    return QuantizationNumbers(dtype, _compared(scale, is_single=is_single), _zero_point(layer), axis, blocks)


def constant_value(tensor: Tensor | None) -> Array | None:
    """The contents of a constant; None for another tensor."""
    if tensor is None or not isinstance(tensor.producer, Constant):
        return None
    return tensor.producer.infer_outputs([])[0].value


def compared_scales(*layers: Quantize | Dequantize) -> tuple[str, ...]:
    """The names of the scales of layers whose values were found equal; () where all read the same tensor."""
    names = tuple(dict.fromkeys(scale.name for layer in layers if (scale := layer.inputs[1]) is not None))
    return names if len(names) > 1 else ()


def _compared(tensor: Tensor, *, is_single: bool = False) -> object:
    value = constant_value(tensor)
    if value is None:
        return tensor
    content = np.ascontiguousarray(value.astype(np.float64)).tobytes()
    return _Values(() if is_single else value.shape, content, held_identity(tensor.name) or content)


def _zero_point(layer: Quantize | Dequantize) -> object:
    tensor = layer.get_input(2)
    if tensor is None:
        return None
    value = constant_value(tensor)
    return None if value is not None and not value.astype(np.float64).any() else _compared(tensor)


def _even_blocks(data: tuple[int, ...], scale: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-1 if -1 in pair else pair[0] // max(pair[1], 1) for pair in zip(data, scale, strict=True))

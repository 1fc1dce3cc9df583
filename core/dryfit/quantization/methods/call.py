"""One use of an operator: its layer, operands and output grid, as definitions of methods read them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator
from dryfit.network.tensor import Array, TensorSpec
from dryfit.quantization.methods.operators import operator_of
from dryfit.reference.precision import limits as limits_of_type


@frozen(eq=False)
class Operand:
    """An input: codes with a grid, or plain numbers (an INT32 bias, real numbers to quantize).

    Attributes:
        values: int8, uint8, int16, int32, int64 or float32.
        scale: float32, of shape () or [K] along the output channels; None of plain numbers.
        zero_point: int32 of the scale's shape; None of plain numbers.
    """

    values: Array
    scale: Array | None = None
    zero_point: Array | None = None

    @property
    def dtype(self) -> DataType:
        """The type of the values."""
        return DataType.from_numpy(self.values.dtype)

    @property
    def one_scale(self) -> np.float32:
        """The scale of a tensor that has one for the whole."""
        return np.float32(np.asarray(self.scale).reshape(()))

    @property
    def one_zero_point(self) -> int:
        """The zero point of a tensor that has one for the whole."""
        return int(np.asarray(self.zero_point).reshape(()))

    @functools.cached_property
    def distances(self) -> Array:
        """`q - zero_point` as int32, for one zero point."""
        return self.values.astype(np.int32) - np.int32(self.one_zero_point)


@frozen(eq=False)
class OperatorCall:
    """A use of an operator with values.

    Attributes:
        layer: the layer of floating-point values: its parameters.
        operands: one an input; None for one that is absent.
        output_scale, output_zero_point: of the output; None where it is real.
        to_type: the output's type.
        limits: of a fused activation, in floating point.
        where: for messages.

    Example:
        >>> call.operator, call.code_type.name, call.is_per_channel
        ('convolution', 'INT8', False)
    """

    layer: Layer
    operands: Sequence[Operand | None]
    output_scale: np.float32 | None
    output_zero_point: int | None
    to_type: DataType
    limits: tuple[float, float] = UNLIMITED
    where: str = ""

    @functools.cached_property
    def operator(self) -> str:
        """The operator's name; "" for a layer that methods do not speak of.

        A sum whose second operand differs by channel only, and is repeated along the other axes, is a `bias_add`.
        """
        found = operator_of(self.layer) or ""
        if found == "eltwise_sum" and len({operand.values.shape for operand in self.present}) > 1:
            return "bias_add"
        return found

    @property
    def present(self) -> Sequence[Operand]:
        """The operands that are there."""
        return [operand for operand in self.operands if operand is not None]

    def operand(self, index: int) -> Operand:
        """An operand that must be there.

        Raises:
            NetworkError: it is absent.
        """
        found = self.operands[index] if index < len(self.operands) else None
        if found is None:
            raise NetworkError(
                f"Input {index} is not connected", where=self.where, remedy="Connect it with `set_input`"
            )
        return found

    @property
    def code_type(self) -> DataType:
        """The type that rules are chosen by: the first operand's, or the output's where that is real numbers."""
        first = self.operand(0).dtype
        return self.to_type if first.is_floating_point else first

    @property
    def is_per_channel(self) -> bool:
        """Whether the weights have a scale for each output channel."""
        return any(operand.scale is not None and operand.scale.ndim > 0 for operand in self.present)

    @property
    def is_depthwise(self) -> bool:
        """Whether it is a convolution with as many groups as input channels."""
        groups = getattr(self.layer, "num_groups", 1)
        return bool(groups > 1 and groups == self.operand(0).values.shape[1])

    @property
    def code_range(self) -> tuple[int, int]:
        """Lowest and highest code of the output's type."""
        low, high = limits_of_type(self.to_type)
        return int(low), int(high)

    @property
    def output_grid(self) -> tuple[np.float32, int]:
        """Scale and zero point of the output.

        Raises:
            NetworkError: it is real.
        """
        if self.output_scale is None or self.output_zero_point is None:
            raise NetworkError(
                "The output must have a scale and a zero point",
                where=self.where,
                remedy="Declare it as a quantized output",
            )
        return self.output_scale, self.output_zero_point

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The output's shape."""
        real = [None if one is None else TensorSpec(one.values.shape, DataType.FLOAT) for one in self.operands]
        if self.layer.kind in ("quantize", "dequantize"):
            return tuple(self.operand(0).values.shape)
        return self.layer.infer_outputs(real)[0].shape

    @property
    def title(self) -> str:
        """What it is, in words."""
        channel = ", one scale per channel" if self.is_per_channel else ""
        quantized = [one.dtype.name for one in self.present if one.scale is not None]
        types = " and ".join(dict.fromkeys([self.operand(0).dtype.name, *quantized]))
        return f"{self.operator or self.layer.kind} of {types} to {self.to_type.name}{channel}"

    @property
    def grids_text(self) -> str:
        """The scales and zero points, for messages."""
        grids: list[tuple[Any, Any]] = [(one.scale, one.zero_point) for one in self.present if one.scale is not None]
        grids += [] if self.output_scale is None else [(self.output_scale, self.output_zero_point)]
        first = [(np.ravel(scale)[0], np.ravel(zero)[0]) for scale, zero in grids]
        return ", ".join(f"scale {scale} zero point {zero_point}" for scale, zero_point in first)


def call_of(layer: QuantizedOperator, inputs: Sequence[Array | None]) -> OperatorCall:
    """The use that a layer of a network is, with the values of its inputs."""
    grids = zip(inputs, _padded(layer.scales, inputs), _padded(layer.zero_points, inputs), strict=True)
    operands = [None if values is None else Operand(values, scale, zero_point) for values, scale, zero_point in grids]
    is_real = layer.output_scale is None
    return OperatorCall(
        layer=layer.real_layer(),
        operands=operands,
        output_scale=None if is_real else np.float32(np.asarray(layer.output_scale).reshape(())),
        output_zero_point=None if is_real else int(np.asarray(layer.output_zero_point).reshape(())),
        to_type=layer.to_type,
        limits=layer.limits,
        where=layer.where,
    )


def _padded(grids: Sequence[Array | None], inputs: Sequence[Any]) -> Sequence[Array | None]:
    return [*grids, *([None] * (len(inputs) - len(grids)))]

"""Quantized operator: one layer of real numbers on quantized tensors, as a named method computes it.

A network says in real numbers what is meant (dequantize, a layer, quantize). What becomes of it in integers differs
from library to library and from device to device, in the last code. A quantized operator is such a group as one layer
whose arithmetic is named: `method` says whose it is. It runs on the host only.
"""

from __future__ import annotations

import enum
import math
import typing
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.network.installed_packages import installed_packages
from dryfit.network.layer import LAYER_KINDS, Inputs, Layer, layer_kind
from dryfit.network.layer_plugin import FieldValue
from dryfit.network.tensor import Array, TensorSpec

UNLIMITED = (-math.inf, math.inf)
WEIGHTS_INPUT = 1
"""The input of a quantized operator that has the weights, where it has such."""


class OperatorMethod(Protocol):
    """What computes quantized operators: `dryfit.quantization.methods.method.QuantizeMethod`."""

    def evaluate(self, layer: QuantizedOperator, inputs: Sequence[Array | None]) -> list[Array]:
        """The outputs, by the definition in numpy.

        Raises:
            ConfigError: the method does not have the operator for these types.
        """
        ...


_CODES = (DataType.INT8, DataType.UINT8)


@layer_kind("quantized_operator")
class QuantizedOperator(Layer):
    """A layer kind on quantized tensors: codes in, codes out; or real numbers at one end, where it (de)quantizes.

    A code `q` stands for `(q - zero_point) * scale`. Inputs are those of the layer kind, each a quantized tensor
    (INT8 or UINT8 and, of weights, one scale for the whole or for each output channel), an INT32 bias in units of
    input scale * weight scale, or, of `quantize`, real numbers.

    Attributes:
        computes: the layer kind that is computed, such as `convolution`; `identity` only changes scale, zero
            point or type of the codes.
        method: name of the quantize method, such as `tflite`.
        fields: parameters of the layer kind that differ from its defaults; members of enumerations by name.
        scales: for each input its scale: float32, of shape () or, along the output channels, [K]; None for an input
            that is not a quantized tensor.
        zero_points: for each input its zero point as int32, of the scale's shape; None as in `scales`.
        output_scale, output_zero_point: of the output, of shape (); None where the output is real.
        to_type: the output's type: INT8 or UINT8, or FP32 where it is real.
        limits: of a fused activation, in floating point: (0, inf) for ReLU, (0, 6) for ReLU6.
    """

    computes: str
    method: str
    fields: dict[str, FieldValue] = attrs.field(factory=dict)
    scales: tuple[Array | None, ...] = ()
    zero_points: tuple[Array | None, ...] = ()
    output_scale: Array | None = None
    output_zero_point: Array | None = None
    to_type: DataType = DataType.INT8
    limits: tuple[float, float] = UNLIMITED

    @property
    def host_only_reason(self) -> str:
        """That it is computed by a quantize method."""
        return f"the quantize method {self.method!r}"

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """What the layer kind says of real tensors of these shapes, of `to_type`."""
        self._check_grids(inputs)
        real = [None if spec is None else TensorSpec(spec.shape, DataType.FLOAT) for spec in inputs]
        if self.computes in ("quantize", "dequantize"):
            return [TensorSpec(self.required(inputs, 0).shape, self.to_type)]
        specs = self.real_layer().infer_outputs(real)
        return [TensorSpec(spec.shape, self.to_type) for spec in specs]

    def _check_grids(self, inputs: Inputs) -> None:
        """Refuse scales that are not those of the inputs, and zero points that are no codes."""
        types = [None if spec is None else spec.dtype for spec in inputs]
        needed = max((index + 1 for index, dtype in enumerate(types) if dtype in _CODES), default=0)
        if not needed <= len(self.scales) == len(self.zero_points) <= len(inputs):
            raise self.problem(
                "Each quantized input must have a scale and a zero point",
                found=f"{len(self.scales)} scales and {len(self.zero_points)} zero points",
                allowed=f"{needed} to {len(inputs)}",
                remedy="Give as many scales and zero points as quantized inputs",
            )
        inner = zip(self.zero_points, types, strict=False)
        for zero_point, dtype in (*inner, (self.output_zero_point, self.to_type)):
            if zero_point is None or dtype not in _CODES:
                continue
            limits = np.iinfo(dtype.numpy)
            if (np.asarray(zero_point) < limits.min).any() or (np.asarray(zero_point) > limits.max).any():
                raise self.problem(
                    "A zero point must be a value of the quantized type",
                    found=np.asarray(zero_point).ravel()[:8].tolist(),
                    allowed=f"{limits.min} to {limits.max}",
                    remedy="Give a zero point in this range",
                )

    def real_layer(self) -> Layer:
        """The layer of real numbers that it stands for: in no network, with this layer's name.

        Raises:
            NetworkError: there is no such kind, or a field is none of its parameters.
        """
        return layer_from_fields(self.computes, self.fields, self.name)

    def operator_method(self) -> OperatorMethod:
        """The method.

        Raises:
            ConfigError: nothing finds methods.
            UnknownNameError: there is none of this name.
            PluginError: it cannot be loaded.
        """
        find_method = installed_packages().quantize_method
        if find_method is None:
            raise ConfigError(
                "No quantize method is installed",
                where=self.where,
                remedy="Install a package that provides one, such as dryfit-plugins",
            )
        return find_method(self.method)


def fields_of_layer(layer: Layer) -> dict[str, FieldValue]:
    """The parameters of a layer that differ from their defaults, as `QuantizedOperator.fields` keeps them.

    Weights are left out: a quantized operator has them as inputs.
    """
    found: dict[str, FieldValue] = {}
    for field in layer.parameters():
        value = getattr(layer, field.name)
        if isinstance(value, np.ndarray) or value is None or _is_default(field, value):
            continue
        found[field.name] = value.name if isinstance(value, enum.Enum) else value
    return found


def layer_from_fields(kind: str, fields: typing.Mapping[str, FieldValue], name: str = "") -> Layer:
    """The layer that `fields_of_layer` describes."""
    cls = LAYER_KINDS[kind]
    hints = typing.get_type_hints(cls)
    values = {key: _member(hints[key], value) for key, value in fields.items()}
    return cls(name=name, **values)


def _member(hint: Any, value: Any) -> Any:
    """A member of an enumeration from its name; other values as they are."""
    kinds = [kind for kind in (hint, *typing.get_args(hint)) if isinstance(kind, type) and issubclass(kind, enum.Enum)]
    return kinds[0][value] if kinds and isinstance(value, str) else value


def _is_default(field: attrs.Attribute[Any], value: Any) -> bool:
    return bool(field.default == value)

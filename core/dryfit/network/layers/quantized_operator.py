"""Quantized operator: a layer on quantized tensors, computed by a named method.

A network expresses its intent in real numbers (dequantize, a layer, quantize). The integer implementation differs
between libraries and between devices in the last code. A quantized operator represents such a group as one layer with
a named arithmetic, given by `method`. It runs on the host only.
"""

from __future__ import annotations

import enum
import functools
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
    """The interface that computes quantized operators: `dryfit.quantization.methods.method.QuantizeMethod`."""

    def evaluate(self, layer: QuantizedOperator, inputs: Sequence[Array | None]) -> list[Array]:
        """Return the outputs, computed by the numpy definition.

        Raises:
            ConfigError: The method does not support the operator for these types.
        """
        ...


_CODES = (DataType.INT8, DataType.UINT8, DataType.INT16)


@layer_kind("quantized_operator")
class QuantizedOperator(Layer):
    """A layer kind on quantized tensors: codes in and out, or real numbers on one side, where it (de)quantizes.

    A code `q` represents `(q - zero_point) * scale`. The inputs are those of the layer kind: quantized tensors (INT8,
    UINT8 or INT16; weights have a per-tensor scale or one scale per output channel), an INT32 or INT64 bias in units of
    input scale * weight scale, or, for `quantize`, real numbers.

    Attributes:
        computes: the layer kind, such as `convolution`; `identity` only changes the scale, zero point or type of the
            codes.
        method: name of the quantize method, such as `tflite`.
        fields: parameters of the layer kind that differ from its defaults; enumeration members by name.
        scales: scale of each input: float32 of shape (), or [K] for per-channel scales along the output channels. None
            for an input that is not quantized.
        zero_points: zero point of each input: int32, with the shape of the scale; None as in `scales`.
        output_scale, output_zero_point: scale and zero point of the output, of shape (); None if the output is real.
        to_type: type of the output: INT8, UINT8 or INT16; FP32 if it is real, BOOL of a comparison.
        limits: range of a fused activation, in floating point: (0, inf) for ReLU, (0, 6) for ReLU6.
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
        """Why no device supports the layer: a quantize method computes it."""
        return f"the quantize method {self.method!r}"

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shapes that the layer kind infers for real tensors of these shapes, with type `to_type`."""
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
                remedy="Provide one scale and one zero point per quantized input",
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
                    remedy="Use a zero point in this range",
                )

    def real_layer(self) -> Layer:
        """Return the equivalent layer of real numbers, outside any network, with this layer's name.

        Raises:
            NetworkError: The kind does not exist, or a field is not one of its parameters.
        """
        return layer_from_fields(self.computes, self.fields, self.name)

    def operator_method(self) -> OperatorMethod:
        """Return the quantize method.

        Raises:
            ConfigError: No lookup for quantize methods is installed.
            UnknownNameError: No method has this name.
            PluginError: The method cannot be loaded.
        """
        find_method = installed_packages().quantize_method
        if find_method is None:
            raise ConfigError(
                "No quantize method is installed",
                where=self.where,
                remedy="Enable the bundled plugins (unset DRYFIT_DISABLE_PLUGINS), or install a package with one",
            )
        return find_method(self.method)


def fields_of_layer(layer: Layer) -> dict[str, FieldValue]:
    """Return the parameters of a layer that differ from their defaults, as `QuantizedOperator.fields` keeps them.

    Weights are omitted: they are inputs of a quantized operator.
    """
    found: dict[str, FieldValue] = {}
    for field in layer.parameters():
        value = getattr(layer, field.name)
        if isinstance(value, np.ndarray) or value is None or _is_default(field, value):
            continue
        found[field.name] = value.name if isinstance(value, enum.Enum) else value
    return found


def layer_from_fields(kind: str, fields: typing.Mapping[str, FieldValue], name: str = "") -> Layer:
    """Return the layer that `fields_of_layer` describes."""
    cls = LAYER_KINDS[kind]
    hints = _type_hints(cls)
    values = {key: _member(hints[key], value) for key, value in fields.items()}
    return cls(name=name, **values)


@functools.cache
def _type_hints(cls: type[Layer]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _member(hint: Any, value: Any) -> Any:
    """A member of an enumeration from its name; other values as they are."""
    kinds = [kind for kind in (hint, *typing.get_args(hint)) if isinstance(kind, type) and issubclass(kind, enum.Enum)]
    return kinds[0][value] if kinds and isinstance(value, str) else value


def _is_default(field: attrs.Attribute[Any], value: Any) -> bool:
    return bool(field.default == value)

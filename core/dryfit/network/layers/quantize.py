"""Quantize: real numbers to a narrow type by a scale."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.scale_granularity import check_scale, reasons_against_devices
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec

QUANTIZED_TYPES = tuple(
    dtype
    for dtype in DataType
    if (dtype.is_integer and dtype.bits <= 16) or (dtype.is_floating_point and dtype.bits <= 8 and dtype.name != "E8M0")
)
"""Types that a tensor can be quantized to. Devices have INT8, FP8, INT4 and FP4; the others are ONNX's."""


@layer_kind("quantize")
class Quantize(Layer):
    """`saturate(round(x / scale) + zero_point)`; ties go to the even number, saturation is to the output's range.

    Inputs: 0 the data, 1 the scale, 2 the zero point (optional, of the output's type; 0 where absent;
    devices have no other).

    Attributes:
        axis: with one scale for each index of an axis, that axis; -1 otherwise.
        to_type: INT8, FP8, INT4, FP4, and on the host ONNX's other narrow types.
        block_shape: extents of a block that shares a scale, one an axis; empty where there are no blocks, or where the
            shapes of scale and data divide evenly.
        saturate: for 8-bit floating-point outputs, as in a cast.

    Source: TensorRT `IQuantizeLayer`; ONNX `QuantizeLinear`.
    """

    is_conversion = True
    is_quantization = True
    has_fixed_types = True

    axis: int = -1
    to_type: DataType = DataType.INT8
    block_shape: tuple[int, ...] = attrs.field(default=(), converter=ints)
    saturate: bool = True

    @property
    def host_only_reason(self) -> str:
        """What about it no device has."""
        reasons = reasons_against_devices(self, next(iter(self.outputs), None), self.axis, self.block_shape)
        if self.to_type is DataType.FP8 and not self.saturate:
            reasons.append("values that do not saturate")
        return ", ".join(reasons)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, of `to_type`."""
        x = self.required(inputs, 0)
        if not (x.dtype.is_floating_point and x.dtype.bits >= 16) and x.dtype is not DataType.INT32:
            raise self.problem("A tensor to quantize is floating point or INT32", found=x.dtype.name)
        if self.to_type not in QUANTIZED_TYPES:
            raise self.problem(
                "Nothing can be quantized to this type",
                found=self.to_type.name,
                allowed=", ".join(dtype.name for dtype in QUANTIZED_TYPES),
            )
        check_scale(self, inputs, self.axis, self.block_shape)
        zero_point = inputs[2] if len(inputs) > 2 else None
        if zero_point is not None and zero_point.dtype is not self.to_type:
            raise self.problem(
                "The zero point has the output's type", found=zero_point.dtype.name, allowed=self.to_type.name
            )
        return [TensorSpec(x.shape, self.to_type)]


class AddQuantize:
    """The builder method of quantize layers."""

    def add_quantize(self: LayerOwner, input: Tensor, scale: Tensor, output_type: DataType = DataType.INT8) -> Quantize:
        """Add a quantize layer; TensorRT's `add_quantize`. Set `axis` on the layer where the scale is a vector."""
        return self.add_layer(Quantize(to_type=output_type), [input, scale], is_finished=False)

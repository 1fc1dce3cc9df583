"""Dequantize: narrow quantized values back to real numbers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.quantize import QUANTIZED_TYPES
from dryfit.network.layers.scale_granularity import check_scale, reasons_against_devices
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("dequantize")
class Dequantize(Layer):
    """`(x - zero_point) * scale`.

    Inputs: 0 the quantized data (on the host INT32 too: the bias of a quantized convolution), 1 the scale, 2 the zero
    point (optional, of the data's type; 0 where absent; devices have no other).

    Attributes:
        axis: with one scale for each index of an axis, that axis; -1 otherwise.
        to_type: FLOAT, HALF or BF16.
        block_shape: extents of a block that shares a scale, one an axis; empty where there are no blocks, or where the
            shapes of scale and data divide evenly.

    Source: TensorRT `IDequantizeLayer`; ONNX `DequantizeLinear`.
    """

    is_conversion = True
    is_quantization = True
    has_fixed_types = True

    axis: int = -1
    to_type: DataType = DataType.FLOAT
    block_shape: tuple[int, ...] = attrs.field(default=(), converter=ints)

    @property
    def host_only_reason(self) -> str:
        """What about it no device has."""
        return ", ".join(reasons_against_devices(self, self.get_input(0), self.axis, self.block_shape))

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape, of `to_type`."""
        x = self.required(inputs, 0)
        allowed = (*QUANTIZED_TYPES, DataType.INT32)
        if x.dtype not in allowed:
            raise self.problem(
                "The input is not quantized", found=x.dtype.name, allowed=", ".join(dtype.name for dtype in allowed)
            )
        if not self.to_type.is_floating_point or self.to_type.bits < 16:
            raise self.problem(
                "A tensor is dequantized to a wider floating-point type",
                found=self.to_type.name,
                allowed="FLOAT, HALF, BF16, DOUBLE",
            )
        check_scale(self, inputs, self.axis, self.block_shape)
        zero_point = inputs[2] if len(inputs) > 2 else None
        if zero_point is not None and zero_point.dtype is not x.dtype:
            raise self.problem("The zero point has the input's type", found=zero_point.dtype.name, allowed=x.dtype.name)
        return [TensorSpec(x.shape, self.to_type)]


class AddDequantize:
    """The builder method of dequantize layers."""

    def add_dequantize(
        self: LayerOwner, input: Tensor, scale: Tensor, output_type: DataType | None = None
    ) -> Dequantize:
        """Add a dequantize layer; TensorRT's `add_dequantize`. Set `axis` on the layer where the scale is a vector.

        Args:
            input: the quantized data.
            scale: FLOAT, HALF or BF16.
            output_type: None: the scale's type in a strongly typed network, and else FLOAT.
        """
        to_type = output_type or (scale.dtype if input.network.is_strongly_typed else DataType.FLOAT)
        return self.add_layer(Dequantize(to_type=to_type), [input, scale], is_finished=False)

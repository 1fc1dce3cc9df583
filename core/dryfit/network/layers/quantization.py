"""Layers that change the element type: quantize and dequantize, with given or computed scales, and cast."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.scale_granularity import check_positive, check_scale, reasons_against_devices
from dryfit.network.layers.shape_inference import check_axis
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec

QUANTIZED_TYPES = tuple(
    dtype
    for dtype in DataType
    if (dtype.is_integer and dtype.bits <= 16) or (dtype.is_floating_point and dtype.bits <= 8 and dtype.name != "E8M0")
)
"""Types to which a tensor can be quantized. Devices support INT8, FP8, INT4 and FP4; the others are ONNX's."""


@layer_kind("quantize")
class Quantize(Layer):
    """`saturate(round(x / scale) + zero_point)`; rounds half to even and saturates to the range of the output type.

    Inputs: 0 the data, 1 the scale, 2 the zero point (optional, of the output's type; default: 0; devices support no
    other value).

    Attributes:
        axis: axis of per-channel scales, with one scale per index; -1 for other granularities.
        to_type: INT8, FP8, INT4 or FP4; on the host, also ONNX's other narrow types.
        block_shape: extents of the block that shares a scale, one per axis. Empty: no blocks, or blocks derived from
            the shapes of scale and data, which must divide evenly.
        saturate: for 8-bit floating-point outputs, as in `Cast`.

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
        """Why no device supports the layer, or an empty string."""
        reasons = reasons_against_devices(self, next(iter(self.outputs), None), self.axis, self.block_shape)
        if self.to_type is DataType.FP8 and not self.saturate:
            reasons.append("values that do not saturate")
        return ", ".join(reasons)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape, with type `to_type`."""
        x = self.required(inputs, 0)
        if not (x.dtype.is_floating_point and x.dtype.bits >= 16) and x.dtype is not DataType.INT32:
            raise self.problem(
                "The input of a quantization must be floating point or INT32",
                found=x.dtype.text,
                remedy="Add a cast layer before it",
            )
        if self.to_type not in QUANTIZED_TYPES:
            raise self.problem(
                "Quantization to this type is not supported",
                found=self.to_type.text,
                allowed=", ".join(dtype.text for dtype in QUANTIZED_TYPES),
                remedy="Set `to_type`",
            )
        check_scale(self, inputs, self.axis, self.block_shape)
        zero_point = inputs[2] if len(inputs) > 2 else None
        if zero_point is not None and zero_point.dtype is not self.to_type:
            raise self.problem(
                "The zero point must have the type of the output",
                found=zero_point.dtype.text,
                allowed=self.to_type.text,
                remedy="Convert the zero point to this type",
            )
        return [TensorSpec(x.shape, self.to_type)]


@layer_kind("dequantize")
class Dequantize(Layer):
    """`(x - zero_point) * scale`.

    Inputs: 0 the quantized data (on the host also INT32 and INT64, for the bias of a quantized convolution), 1 the
    scale, 2 the zero point (optional, of the data's type; default: 0; devices support no other value).

    Attributes:
        axis: axis of per-channel scales, with one scale per index; -1 for other granularities.
        to_type: type of the output: FP32, FP16 or BF16.
        block_shape: extents of the block that shares a scale, one per axis. Empty: no blocks, or blocks derived from
            the shapes of scale and data, which must divide evenly.

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
        """Why no device supports the layer, or an empty string."""
        return ", ".join(reasons_against_devices(self, self.get_input(0), self.axis, self.block_shape))

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape, with type `to_type`."""
        x = self.required(inputs, 0)
        allowed = (*QUANTIZED_TYPES, DataType.INT32, DataType.INT64)
        if x.dtype not in allowed:
            raise self.problem(
                "The input must have a quantized type",
                found=x.dtype.text,
                allowed=", ".join(dtype.text for dtype in allowed),
                remedy="Quantize it first, or remove the dequantize layer",
            )
        if not self.to_type.is_floating_point or self.to_type.bits < 16:
            raise self.problem(
                "The output type of a dequantization must be a wider floating-point type",
                found=self.to_type.text,
                allowed="FP32, FP16, BF16, FP64",
                remedy="Set `to_type`",
            )
        check_scale(self, inputs, self.axis, self.block_shape)
        zero_point = inputs[2] if len(inputs) > 2 else None
        if zero_point is not None and zero_point.dtype is not x.dtype:
            raise self.problem(
                "The zero point must have the type of the input",
                found=zero_point.dtype.text,
                allowed=x.dtype.text,
                remedy="Convert the zero point to this type",
            )
        return [TensorSpec(x.shape, self.to_type)]


_FORMS = {(DataType.FP4, DataType.FP8): 16, (DataType.FP8, DataType.E8M0): 32}
"""(output type, scale type) to block size: NVFP4 and MXFP8."""


@layer_kind("dynamic_quantize")
class DynamicQuantize(Layer):
    """Each block of `block_size` elements along `axis`, divided by its own scale and cast. Outputs: data and scales.

    The scale is `max(abs(block)) / largest value of to_type`. An FP8 scale (NVFP4) is divided by input 1, a scalar
    known at build time, and rounded to nearest even; an E8M0 scale (MXFP8) is rounded up to a power of two.

    Attributes:
        axis: the last or second-to-last axis, counted from 0.
        block_size: 16 for FP4, 32 for FP8.
        to_type: FP4 or FP8.
        scale_type: FP8 for FP4 data, E8M0 for FP8 data.

    Source: TensorRT `IDynamicQuantizeLayer`; "Working with Quantized Types", dynamic quantization.
    """

    is_quantization = True
    has_fixed_types = True

    axis: int
    block_size: int
    to_type: DataType = DataType.FP4
    scale_type: DataType = DataType.FP8

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Extents of a block, one per axis of a connected input; setting it sets `axis` and `block_size`.

        Raises:
            NetworkError: On setting, no axis or more than one has an extent above 1.
        """
        x = self.get_input(0)
        rank = self.axis + 1 if x is None else len(x.shape)
        return tuple(self.block_size if axis == self.axis else 1 for axis in range(rank))

    @block_shape.setter
    def block_shape(self, extents: Sequence[int]) -> None:
        self.axis, self.block_size = _block_axis(self, extents)

    @property
    def output_count(self) -> int:
        """Number of outputs: 2, the data and the scales."""
        return 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the data (the input's shape, `to_type`) and the scales (one per block, `scale_type`)."""
        x = self.required(inputs, 0)
        if x.dtype not in (DataType.FLOAT, DataType.HALF, DataType.BF16):
            raise self.problem(
                "The input has the wrong type",
                found=x.dtype.text,
                allowed="FP32, FP16, BF16",
                remedy="Add a cast layer before it",
            )
        form = (self.to_type, self.scale_type)
        if _FORMS.get(form) != self.block_size:
            raise self.problem(
                "This combination of types and block size is not supported by dynamic quantization",
                found=f"{self.to_type.text} with {self.scale_type.text} scales in blocks of {self.block_size}",
                allowed="FP4 with FP8 scales in blocks of 16, FP8 with E8M0 scales in blocks of 32",
                remedy="Set `to_type`, `scale_type` and `block_size`",
            )
        check_axis(self, self.axis, x.rank)
        if self.axis < x.rank - 2:
            raise self.problem(
                "`axis` must be the last or the second-last axis",
                found=self.axis,
                allowed=f"from {x.rank - 2}",
                remedy="Set `axis` to one of these",
            )
        extent = x.shape[self.axis]
        if extent >= 0 and extent % self.block_size:
            raise self.problem(
                "The extent of the axis must be a multiple of the block size",
                found=f"{extent} in blocks of {self.block_size}",
                remedy="Pad the axis, or set another `block_size`",
            )
        outer = inputs[1] if len(inputs) > 1 else None
        if self.to_type is DataType.FP4 and outer is None:
            raise self.problem(
                "FP4 requires the scale of the scales as input 1", remedy="Connect a constant scalar", is_mendable=True
            )
        if outer is not None and (outer.shape not in ((), (1,)) or not outer.dtype.is_floating_point):
            raise self.problem(
                "Input 1 must be a floating-point scalar",
                found=f"{outer.dtype.text} {outer.shape}",
                remedy="Connect a constant scalar",
            )
        if outer is not None:
            check_positive(self, inputs)
        blocks = -1 if extent < 0 else extent // self.block_size
        scales = (*x.shape[: self.axis], blocks, *x.shape[self.axis + 1 :])
        return [TensorSpec(x.shape, self.to_type), TensorSpec(scales, self.scale_type)]


def _block_axis(layer: DynamicQuantize, extents: Sequence[int]) -> tuple[int, int]:
    """Return the axis and the extent of a block that extends along one axis.

    Raises:
        NetworkError: No axis or more than one has an extent above 1.
    """
    along = [(axis, int(extent)) for axis, extent in enumerate(extents) if extent != 1]
    if len(along) != 1 or along[0][1] < 1:
        raise layer.problem(
            "A block of a dynamic quantization must extend along exactly one axis",
            found=tuple(extents),
            allowed="1 for all axes but one, such as (1, 1, 16)",
            remedy="Set `block_shape`",
        )
    return along[0]


class CastRounding(enum.Enum):
    """Rounding of a cast to E8M0, which holds powers of two: ONNX's `round_mode`. Other types round to nearest even."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


@layer_kind("cast")
class Cast(Layer):
    """The input's values in another type.

    Floating point to integer truncates the fraction, integer to a narrower integer keeps the low bits, any type to BOOL
    is `x != 0`, and a wider to a narrower floating-point type rounds to nearest even.

    Attributes:
        to_type: type of the output.
        saturate: for 8-bit floating-point outputs: whether values out of range become the largest finite value.
            Otherwise they become NaN or infinity, depending on the type.
        e8m0_rounding: rounding mode for E8M0 outputs only.

    Source: TensorRT `ICastLayer`; ONNX `Cast`.
    """

    is_conversion = True
    has_fixed_types = True

    to_type: DataType
    saturate: bool = True
    e8m0_rounding: CastRounding = CastRounding.UP

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the input's shape."""
        return [TensorSpec(self.required(inputs, 0).shape, self.to_type)]


class AddQuantization:
    """The builder methods of quantize, dequantize and cast layers."""

    def add_quantize(self: LayerOwner, input: Tensor, scale: Tensor, output_type: DataType = DataType.INT8) -> Quantize:
        """Add a quantize layer; TensorRT's `add_quantize`. Set `axis` on the layer if the scale is a vector."""
        return self.add_layer(Quantize(to_type=output_type), [input, scale], is_finished=False)

    def add_dequantize(
        self: LayerOwner, input: Tensor, scale: Tensor, output_type: DataType | None = None
    ) -> Dequantize:
        """Add a dequantize layer; TensorRT's `add_dequantize`. Set `axis` on the layer if the scale is a vector.

        Args:
            input: the quantized data.
            scale: the scale, of type FLOAT, HALF or BF16.
            output_type: type of the output. None: the scale's type in a strongly typed network, otherwise FLOAT.
        """
        to_type = output_type or (scale.dtype if input.network.is_strongly_typed else DataType.FLOAT)
        return self.add_layer(Dequantize(to_type=to_type), [input, scale], is_finished=False)

    def add_dynamic_quantize(
        self: LayerOwner,
        input: Tensor,
        axis: int,
        block_size: int,
        output_type: DataType = DataType.FP4,
        scale_type: DataType = DataType.FP8,
    ) -> DynamicQuantize:
        """Add a dynamic quantize layer; TensorRT's `add_dynamic_quantize`. Input 1 is the scale of scales."""
        layer = DynamicQuantize(axis=axis, block_size=block_size, to_type=output_type, scale_type=scale_type)
        return self.add_layer(layer, [input], is_finished=False)

    def add_dynamic_quantize_v2(
        self: LayerOwner,
        input: Tensor,
        block_shape: Sequence[int],
        output_type: DataType = DataType.FP4,
        scale_type: DataType = DataType.FP8,
    ) -> DynamicQuantize:
        """Add a dynamic quantize layer with the extents of a block; TensorRT's `add_dynamic_quantize_v2`.

        Only blocks along one axis are supported: all other extents must be 1.

        Raises:
            NetworkError: The block shape has another rank than the input, or extends along several axes.
        """
        layer = DynamicQuantize(axis=0, block_size=1, to_type=output_type, scale_type=scale_type)
        if len(block_shape) != len(input.shape):
            raise layer.problem(
                "`block_shape` must have one extent per axis",
                found=tuple(block_shape),
                allowed=f"{len(input.shape)} extents",
                remedy="Set `block_shape`",
            )
        layer.block_shape = tuple(block_shape)
        return self.add_layer(layer, [input], is_finished=False)

    def add_cast(self: LayerOwner, input: Tensor, to_type: DataType) -> Cast:
        """Add a cast layer; TensorRT's `add_cast`."""
        return self.add_layer(Cast(to_type=to_type), [input])

"""Dynamic quantize: blocks quantized by scales that are computed from them at run time."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.scale_granularity import check_positive
from dryfit.network.layers.shape_inference import check_axis
from dryfit.network.tensor import Tensor, TensorSpec

_FORMS = {(DataType.FP4, DataType.FP8): 16, (DataType.FP8, DataType.E8M0): 32}
"""(output type, scale type) to block size: NVFP4 and MXFP8."""


@layer_kind("dynamic_quantize")
class DynamicQuantize(Layer):
    """Each block of `block_size` elements on `axis` is divided by its own scale and cast: outputs are data and scales.

    The scale is `max(abs(block)) / largest value of to_type`. As FP8 (NVFP4) it is divided by input 1, a scalar that is
    known at build time, and rounded to nearest even; as E8M0 (MXFP8) it is rounded up to a power of two.

    Attributes:
        axis: the last or the second last axis, counted from 0.
        block_size: 16 for FP4, 32 for FP8.
        to_type: FP4 or FP8.
        scale_type: FP8 for FP4, E8M0 for FP8.

    Source: TensorRT `IDynamicQuantizeLayer`; "Working with Quantized Types", dynamic quantization.
    """

    is_quantization = True
    has_fixed_types = True

    axis: int
    block_size: int
    to_type: DataType = DataType.FP4
    scale_type: DataType = DataType.FP8

    @property
    def output_count(self) -> int:
        """Data and scales."""
        return 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The data: the input's shape, of `to_type`; the scales: one a block, of `scale_type`."""
        x = self.required(inputs, 0)
        if x.dtype not in (DataType.FLOAT, DataType.HALF, DataType.BF16):
            raise self.problem("The input has the wrong type", found=x.dtype.name, allowed="FLOAT, HALF, BF16")
        form = (self.to_type, self.scale_type)
        if _FORMS.get(form) != self.block_size:
            raise self.problem(
                "There is no such form of dynamic quantization",
                found=f"{self.to_type.name} with {self.scale_type.name} scales in blocks of {self.block_size}",
                allowed="FP4 with FP8 scales in blocks of 16, FP8 with E8M0 scales in blocks of 32",
            )
        check_axis(self, self.axis, x.rank)
        if self.axis < x.rank - 2:
            raise self.problem("`axis` is the last or the second last", found=self.axis, allowed=f"from {x.rank - 2}")
        extent = x.shape[self.axis]
        if extent >= 0 and extent % self.block_size:
            raise self.problem("The axis is a whole number of blocks", found=f"{extent} in blocks of {self.block_size}")
        outer = inputs[1] if len(inputs) > 1 else None
        if self.to_type is DataType.FP4 and outer is None:
            raise self.problem(
                "FP4 takes the scale of the scales as input 1", remedy="Connect a constant scalar", is_mendable=True
            )
        if outer is not None and (outer.shape not in ((), (1,)) or not outer.dtype.is_floating_point):
            raise self.problem("Input 1 is one floating-point number", found=f"{outer.dtype.name} {outer.shape}")
        if outer is not None:
            check_positive(self, inputs)
        blocks = -1 if extent < 0 else extent // self.block_size
        scales = (*x.shape[: self.axis], blocks, *x.shape[self.axis + 1 :])
        return [TensorSpec(x.shape, self.to_type), TensorSpec(scales, self.scale_type)]


class AddDynamicQuantize:
    """The builder method of dynamic quantize layers."""

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

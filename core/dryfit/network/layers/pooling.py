"""Pooling: the maximum or the average of a window that slides over the spatial axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, LayerOwner, layer_kind
from dryfit.network.layers.window_layer import PaddingMode, WindowLayer, ints, output_extent
from dryfit.network.tensor import Tensor, TensorSpec


class PoolingType(enum.Enum):
    """TensorRT's `PoolingType`."""

    MAX = "max"
    AVERAGE = "average"
    MAX_AVERAGE_BLEND = "max_average_blend"


@layer_kind("pooling")
class Pooling(WindowLayer):
    """The maximum, the average, or `(1 - blend_factor) * maximum + blend_factor * average` of each window.

    When the output extent is rounded up, a window that would begin behind the input and its leading padding is left
    out, as ONNX has it; what such rounding adds behind the trailing padding is never counted in an average.

    Attributes:
        pooling_type: what is taken of a window.
        window_size_nd: one extent a spatial axis.
        pre_padding, post_padding: before and after each spatial axis; 0 where not given. Padding never wins a
            maximum.
        blend_factor: the weight of the average in MAX_AVERAGE_BLEND.
        average_count_excludes_padding: an average is divided by the elements inside the input (True), or by all of
            the window (False).
        dilation_nd: distance of a window's elements; 1 where not given. Not in TensorRT: host only.
        returns_indices: a second output, INT64, holds for each maximum its index in the flattened input. Not in
            TensorRT: host only.
        column_major_indices: those indices count the last spatial axis slowest.

    Source: TensorRT `IPoolingLayer`; ONNX `MaxPool`, `AveragePool`.
    """

    pooling_type: PoolingType
    window_size_nd: tuple[int, ...] = attrs.field(converter=ints)
    blend_factor: float = 0.0
    average_count_excludes_padding: bool = True
    returns_indices: bool = False
    column_major_indices: bool = False

    @property
    def window_name(self) -> str:
        """The parameter that holds the window."""
        return "window_size_nd"

    @property
    def output_count(self) -> int:
        """1, or 2 with indices."""
        return 2 if self.returns_indices else 1

    @property
    def is_host_only(self) -> bool:
        """Whether it uses what TensorRT lacks: dilation or indices."""
        return self.returns_indices or any(dilation != 1 for dilation in self.dilation_nd)

    def output_extents(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Output extent of each spatial axis; -1 where the input's is dynamic."""
        outputs = []
        for extent, window, stride, dilation, pre, post in self.axes(spatial):
            output = output_extent(self.padding_mode, extent, window, stride, dilation, pre, post)
            is_rounded_up = self.padding_mode is PaddingMode.EXPLICIT_ROUND_UP and extent >= 0
            if is_rounded_up and output and (output - 1) * stride >= extent + pre:
                output -= 1
            outputs.append(output)
        return tuple(outputs)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, C, *spatial]` of the input's type, and the indices where they are asked for."""
        x = self.required(inputs, 0)
        self.check_window(x.rank)
        if self.returns_indices and self.pooling_type is not PoolingType.MAX:
            raise self.problem("Only maximum pooling has indices", found=self.pooling_type.name, allowed="MAX")
        spatial = self.checked_extents(x.shape, "The window is larger than the padded input")
        output = TensorSpec((*x.shape[:2], *spatial), x.dtype)
        return [output, TensorSpec(output.shape, DataType.INT64)] if self.returns_indices else [output]


class AddPooling:
    """The builder method of poolings."""

    def add_pooling_nd(
        self: LayerOwner,
        input: Tensor,
        type: PoolingType,
        window_size: Sequence[int],
        *,
        returns_indices: bool = False,
    ) -> Pooling:
        """Add a pooling; TensorRT's `add_pooling_nd`. `returns_indices` adds a second output (host only)."""
        layer = Pooling(pooling_type=type, window_size_nd=tuple(window_size), returns_indices=returns_indices)
        return self.add_layer(layer, [input], is_finished=False)

"""Resampling: resize to a finer or coarser grid, and grid sampling at positions from another tensor."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.slice import SampleMode
from dryfit.network.layers.window_layer import ints
from dryfit.network.tensor import Tensor, TensorSpec


class InterpolationMode(enum.Enum):
    """Interpolation between elements; TensorRT's `InterpolationMode`."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class ResizeCoordinateTransformation(enum.Enum):
    """Mapping from an output index to a position in the input.

    The first three are TensorRT's `ResizeCoordinateTransformation`; the others are ONNX's and host only (TensorRT's
    parser translates `pytorch_half_pixel` to HALF_PIXEL with the selector UPPER).
    """

    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"
    HALF_PIXEL = "half_pixel"

    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    TF_CROP_AND_RESIZE = "tf_crop_and_resize"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the transformation."""
        return self not in (
            ResizeCoordinateTransformation.ALIGN_CORNERS,
            ResizeCoordinateTransformation.ASYMMETRIC,
            ResizeCoordinateTransformation.HALF_PIXEL,
        )


class ResizeSelector(enum.Enum):
    """Position used for an output extent of 1: the formula's, or the first element; TensorRT's `ResizeSelector`."""

    FORMULA = "formula"
    UPPER = "upper"


class ResizeRoundMode(enum.Enum):
    """Rounding of a position to an index in NEAREST mode; TensorRT's `ResizeRoundMode`.

    HALF_UP and HALF_DOWN are ONNX's `round_prefer_ceil` and `round_prefer_floor`.
    """

    HALF_UP = "half_up"
    HALF_DOWN = "half_down"
    FLOOR = "floor"
    CEIL = "ceil"


def _floats(values: Sequence[float] | None) -> tuple[float, ...]:
    return () if values is None else tuple(float(value) for value in values)


@layer_kind("resize")
class Resize(Layer):
    """The input resampled along each axis at positions computed from the output index.

    The output extents are `shape`, or input 1 (an integer tensor), or `floor(extent * scale)` with `scales` or input 2
    (a floating-point tensor, host only). Default: the input extents. If both extents and scales are given, the scales
    define the sampling positions and the extents define the output shape (host only).

    Attributes:
        shape: output extents, one per axis; empty if not set.
        scales: one per axis; empty if not set.
        resize_mode: interpolation between elements.
        coordinate_transformation: mapping from an output index to a position in the input.
        selector_for_single_pixel: position used for an output extent of 1.
        nearest_rounding: rounding of a position to an index in NEAREST mode.
        exclude_outside: whether elements outside the input have zero weight, with the other weights rescaled to sum to
            1.
        cubic_coeff: coefficient `a` of cubic interpolation.
        antialias: whether the kernel is stretched along axes that shrink. Host only.
        extrapolation_value: value outside the input for TF_CROP_AND_RESIZE.
        roi: region for TF_CROP_AND_RESIZE: the starts, then the ends, of all axes, where 0 to 1 is the input; or input
            3.

    Source: TensorRT `IResizeLayer`; ONNX `Resize`.
    """

    computing_inputs = (0,)
    dimension_inputs = (1,)
    parameter_inputs: ClassVar[Mapping[int, str]] = {1: "shape"}
    flowing_inputs = (0,)

    shape: tuple[int, ...] = attrs.field(default=(), converter=ints)
    scales: tuple[float, ...] = attrs.field(default=(), converter=_floats)
    resize_mode: InterpolationMode = InterpolationMode.NEAREST
    coordinate_transformation: ResizeCoordinateTransformation = ResizeCoordinateTransformation.ASYMMETRIC
    selector_for_single_pixel: ResizeSelector = ResizeSelector.FORMULA
    nearest_rounding: ResizeRoundMode = ResizeRoundMode.FLOOR
    exclude_outside: bool = False
    cubic_coeff: float = -0.75
    antialias: bool = False
    extrapolation_value: float = 0.0
    roi: tuple[float, ...] = attrs.field(default=(), converter=_floats)

    @property
    def is_host_only(self) -> bool:
        """Whether it uses features that TensorRT lacks."""
        return (
            self.coordinate_transformation.is_host_only
            or self.antialias
            or bool(self.shape and self.scales)
            or len(self.inputs) > 2
        )

    def output_extents(
        self,
        extents: Sequence[int],
        shape: Sequence[float] | None,
        scales: Sequence[float] | None,
        roi: Sequence[float] | None = None,
    ) -> tuple[int, ...]:
        """Return the output extents; -1 if they depend on a dynamic extent.

        Args:
            extents: extents of the input.
            shape: the parameter or the value of input 1; None if not set.
            scales: the parameter or the value of input 2; None if not set.
            roi: the parameter or the value of input 3; None if not set.

        Rounding: an extent times a scale is rounded down.
        """
        if shape is not None:
            return tuple(int(extent) for extent in shape)
        if scales is None:
            return tuple(extents)
        # ONNX: a crop's extent counts, not the input's.
        crops = [1.0] * len(extents)
        if roi is not None and self.coordinate_transformation is ResizeCoordinateTransformation.TF_CROP_AND_RESIZE:
            crops = [float(end) - float(start) for start, end in zip(roi[: len(crops)], roi[len(crops) :], strict=True)]
        return tuple(
            -1 if extent < 0 else math.floor(extent * crop * float(scale))
            for extent, crop, scale in zip(extents, crops, scales, strict=True)
        )

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the new extents, in the input's type; -1 if they come from a tensor that is not known yet."""
        x = self.required(inputs, 0)
        shape = self._given(inputs, 1, self.shape)
        scales = self._given(inputs, 2, self.scales)
        roi = self._given(inputs, 3, self.roi)
        for name, values, count in (("shape", shape, x.rank), ("scales", scales, x.rank), ("roi", roi, 2 * x.rank)):
            if values is not None and len(values) != count:
                raise self.problem(
                    f"`{name}` has the wrong number of values for an input of {x.shape}",
                    found=tuple(values),
                    allowed=f"{count} values",
                    remedy=f"Set `{name}` to one value per axis",
                )
        if scales is not None and not all(math.isfinite(scale) and scale > 0 for scale in scales):
            raise self.problem("Scales must be finite and greater than 0", found=tuple(scales), remedy="Set `scales`")
        if shape is not None and any(extent < 0 for extent in shape):
            raise self.problem("The output dimensions must be at least 0", found=tuple(shape), remedy="Set `shape`")
        if x.dtype is DataType.BOOL and self.resize_mode is not InterpolationMode.NEAREST:
            raise self.problem(
                "BOOL can only be resized in NEAREST mode",
                found=self.resize_mode.name,
                remedy="Set `resize_mode` to NEAREST, or add a cast layer",
            )
        is_open = len(inputs) > 1 and inputs[1] is not None and shape is None
        is_open |= len(inputs) > 2 and inputs[2] is not None and shape is None and scales is None
        if is_open:
            return [TensorSpec((-1,) * x.rank, x.dtype)]
        return [TensorSpec(self.output_extents(x.shape, shape, scales, roi), x.dtype)]

    def _given(self, inputs: Inputs, index: int, parameter: Sequence[float]) -> Sequence[float] | None:
        """The value of an input, or else of the parameter; None when neither is known."""
        spec = inputs[index] if index < len(inputs) else None
        if spec is not None:
            return None if spec.value is None else spec.value.ravel().tolist()
        return parameter or None


class AddResize:
    """The builder method of resize layers."""

    def add_resize(self: LayerOwner, input: Tensor) -> Resize:
        """Add a resize layer; TensorRT's `add_resize`. Set `shape` or `scales`, or connect input 1."""
        return self.add_layer(Resize(), [input])


# Sampling by a grid ---------------------------------------------------------------------------------------------------


@layer_kind("grid_sample")
class GridSample(Layer):
    """`x[N, C, H, W]` sampled at `grid[N, H', W', 2]` to give `[N, C, H', W']`; with one more axis, also volumes.

    The last axis of the grid holds (x, y) or (x, y, z): -1 and 1 are the borders of the input.

    Attributes:
        interpolation_mode: NEAREST (half to even), LINEAR, or CUBIC (with a = -0.75; two spatial axes only).
        align_corners: whether -1 and 1 are the centers of the outer elements (True) or their outer edges (False).
        sample_mode: values outside the input: FILL (0), CLAMP (the nearest element) or REFLECT (mirrored at the
            border).

    Source: TensorRT `IGridSampleLayer`; ONNX `GridSample`. Three spatial axes are supported by ONNX and host only.
    """

    needs_real_numbers = True
    computing_inputs = (0,)
    inputs_of_one_type = (0, 1)

    interpolation_mode: InterpolationMode = InterpolationMode.LINEAR
    align_corners: bool = False
    sample_mode: SampleMode = SampleMode.FILL

    @property
    def is_host_only(self) -> bool:
        """Whether it has three spatial axes, which TensorRT does not support."""
        return bool(self.inputs) and self.inputs[0] is not None and len(self.inputs[0].shape) != 4

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[N, C, *grid extents]`, in the input's type."""
        x, grid = self.required(inputs, 0), self.required(inputs, 1)
        axes = x.rank - 2
        if axes not in (2, 3) or grid.rank != x.rank or grid.shape[-1] not in (-1, axes):
            raise self.problem(
                "The grid must have a batch axis, the spatial axes of the output, and a last axis with "
                "one value per spatial axis",
                found=f"grid {grid.shape} for an input of {x.shape}",
                allowed="rank 4 with 2 values or rank 5 with 3 values",
                remedy="Reshape the grid",
            )
        if not grid.dtype.is_floating_point:
            raise self.problem(
                "The grid must be floating point", found=grid.dtype.text, remedy="Add a cast layer before it"
            )
        if -1 not in (x.shape[0], grid.shape[0]) and x.shape[0] != grid.shape[0]:
            raise self.problem(
                "Input and grid must have the same batch size",
                found=f"{x.shape[0]} and {grid.shape[0]}",
                remedy="Use the same batch size for both",
            )
        if self.sample_mode not in (SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT):
            raise self.problem(
                "This sample mode is not supported by grid sample",
                found=self.sample_mode.name,
                allowed="FILL, CLAMP, REFLECT",
                remedy="Set `sample_mode` to one of these",
            )
        if x.dtype is DataType.BOOL and self.interpolation_mode is not InterpolationMode.NEAREST:
            raise self.problem(
                "BOOL can only be sampled in NEAREST mode",
                found=self.interpolation_mode.name,
                allowed=InterpolationMode.NEAREST.name,
                is_mendable=True,
                remedy="Set `interpolation_mode` to NEAREST, or add a cast layer",
            )
        if axes == 3 and self.interpolation_mode is InterpolationMode.CUBIC:
            raise self.problem(
                "CUBIC interpolation requires two spatial axes",
                found=f"{axes} spatial axes",
                remedy="Set `interpolation_mode` to LINEAR or NEAREST",
            )
        batch = grid.shape[0] if x.shape[0] < 0 else x.shape[0]
        return [TensorSpec((batch, x.shape[1], *grid.shape[1:-1]), x.dtype)]


class AddGridSample:
    """The builder method of grid samples."""

    def add_grid_sample(self: LayerOwner, input: Tensor, grid: Tensor) -> GridSample:
        """Add a grid sample layer; TensorRT's `add_grid_sample`."""
        return self.add_layer(GridSample(), [input, grid], is_finished=False)

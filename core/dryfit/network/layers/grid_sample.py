"""Grid sample: a tensor read at places that another tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.resize import InterpolationMode
from dryfit.network.layers.slice import SampleMode
from dryfit.network.tensor import Tensor, TensorSpec


@layer_kind("grid_sample")
class GridSample(Layer):
    """`x[N, C, H, W]` read at `grid[N, H', W', 2]`, giving `[N, C, H', W']`; with one more axis, also volumes.

    The last axis of the grid holds (x, y) or (x, y, z): -1 and 1 are the borders of the input.

    Attributes:
        interpolation_mode: NEAREST (half to even), LINEAR, or CUBIC (with a = -0.75; two spatial axes only).
        align_corners: -1 and 1 are the centres of the outer elements (True) or their outer edges (False).
        sample_mode: what is outside: FILL (0), CLAMP (the nearest element) or REFLECT (mirrored at the border).

    Source: TensorRT `IGridSampleLayer`; ONNX `GridSample`. Three spatial axes are ONNX's and host only.
    """

    needs_real_numbers = True
    computing_inputs = (0,)
    inputs_of_one_type = (0, 1)

    interpolation_mode: InterpolationMode = InterpolationMode.LINEAR
    align_corners: bool = False
    sample_mode: SampleMode = SampleMode.FILL

    @property
    def is_host_only(self) -> bool:
        """Whether it uses what TensorRT lacks: three spatial axes."""
        return bool(self.inputs) and self.inputs[0] is not None and len(self.inputs[0].shape) != 4

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[N, C, *places of the grid]` of the input's type."""
        x, grid = self.required(inputs, 0), self.required(inputs, 1)
        axes = x.rank - 2
        if axes not in (2, 3) or grid.rank != x.rank or grid.shape[-1] not in (-1, axes):
            raise self.problem(
                "The grid has batch, the output's spatial axes, and a last axis with one value a spatial axis",
                found=f"grid {grid.shape} for an input of {x.shape}",
                allowed="rank 4 with 2 values or rank 5 with 3 values",
            )
        if not grid.dtype.is_floating_point:
            raise self.problem("A grid holds floating-point numbers", found=grid.dtype.name)
        if -1 not in (x.shape[0], grid.shape[0]) and x.shape[0] != grid.shape[0]:
            raise self.problem("Input and grid have one batch size", found=f"{x.shape[0]} and {grid.shape[0]}")
        if self.sample_mode not in (SampleMode.FILL, SampleMode.CLAMP, SampleMode.REFLECT):
            raise self.problem("This sample mode is none of grid sample's", found=self.sample_mode.name)
        if x.dtype is DataType.BOOL and self.interpolation_mode is not InterpolationMode.NEAREST:
            raise self.problem(
                "interpolation of BOOL must be NEAREST",
                found=self.interpolation_mode.name,
                allowed=InterpolationMode.NEAREST.name,
                is_mendable=True,
            )
        if axes == 3 and self.interpolation_mode is InterpolationMode.CUBIC:
            raise self.problem("CUBIC interpolation is over two spatial axes", found=f"{axes} spatial axes")
        batch = grid.shape[0] if x.shape[0] < 0 else x.shape[0]
        return [TensorSpec((batch, x.shape[1], *grid.shape[1:-1]), x.dtype)]


class AddGridSample:
    """The builder method of grid samples."""

    def add_grid_sample(self: LayerOwner, input: Tensor, grid: Tensor) -> GridSample:
        """Add a grid sample; TensorRT's `add_grid_sample`."""
        return self.add_layer(GridSample(), [input, grid], is_finished=False)

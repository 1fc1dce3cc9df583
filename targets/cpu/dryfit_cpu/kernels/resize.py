"""Resizing images, to the nearest pixel or linearly in both axes; quantized ones are requantized in the same pass.

Of quantized images, in FP32, each step one operation, rounded to nearest even; a, b are the codes above and below on
the left, c, d those on the right:

    left, right = a * w0 + b * w1, c * w0 + d * w1       w0, w1: weights of the rows, their sum is 1
    x = left * v0 + right * v1                           v0, v1: weights of the columns; x = a for the nearest pixel
    x = (x - zero_point) * multiplier                    scale of the input / scale of the output, rounded once
    the result is round(limit(x)) + zero_point of the output
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import SampleSteps
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.dense_operands import with_dense_rows
from dryfit_cpu.kernels.integer_stages import Quantized
from dryfit_cpu.kernels.operands import ImageOperand, aligned_empty, bound_array, input_of, require_extents
from dryfit_cpu.kernels.requantization import bound_requantization, scaled_source, scaling_kernel

_RESIZE, _RESIZE_PLANES = NativeFunction("lookup", "resize"), NativeFunction("lookup", "resize_planes")
_LANES = current_tier().lanes


def axis_tables(layer: Resize, source: ImageOperand, output: ImageOperand, axis: int) -> tuple[Array, Array]:
    """Byte offsets int64[outputs, 2] and weights float32[outputs, 2] of one axis.

    The reference says where each output lies: it resizes an image whose pixels hold their own index.
    """
    extents, outputs = [1, 1, 1, 1], [1, 1, 1, 1]
    extents[axis], outputs[axis] = source.shape[axis], output.shape[axis]
    ramp = np.arange(source.shape[axis], dtype=np.float64).reshape(extents)
    parameters = {field.name: getattr(layer, field.name) for field in Resize.parameters()}
    scales = tuple(scale if index == axis else 1.0 for index, scale in enumerate(layer.scales))
    probe = Resize(**{**parameters, "shape": tuple(outputs), "scales": scales})
    places = evaluate(probe, [ramp])[0].ravel()
    require_extents(places.shape, (output.shape[axis],), "places along an axis")
    last = source.shape[axis] - 1
    first = np.clip(np.floor(places), 0, last).astype(np.int64).clip(0, last)  # what is no number becomes anything
    second = np.minimum(first + 1, last)
    weight = (places - first).astype(np.float32)
    offsets = np.stack([first, second], axis=1) * source.strides[axis]
    return np.ascontiguousarray(offsets), np.ascontiguousarray(np.stack([1 - weight, weight], axis=1))


_OF_INT8 = SampleSteps(low=-128.0, high=127.0)


def can_resize(layer: Layer, x: TensorSpec, y: TensorSpec) -> bool:
    """Whether a layer samples images as the native function does."""
    return (
        isinstance(layer, Resize)
        and len(layer.inputs) <= 2
        and x.rank == 4
        and x.shape[:2] == y.shape[:2]
        and all(scale == 1 for scale in layer.scales[:2])
        and layer.resize_mode in (InterpolationMode.NEAREST, InterpolationMode.LINEAR)
        and layer.coordinate_transformation is not ResizeCoordinateTransformation.TF_CROP_AND_RESIZE
        and not layer.antialias
        and not layer.exclude_outside
        and 0 not in x.shape
    )


def bind_resize(binding: Binding, x: Array, y: Array, steps: SampleSteps) -> NativeStep:
    """A step that samples an image by tables of places."""
    layer = cast("Resize", binding.group.main)
    output = ImageOperand.of(y)
    require_extents(y.shape[:2], x.shape[:2], "output of a resize")
    N, C, H, _ = y.shape
    # Each lane of a pixel's channels would be a store of its own into planes, whose lines share sets of the cache where
    # images are large: 21 channels of 224 x 224 took three times as long.
    is_planar = output.strides[3] == output.size and (C == 1 or not output.has_dense_channels)
    source, before = with_dense_rows(x, binding.num_threads) if is_planar else (ImageOperand.of(x), [])
    tables = [axis_tables(layer, source, output, axis) for axis in (2, 3)]
    chunks = min(N * C * H if is_planar else N * H, chunks_for(y.size, binding.num_threads))
    more, keeps = {}, [source.array]
    if is_planar:
        tables[1] = _in_turns(*tables[1], source.size)
        rows = aligned_empty((chunks, -(-x.shape[3] // _LANES) * _LANES), np.float32)
        more, keeps = {"rows": rows.ctypes.data}, [source.array, rows]
    (row_offsets, row_weights), (column_offsets, column_weights) = tables
    work = (_RESIZE_PLANES if is_planar else _RESIZE).work(
        chunks,
        source=source.image,
        output=output.image,
        row_offsets=row_offsets.ctypes.data,
        row_weights=row_weights.ctypes.data,
        column_offsets=column_offsets.ctypes.data,
        column_weights=column_weights.ctypes.data,
        is_nearest=int(layer.resize_mode is InterpolationMode.NEAREST),
        steps=steps,
        **more,
    )
    return NativeStep(binding.group.name, [*before, work], [binding, tables, keeps])


def _in_turns(offsets: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """Tables of an axis for rows of FP32: all first places, then all second ones, each filled up to whole vectors."""
    places = -(-len(offsets) // _LANES) * _LANES
    spread = np.zeros((2, places), np.int64), np.zeros((2, places), np.float32)
    spread[0][:, : len(offsets)], spread[1][:, : len(offsets)] = offsets.T // size * 4, weights.T
    return spread


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """Real images, and quantized ones where values are only picked."""
    layer = group.main
    x, y = specs[input_of(group).name], specs[layer.outputs[0].name]
    is_served = x.dtype in FLOATS or cast("Resize", layer).resize_mode is InterpolationMode.NEAREST
    return len(group.layers) == 1 and is_served and can_resize(layer, x, y)


@kernel(
    "cpu.resize",
    kinds="resize",
    data_types=FLOATS | {DataType.INT8},
    accepts=_accepts,
    layout=HostLayout.CHANNELS_LAST,
)
def resize_image(binding: Binding) -> NativeStep:
    """A step that samples the image."""
    layer = binding.group.main
    x, y = (bound_array(binding, tensor.name) for tensor in (input_of(binding.group), layer.outputs[0]))
    return bind_resize(binding, x, y, _OF_INT8 if y.dtype == np.int8 else SampleSteps())


def _accepts_integers(group: LayerGroup, specs: Specs) -> bool:
    x, y = specs[input_of(group).name], specs[group.main.outputs[0].name]
    return scaled_source(group) is not None and can_resize(group.main, x, y)


@scaling_kernel(
    "cpu.integer_resize",
    kinds="resize",
    accepts=_accepts_integers,
    layout=HostLayout.CHANNELS_LAST,
)
def resize_integers(binding: Binding) -> NativeStep:
    """A step that samples the image and requantizes."""
    source = cast("Quantized", scaled_source(binding.group))
    x, y = (bound_array(binding, tensor.name) for tensor in (source.tensor, binding.group.outputs[0]))
    return bind_resize(binding, x, y, bound_requantization(binding).sampled(source.grid))

"""Local response normalization across channels: the squares with zeros around them, then their sums."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.network.layers.normalization import Lrn
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS, PROD
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.kernels.copying import chunks_for, copy_work, pointwise_work
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, bound_array, fp32_bytes, require_extents

_NORMALIZE_LOCALLY = NativeFunction("normalization", "normalize_locally")
_RANKS = (2, 3, 4)


def _reach(layer: Lrn, channels: int) -> tuple[int, int]:
    """Neighbours that are summed before and after a channel; beyond the channels there are only zeros."""
    before, after = (layer.window_size - 1) // 2, layer.window_size // 2
    return min(before, channels), min(after, channels)


def _squares_shape(layer: Lrn, shape: Shape) -> tuple[int, int, int]:
    """(N, pixels, channels with their neighbours); the last vector of channels may be read as a whole."""
    N, C, *spatial = shape
    return (N, math.prod(map(int, spatial)), sum(_reach(layer, C)) + -(-C // PANEL_CHANNELS) * PANEL_CHANNELS)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    return isinstance(layer, Lrn) and specs[cast("Tensor", layer.inputs[0]).name].rank in _RANKS


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """Room for the squares."""
    del num_threads
    return fp32_bytes(_squares_shape(cast("Lrn", group.main), specs[cast("Tensor", group.main.inputs[0]).name].shape))


def _image(array: Array) -> Array:
    """`[N, C, H, W]` of an array with up to two spatial axes."""
    return array[(..., *(None,) * (4 - array.ndim))] if array.ndim < 3 else array


@kernel(
    "cpu.lrn",
    kinds="lrn",
    data_types=FLOATS,
    accepts=_accepts,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def normalize_locally(binding: Binding) -> NativeStep:
    """A step of the squares, zeros around them, and the quotients."""
    layer, threads = cast("Lrn", binding.group.main), binding.num_threads
    x = ImageOperand.of(_image(bound_array(binding, cast("Tensor", layer.inputs[0]).name)))
    y = ImageOperand.of(_image(bound_array(binding, layer.outputs[0].name)))
    require_extents(y.shape, x.shape, "output of a normalization")
    N, C, H, W = x.shape
    before, after = _reach(layer, C)
    squares = Workspace(binding).take(_squares_shape(layer, x.shape))
    # Squares with zeros beside the channels: the sums then have no border. A line of padding is cheaper than a question
    # for each channel.
    inside = squares[:, :, before : before + C].reshape(N, H, W, C).transpose(0, 3, 1, 2)
    zero = np.zeros(1, np.float32)
    work = [
        *copy_work(zero, squares[:, :, :before], threads),
        *copy_work(zero, squares[:, :, before + C :], threads),
        *pointwise_work(PROD, [x.array, x.array], inside, threads),
    ]
    work.append(
        _NORMALIZE_LOCALLY.work(
            min(chunks_for(x.array.size * layer.window_size, threads), max(1, N * H * W)),
            squares=squares.ctypes.data,
            square_pitch=squares.strides[1],
            source=x.image,
            output=y.image,
            window=before + after + 1,
            factor=layer.alpha / layer.window_size,
            offset=layer.k,
            exponent=layer.beta,
        )
    )
    return NativeStep(binding.group.name, work, [binding, x, y, squares, zero])

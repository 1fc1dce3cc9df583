"""Depthwise convolution: as many groups as channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels import convolution, epilogues
from dryfit_cpu.kernels.constants import constant_weights, filled_channels
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import Operand, Workspace, bound_array, fp32_bytes, require_extents
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep, Work

_NO_PADDING = ((0, 0), (0, 0))
_PARTS_OF_A_THREAD = 4
_DEPTHWISE = NativeFunction("depthwise", "depthwise")


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Weights `[window rows, window columns, C]` and bias `[C]`, C filled up with zeros to whole vectors."""
    weights, bias = epilogues.folded(group, *constant_weights(cast("Convolution", group.main)))
    C = weights.shape[0]
    window = (1, weights.shape[2]) if weights.ndim == 3 else weights.shape[2:]
    return {
        "weights": filled_channels(np.moveaxis(weights.reshape(C, *window), 0, -1)),
        "bias": filled_channels(bias),
    }


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Convolution) or not convolution.accepts(group, specs):
        return False
    if len(layer.kernel_size_nd) > 2:
        return False
    channels = specs[cast("Tensor", layer.inputs[0]).name].shape[1]
    return layer.num_groups == channels == layer.num_output_maps


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """Room for the widened input."""
    del num_threads
    layer = cast("Convolution", group.main)
    x = specs[cast("Tensor", layer.inputs[0]).name]
    window = attrs.evolve(Window.of(layer, x, specs[layer.outputs[0].name]), padding=_NO_PADDING)
    return fp32_bytes(window.staged_shape) if x.dtype is not DataType.FLOAT else 0


def _strip(output: Sequence[int], threads: int) -> int:
    """Rows that are computed one after the other for a vector of channels, so that they share inputs and weights.

    All of them where that leaves enough work for each thread.
    """
    N, C, H, _ = output
    vectors = N * -(-C // current_tier().lanes)
    parts = 1 if threads == 1 else -(-_PARTS_OF_A_THREAD * threads // max(1, vectors))
    return max(1, -(-H // parts))


@kernel(
    "cpu.depthwise_convolution",
    kinds="convolution",
    data_types=FLOATS,
    accepts=_accepts,
    fuses=epilogues.fuses,
    pack=_pack,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
    priority=10,
)
def convolve_channels(binding: Binding) -> NativeStep:
    """A step that widens the input where it is no FP32 or not channels last, and convolves each channel."""
    layer = cast("Convolution", binding.group.main)
    x, y = cast("Tensor", layer.inputs[0]), binding.group.outputs[0]
    window = Window.of(layer, binding.specs[x.name], binding.specs[y.name])
    source, work = Operand.of(bound_array(binding, x.name)), list[Work]()
    address, strides = source.address, source.strides
    keeps: list[object] = [binding, source]
    bare = attrs.evolve(window, padding=_NO_PADDING)
    if needs_staging(bare, source):
        staged = Workspace(binding).take(bare.staged_shape)
        work.append(stage_work(bare, source, staged, binding.num_threads))
        n, h, w, c = staged.strides
        address, strides = staged.ctypes.data, (n, c, h, w)
        keeps.append(staged)
    output = Operand.of(bound_array(binding, y.name))
    require_extents(source.shape, window.input, "input of a window")
    require_extents(output.shape, window.output, "output of a window")
    require_extents(output.shape[:2], source.shape[:2], "output of a window for each channel")
    epilogue = epilogues.required_epilogue(binding)
    residual = None
    if epilogue.residual is not None:
        given = bound_array(binding, epilogue.residual.name)
        residual = Operand.of(np.broadcast_to(given, binding.specs[y.name].shape))
        keeps.append(residual)
    N, C, H, W = output.shape
    padded = -(-C // PANEL_CHANNELS) * PANEL_CHANNELS
    weights, bias = binding.weight("weights", (*window.kernel, padded)), binding.weight("bias", (padded,))
    added = residual.strides if residual is not None else (0, 0, 0, 0)
    inner, inner_alpha, inner_beta = epilogue.inner
    activation, alpha, beta = epilogue.outer
    low, high = epilogue.clamps or (-np.inf, np.inf)
    work.append(
        _DEPTHWISE.work(
            chunks_for(N * C * H * W * weights.shape[0] * weights.shape[1], binding.num_threads),
            source=address,
            image_stride=strides[0],
            row_stride=strides[2],
            pixel_stride=strides[3],
            channel_stride=strides[1],
            source_rows=window.input[2],
            source_columns=window.input[3],
            weights=weights.ctypes.data,
            bias=bias.ctypes.data,
            padded_channels=weights.shape[2],
            **output.output_fields(),
            residual=residual.address if residual is not None else 0,
            residual_image_stride=added[0],
            residual_row_stride=added[2],
            residual_pixel_stride=added[3],
            residual_channel_stride=added[1],
            residual_kind=residual.kind if residual is not None else FP32,
            window_rows=window.kernel[0],
            window_columns=window.kernel[1],
            row_step=window.stride[0],
            column_step=window.stride[1],
            row_dilation=window.dilation[0],
            column_dilation=window.dilation[1],
            top=window.padding[0][0],
            left=window.padding[1][0],
            low=low,
            high=high,
            strip=_strip(output.shape, binding.num_threads),
            finishes=int(epilogue.clamps is None or residual is not None or output.kind != FP32),
            inner_activation=inner,
            inner_alpha=inner_alpha,
            inner_beta=inner_beta,
            activation=activation,
            alpha=alpha,
            beta=beta,
        )
    )
    return NativeStep(binding.group.name, work, keeps)

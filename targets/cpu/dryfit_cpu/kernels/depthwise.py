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
from dryfit_cpu.kernels.operands import Operand, Workspace, bound_array, fp32_bytes, image_of, require_extents
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
    image = source.image
    keeps: list[object] = [binding, source]
    bare = attrs.evolve(window, padding=_NO_PADDING)
    if needs_staging(bare, source):
        staged = Workspace(binding).take(bare.staged_shape)
        work.append(stage_work(bare, source, staged, binding.num_threads))
        n, h, w, c = staged.strides
        image = image._replace(
            address=staged.ctypes.data, image_stride=n, row_stride=h, pixel_stride=w, channel_stride=c
        )
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
    rows, columns = window.axes
    bypasses = epilogue.clamps is None or residual is not None or output.kind != FP32
    work.append(
        _DEPTHWISE.work(
            chunks_for(N * C * H * W * weights.shape[0] * weights.shape[1], binding.num_threads),
            source=image,
            weights=weights.ctypes.data,
            bias=bias.ctypes.data,
            padded_channels=weights.shape[2],
            output=output.image,
            residual=image_of(residual, FP32),
            window_rows=rows,
            window_columns=columns,
            strip=_strip(output.shape, binding.num_threads),
            finish=epilogue.finish(bypasses=bypasses),
        )
    )
    return NativeStep(binding.group.name, work, keeps)

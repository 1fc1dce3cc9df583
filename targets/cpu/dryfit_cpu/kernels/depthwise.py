"""Convolution in many small groups: depthwise, as many as channels; and of four channels each, as ResNeXt has them.

What both have in common is that vectors lie across groups: a group alone would not fill one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit.target.tactics import Tactics
from dryfit_cpu.codes import FP32, HARD_SWISH, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.compiler.window_variants import PAIR_ROWS, PAIRED_WINDOWS, REAL_SUMS
from dryfit_cpu.descriptors import Image, WordTable
from dryfit_cpu.kernels import convolution, epilogues
from dryfit_cpu.kernels.branches import summed_weights
from dryfit_cpu.kernels.constants import filled_channels
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.dense_operands import DenseOperands
from dryfit_cpu.kernels.epilogues import weighted_kernel
from dryfit_cpu.kernels.operands import (
    ImageOperand,
    Workspace,
    bound_array,
    fp32_bytes,
    image_of,
    input_of,
    require_extents,
)
from dryfit_cpu.kernels.window_panels import block_table, real_panel, real_zeros
from dryfit_cpu.kernels.window_products import WindowInput, staged
from dryfit_cpu.kernels.windows import WindowGeometry, images_of
from dryfit_cpu.tactics import ROWS, plane_tactics

_NO_PADDING = ((0, 0), (0, 0))
_PARTS_OF_A_THREAD = 4
_DEPTHWISE = NativeFunction("depthwise", "depthwise")


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Weights `[window rows, window columns, C]` and bias `[C]`, C filled up with zeros to whole vectors."""
    weights, bias = epilogues.folded(group, *summed_weights(group))
    C = weights.shape[0]
    window = (1, weights.shape[2]) if weights.ndim == 3 else weights.shape[2:]
    return {
        "weights": filled_channels(np.moveaxis(weights.reshape(C, *window), 0, -1)),
        "bias": filled_channels(bias),
    }


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, Convolution) or len(layer.kernel_size_nd) > 2 or not convolution.accepts(group, specs):
        return False
    channels = specs[input_of(group).name].shape[1]
    return 1 < layer.num_groups == channels == layer.num_output_maps  # of one channel, vectors would be empty


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    """Whether the sums end without hard swish: loops of windows end in limits, and asking costs every layer a fifth."""
    epilogue = epilogues.epilogue_of(LayerGroup((*group.layers, layer)))
    return epilogue is not None and epilogue.outer.kind != HARD_SWISH


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    """Room for the widened input."""
    layer = cast("Convolution", group.main)
    x = specs[input_of(group).name]
    window = attrs.evolve(WindowGeometry.of(layer, x, specs[layer.outputs[0].name]), padding=_NO_PADDING)
    is_copied = x.dtype is not DataType.FLOAT or window.input[1] < REAL_SUMS.widths[-1]
    return fp32_bytes(window.staged_shape) if is_copied else 0


def _tactics(group: LayerGroup, specs: Specs) -> Tactics:
    return plane_tactics(images_of(specs[group.main.outputs[0].name].shape), REAL_SUMS.widths[0])


def _strip(output: Sequence[int], threads: int, tactic: str) -> int:
    """Rows that are computed one after the other for a block of channels, so that they share inputs.

    As few as go together, or all of them where that leaves enough work for each thread.
    """
    N, C, H, _ = output
    names = [tactic] if tactic else plane_tactics(output, REAL_SUMS.widths[0]).names
    if names and names[0] == ROWS:
        return PAIR_ROWS if PAIRED_WINDOWS else 1
    blocks = N * -(-C // REAL_SUMS.widths[0])
    parts = 1 if threads == 1 else -(-_PARTS_OF_A_THREAD * threads // max(1, blocks))
    return max(1, -(-H // parts))


@weighted_kernel(
    "cpu.depthwise_convolution",
    kinds="convolution",
    accepts=_accepts,
    fuses=_fuses,
    pack=_pack,
    workspace_bytes=_workspace_bytes,
    priority=10,
    tactics=_tactics,
)
def convolve_channels(binding: Binding) -> NativeStep:
    """A step that widens the input where it is no FP32 or not channels last, and convolves each channel."""
    layer = cast("Convolution", binding.group.main)
    x, y = input_of(binding.group), binding.group.outputs[0]
    window = WindowGeometry.of(layer, binding.specs[x.name], binding.specs[y.name])
    source = ImageOperand.of(bound_array(binding, x.name))
    bare, is_narrow = attrs.evolve(window, padding=_NO_PADDING), window.input[1] < REAL_SUMS.widths[-1]
    # Fewer channels than a vector has are read with what lies behind them, which a copy in the workspace may be.
    address, (n, h, w), work, keeps = staged(bare, source, Workspace(binding), binding.num_threads, must_copy=is_narrow)
    image = source.image._replace(address=address, image_stride=n, row_stride=h, pixel_stride=w, channel_stride=4)
    output = ImageOperand.of(bound_array(binding, y.name))
    require_extents(source.shape, window.input, "input of a window")
    require_extents(output.shape, window.output, "output of a window")
    require_extents(output.shape[:2], source.shape[:2], "output of a window for each channel")
    epilogue = epilogues.required_epilogue(binding)
    residual = None
    if epilogue.residual is not None:
        given = bound_array(binding, epilogue.residual.name)
        residual = ImageOperand.of(np.broadcast_to(given, binding.specs[y.name].shape))
        keeps.append(residual)
    N, C, H, W = output.shape
    padded = -(-C // PANEL_CHANNELS) * PANEL_CHANNELS
    weights, bias = binding.weight("weights", (*window.kernel, padded)), binding.weight("bias", (padded,))
    rows, columns = window.axes
    is_direct = output.kind == FP32 and output.has_dense_channels and not is_narrow
    bypasses = epilogue.clamps is None or residual is not None or not is_direct
    finish = epilogue.finish(bypasses=bypasses)
    limits = (finish.low, finish.high)
    covered = max(C, REAL_SUMS.widths[-1])
    panels = [
        real_panel(weights[..., first : first + width], bias[first : first + width], limits)
        for first, width in REAL_SUMS.blocks(covered)
    ]
    blocks, outside = block_table(REAL_SUMS, covered, rows, columns, panels), real_zeros()
    work.append(
        _DEPTHWISE.work(
            chunks_for(N * C * H * W * weights.shape[0] * weights.shape[1], binding.num_threads),
            source=image,
            outside=outside.ctypes.data,
            blocks=WordTable(blocks.ctypes.data, len(blocks)),
            output=output.image,
            residual=image_of(residual, FP32),
            window_rows=rows,
            window_columns=columns,
            strip=_strip(output.shape, binding.num_threads, binding.tactic),
            finish=finish,
        )
    )
    return NativeStep(binding.group.name, work, [binding, *keeps, panels, blocks, outside])


_CONVOLVE = NativeFunction("depthwise", "convolve_groups")
_GROUP, _PACKED = 4, 16


def _pack_groups(group: LayerGroup) -> dict[str, Array]:
    """The kernel `[K / 16, places, inputs of a group, 16]` and the bias, with the scales of the group folded in."""
    weights, bias = epilogues.folded(group, *summed_weights(group))
    # `[K / 16][place][input][16]`: the weights of sixteen outputs for one input of each of their groups are a register;
    # narrower machines take parts of it.
    blocks = weights.reshape(len(weights) // _PACKED, _PACKED, _GROUP, -1).transpose(0, 3, 2, 1)
    return {"weights": np.ascontiguousarray(blocks, np.float32), "bias": bias.astype(np.float32)}


def _accepts_groups(group: LayerGroup, specs: Specs) -> bool:
    """Groups of four inputs and four outputs, over one or two axes, and whole packed vectors of them."""
    layer = group.main
    if not isinstance(layer, Convolution) or len(layer.kernel_size_nd) > 2 or not convolution.accepts(group, specs):
        return False
    inputs, outputs = specs[input_of(group).name].shape[1], layer.num_output_maps
    return inputs == outputs == _GROUP * layer.num_groups and outputs % _PACKED == 0


@weighted_kernel(
    "cpu.grouped_convolution",
    kinds="convolution",
    accepts=_accepts_groups,
    fuses=epilogues.fuses,
    pack=_pack_groups,
    workspace_bytes=convolution.workspace_bytes,
    priority=10,
)
def convolve_groups(binding: Binding) -> NativeStep:
    """A step that brings the input into order where it is not, and convolves."""
    layer, epilogue = cast("Convolution", binding.group.main), epilogues.required_epilogue(binding)
    source = input_of(binding.group).name
    window = WindowGeometry.of(layer, binding.specs[source], binding.specs[layer.outputs[0].name])
    dense = DenseOperands.of(binding, epilogue)
    read = WindowInput.of(window, bound_array(binding, source), Workspace(binding), binding.num_threads)
    require_extents(dense.output.shape, window.output, "output of a window")
    N, C, H, W = window.output
    require_extents((window.input[1], C % _PACKED), (C, 0), "channels of a window in groups")
    places = np.array(read.segments, np.int64)
    weights = binding.weight("weights", (C // _PACKED, len(places), _GROUP, _PACKED))
    bias = binding.weight("bias", (C,))
    work = _CONVOLVE.work(
        chunks_for(N * C * H * W * len(places), binding.num_threads),
        input=Image(read.address, FP32, *read.strides, 4, N, H, W, C),
        places=WordTable(places.ctypes.data, len(places)),
        weights=weights.ctypes.data,
        bias=bias.ctypes.data,
        output=dense.output.image,
        residual=image_of(dense.residual, FP32),
        finish=epilogue.finish(bypasses=True),
    )
    step = NativeStep(binding.group.name, [*read.work, work], [binding, *read.keeps, places, weights, bias])
    return dense.around([step])

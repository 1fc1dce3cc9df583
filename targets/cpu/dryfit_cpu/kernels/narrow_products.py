"""Products of rows with narrow weights: what a group is made of, and its step.

The arithmetic, in numpy (`x` is FP32, or dequantized to it; `f32` rounds to nearest even):

    scale = f32(f32(scales) * f32(global scale))       the first only where scales are not dequantized themselves
    w = f32(f32(codes) * scale)                        what the dequantize layers give
    y = bias + sum over k of x[k] * w[k]               FP32, in the order of k, from the bias on
    then residual, activations and the output's type, or a quantize layer, as after `cpu.matrix_multiply`

So a result equals, bit for bit, that of the dequantize layers followed by `cpu.matrix_multiply` on FP32. Beside
`x @ w + bias` in exact numbers it is off by at most `(K + 1) * 2**-24 * (abs(x) @ abs(w) + abs(bias))`, as any sum of
K + 1 FP32 terms is. Dequantize layers that round to FP16 or BF16 do so outside of groups only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs
from dryfit_cpu.codes import NARROW_CODES, PANEL_CHANNELS, PANEL_WORDS
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Pixels, Runs, WordTable
from dryfit_cpu.kernels.matrix_products import Axis, joined, panel_table, tile_table, whole_blocks
from dryfit_cpu.kernels.narrow_quantization import conversion_work
from dryfit_cpu.kernels.narrow_weights import NarrowGroup, NarrowWeights, dequantization, narrow_group, panels_of
from dryfit_cpu.kernels.operands import Workspace, aligned_empty, bound_array, fp32_bytes, input_of

_MULTIPLY = NativeFunction("narrow_products", "multiply")
_DECODED_VALUES = 768 if current_tier().lanes == 8 else 128
"""Weights k of a block that are decoded at a time: with AVX512 16 KiB, half of the first-level cache. A block of AVX2
has fewer products for each sum that it reads and writes. 16 and 64 rows take 0.92 and 0.93 of the time with 768 instead
of 128 (AMD EPYC, Zen 3, medians of interleaved runs)."""
_TILES_AT_ONCE = 16
"""Tiles that share them, whose sums fit in the second-level cache."""
_MOST_ROWS = 4
"""Up to so many rows weights are decoded for each row: without a detour through memory, and from a higher level."""
_CHUNKS_A_THREAD = 4
IMAGE_RANK = 4
"""Axes of an image: N, C, H, W."""


def real_input(binding: Binding, found: NarrowGroup, workspace: Workspace) -> tuple[Array, list[Work], list[object]]:
    """What the main layer reads, in real numbers: dequantized to FP32 where the group does that."""
    if found.dequantize is None:
        return bound_array(binding, found.source.name), [], []
    x = bound_array(binding, cast("Tensor", found.dequantize.inputs[0]).name)
    tensor, threads = cast("Tensor", found.dequantize.inputs[1]), binding.num_threads
    work, keeps = list[Work](), list[object]()
    inner = dequantization(tensor, binding.group)
    if inner is None:
        scales = bound_array(binding, tensor.name)
    else:
        numbers, outer = (bound_array(binding, cast("Tensor", one).name) for one in inner.inputs)
        scales = aligned_empty(numbers.shape, inner.to_type.numpy)
        more, kept = conversion_work(inner, numbers, outer, scales, threads)
        work, keeps = more, [scales, kept]
    wide = _taken(workspace, x.shape)
    more, kept = conversion_work(found.dequantize, x, scales, wide, threads)
    return wide, [*work, *more], [*keeps, wide, kept]


def _taken(workspace: Workspace, shape: Shape) -> Array:
    """FP32 memory of this shape; that of an image with its channels last."""
    if len(shape) != IMAGE_RANK:
        return workspace.take(shape)
    N, C, H, W = shape
    return workspace.take((N, H, W, C)).transpose(0, 3, 1, 2)


def real_output(binding: Binding, found: NarrowGroup, workspace: Workspace) -> Array:
    """What the product writes: the group's output, or FP32 in its shape where that is quantized at the end."""
    output = bound_array(binding, binding.group.outputs[0].name)
    return output if found.quantize is None else _taken(workspace, output.shape)


def ending_work(binding: Binding, found: NarrowGroup, made: Array) -> tuple[list[Work], list[object]]:
    """The work that quantizes what the product wrote, where the group does that, and what has to be kept for it."""
    if found.quantize is None:
        return [], []
    output = bound_array(binding, binding.group.outputs[0].name)
    scale = bound_array(binding, cast("Tensor", found.quantize.inputs[1]).name)
    work, kept = conversion_work(found.quantize, made, scale, output, binding.num_threads)
    return work, [*kept]


def input_bytes(group: LayerGroup, specs: Specs) -> int:
    """Workspace for what `real_input` dequantizes."""
    x = input_of(group)
    return fp32_bytes(specs[x.name].shape) if dequantization(x, group) is not None else 0


def scratch_bytes(weights: NarrowWeights, tiles_at_once: int) -> int:
    """Memory of one chunk: FP32 scales of a block's channels, sums of tiles and their places, decoded weights."""
    tier = current_tier()
    rows = len(weights.scales) + tiles_at_once + _DECODED_VALUES + 8
    size = rows * 4 * PANEL_CHANNELS + tiles_at_once * tier.rows * 4 * tier.block_channels
    return -(-size // 64) * 64


def chunks_for_panels(channels: int, threads: int) -> int:
    """Chunks of a product with so many output channels."""
    panels = -(-channels // current_tier().block_channels)
    return 1 if threads == 1 else min(panels, _CHUNKS_A_THREAD * threads)


def product_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """Workspace of `real_input`, `real_output` and `NarrowProduct.work`."""
    found = cast("NarrowGroup", narrow_group(group))
    y = specs[group.main.outputs[0].name]
    real = input_bytes(group, specs) + (fp32_bytes(y.shape) if found.quantize is not None else 0)
    chunks = chunks_for_panels(found.weights.shape[0], num_threads)
    return real + fp32_bytes((chunks * scratch_bytes(found.weights, _TILES_AT_ONCE) // 4,))


@frozen(eq=False)
class NarrowProduct:
    """A product in all its strides.

    Attributes:
        axes: the pixels or rows, from outermost to innermost.
        input, output, residual: the first; its address.
        runs: byte offsets of the runs of values that an output sums over.
    """

    axes: Sequence[Axis]
    input: int
    output: Pixels
    residual: Pixels
    runs: Sequence[int]

    def work(self, binding: Binding, found: NarrowGroup, workspace: Workspace) -> tuple[Work, list[object]]:
        """The work, and what has to be kept for it."""
        weights, epilogue = found.weights, found.epilogue
        N, _, values = weights.shape
        words = binding.weight("words", weights.words, DataType.UINT8)
        scale_type = DataType.from_numpy(weights.scales.dtype)
        scales = binding.weight("scales", (panels_of(N), len(weights.scales), PANEL_CHANNELS), scale_type)
        global_scale = binding.weight("global_scale", (1,))
        bias = binding.weight("bias", (panels_of(N) * PANEL_CHANNELS,))
        axes = joined(self.axes)
        tiles, _ = tile_table(axes)
        # Few rows, as a language model has when it writes word by word, are bound by reading weights: those are decoded
        # in registers, once for each row. With more rows decoding would be repeated, so weights are decoded to the
        # cache first.
        by_rows = len(tiles) <= _MOST_ROWS and bool((tiles[:, 6] == 1).all())
        depth = words.shape[1] * words.shape[2]
        sizes = 4 >> (self.output.kind & 3), 4 >> (self.residual.kind & 3)
        panels = panel_table([(0, 0, 0, 0, 0)], whole_blocks(N), depth, *sizes)
        runs, origin = np.array(self.runs, np.int64), np.zeros(PANEL_WORDS, np.int64)
        chunks = chunks_for_panels(N, binding.num_threads)
        room = scratch_bytes(weights, _TILES_AT_ONCE)
        scratch = workspace.take((chunks * room // 4,))
        work = _MULTIPLY.work(
            chunks,
            input=Pixels(self.input, axes[2].input),
            weights=words.ctypes.data,
            weight_kind=NARROW_CODES[weights.dtype],
            scales=scales.ctypes.data,
            scale_kind=NARROW_CODES[scale_type],
            scale_blocks=len(weights.scales),
            global_scale=float(global_scale[0]),
            block=weights.block,
            bias=bias.ctypes.data,
            output=self.output._replace(stride=axes[2].output),
            residual=self.residual._replace(stride=axes[2].residual),
            segments=Runs(runs.ctypes.data, len(runs), values),
            segment_bytes=words.strides[1],
            origin=origin.ctypes.data,
            tiles=WordTable(tiles.ctypes.data, len(tiles)),
            panels=WordTable(panels.ctypes.data, len(panels)),
            by_rows=int(by_rows),
            tiles_at_once=_TILES_AT_ONCE,
            decoded_values=_DECODED_VALUES,
            scratch=scratch.ctypes.data,
            scratch_bytes=room,
            finish=epilogue.finish(bypasses=True),
        )
        return work, [words, scales, global_scale, bias, tiles, panels, runs, origin, scratch]

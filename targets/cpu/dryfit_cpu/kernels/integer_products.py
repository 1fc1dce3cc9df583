"""Binding sums of quantized values: the input in place or staged, weights as this machine multiplies them, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.target.kernels import Array, Binding
from dryfit_cpu import codes
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.tier import IntegerProducts, current_tier
from dryfit_cpu.descriptors import Pixels, Runs, WordTable
from dryfit_cpu.kernels.code_ranges import has_no_negative_codes
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images
from dryfit_cpu.kernels.integer_endings import (
    PackedFixedPoint,
    channel_scales,
    ending_of,
    largest,
    without_needless_rounding,
)
from dryfit_cpu.kernels.integer_staging import (
    Staged,
    runs_in_place,
    stage_integers_work,
    with_pixels_of,
    without_steps,
)
from dryfit_cpu.kernels.integer_weights import REAL_BIAS, REPEATED, UNIT, accepted_weights
from dryfit_cpu.kernels.matrix_products import (
    chunks_and_parts,
    joined,
    order_of,
    panel_table,
    tile_table,
    whole_blocks,
)
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, fp32_bytes, pixels_at, require_extents
from dryfit_cpu.kernels.requantization import GroupRequantization, bound_requantization
from dryfit_cpu.kernels.window_products import gather_work, pixel_axes
from dryfit_cpu.kernels.windows import WindowGeometry

_FLIP = 0x80808080
"""Makes unsigned bytes 128 above their values of signed ones, on machines that multiply those."""
_BLOCK_BYTES = UNIT * current_tier().block_channels
_LARGEST_PRODUCT = 255 * 128
"""Of the values that a machine multiplies."""
_CONVOLVE = NativeFunction("integer_convolution", "convolve")
_CONVOLVE_UNSIGNED = (
    NativeFunction("integer_convolution", "convolve_unsigned") if current_tier().has_short_sums else _CONVOLVE
)


_MARK_JOINED = NativeFunction("integer_convolution", "mark_joined_words") if current_tier().joins_words else None


def integer_workspace_bytes(window: WindowGeometry) -> int:
    """Room for the staged input and the gathered windows."""
    # Inputs that are bytes in spite of the tier's pairs take less.
    size, window = current_tier().staged_bytes, without_steps(window)
    _, C, H, W = window.input
    staged = Staged.of(window, size)
    is_staged = size > 1 or runs_in_place(window, (H * W * C, 1, W * C, C)) is None
    shape = _windows_shape(window, len(staged.runs), staged.run_units * size)
    gathered = fp32_bytes(shape) if window.has_short_rows else 0
    return gathered + (fp32_bytes((staged.words,)) if is_staged else 0)


def _windows_shape(window: WindowGeometry, runs: int, run_words: int) -> tuple[int, int]:
    N, _, H, W = window.output
    return (N * H * W, runs * run_words)


@frozen(eq=False)
class Input:
    """What the register block reads: pixels, and the runs of words that each sums over.

    Attributes:
        address: of the first output pixel's first word.
        strides: bytes from one output image, row and pixel to the next.
        segments: INT64, byte offsets of the runs.
        length: words in each run.
        size: bytes of a value: of the tier's kind; or bytes on a tier of pairs, where none is negative.
        work: what writes it.
        keeps: its memory.
    """

    address: int
    strides: tuple[int, int, int]
    segments: Array
    length: int
    size: int
    work: Sequence[Work]
    keeps: Sequence[object]


@frozen(eq=False)
class ChannelNumbers:
    """What belongs to the output channels of sums; all by groups, `[groups, channels]`.

    Attributes:
        starts: INT32: what sums begin at.
        multipliers: FP32.
        real_bias: FP32; None where there is none.
        fixed: what scales sums in the place of the multipliers; None where these do.
    """

    starts: Array
    multipliers: Array
    real_bias: Array | None = None
    fixed: PackedFixedPoint | None = None

    @classmethod
    def of(cls, binding: Binding, shape: tuple[int, int], part: str = "") -> ChannelNumbers:
        """Those that were packed, of this shape; `part` ends the names of what belongs to one of several parts."""
        return cls(
            binding.weight(f"bias{part}", shape, DataType.INT32),
            binding.weight("multipliers", shape),
            binding.weight(REAL_BIAS, shape) if REAL_BIAS in binding.weights else None,
            PackedFixedPoint.of(binding, shape),
        )

    def arguments(
        self, steps: GroupRequantization, output: ImageOperand, residual: ImageOperand | None, largest_products: int
    ) -> dict[str, Any]:
        """The arguments by which native functions requantize sums.

        Sums of products cannot exceed `largest_products`, without their signs.
        """
        largest_scaled = (largest_products + largest(self.starts)) * largest(self.multipliers) + largest(self.real_bias)
        residual_kind = residual.kind if residual is not None else codes.INT8
        return {
            "scales": channel_scales(self.multipliers, self.fixed, steps.scaling, self.starts, self.real_bias),
            "ending": ending_of(steps, output.kind, residual_kind, largest_scaled),
            "steps": steps.descriptor,
        }


def _multiplies_bytes() -> bool:
    return current_tier().staged_bytes == 1


@frozen(eq=False)
class Repeated:
    """The pieces of k that weights with zero points are summed over twice, as `in_bytes` packed them.

    Attributes:
        units: of a piece.
        pieces: which come again, in order.
    """

    units: int
    pieces: Array

    @classmethod
    def of(cls, binding: Binding, runs: int, run_units: int) -> Repeated | None:
        """Those of a group that sums over so many runs of units; None where its weights are bytes.

        Raises:
            EngineFileError: the packed table is not one of this input.
        """
        table = binding.weights.get(REPEATED)
        if table is None:
            return None
        units, *pieces = binding.weight(REPEATED, (max(1, table.size),), DataType.INT32).tolist()
        count = runs * run_units // max(units, 1)
        if units < 1 or run_units % units or not all(0 <= piece < count for piece in pieces):
            raise EngineFileError(
                "The packed weights do not match the layer's input",
                where=f"engine layer {binding.group.name!r}, weights {REPEATED!r}",
                found=f"pieces of {units} units in runs of {run_units}",
                remedy="Build the engine again",
            )
        return cls(units, np.array(pieces, np.int64))

    def read(self, read: Input) -> Input:
        """What is read, with the pieces once more at the end of k."""
        starts = np.arange(0, read.length // read.size, self.units, dtype=np.int64) * (UNIT * read.size)
        once = (read.segments[:, None] + starts).reshape(-1)
        segments = np.concatenate([once, once[self.pieces]])
        return attrs.evolve(read, segments=segments, length=self.units * read.size)

    def joined(self, panels: Array) -> Array:
        """INT8 panels as INT16 ones in which each piece is there once, with all of its weights."""
        more = len(self.pieces) * self.units
        joined = panels[:, :, : panels.shape[2] - more].astype(np.int16)
        rest = panels[:, :, panels.shape[2] - more :]
        for index, piece in enumerate(self.pieces * self.units):
            joined[:, :, piece : piece + self.units] += rest[:, :, index * self.units : (index + 1) * self.units]
        return joined


@frozen(eq=False)
class Panels:
    """Weights as this machine multiplies them, and what belongs to their channels; all by groups.

    Attributes:
        values: INT8 `[groups, panels, units, 32, 4]`, with units of a run together where the machine multiplies
            matrices; or INT16 `[groups, panels, units, 2, 32, 2]`.
        numbers: of `panels * 32` channels.
    """

    values: Array
    numbers: ChannelNumbers

    @classmethod
    def of(
        cls, binding: Binding, window: WindowGeometry, read: Input, part: str = "", repeated: Repeated | None = None
    ) -> Panels:
        """The packed weights of a group for what is read.

        The input says how many words are summed, without those that are repeated; `part` ends the names of the packed
        weights.
        """
        groups, outputs = window.groups, window.output[1] // window.groups
        count = -(-outputs // PANEL_CHANNELS)
        units = len(read.segments) * read.length // read.size
        channels = (groups, count * PANEL_CHANNELS)
        units += len(repeated.pieces) * repeated.units if repeated is not None else 0
        panels = binding.weight(f"panels{part}", (groups, count, units, PANEL_CHANNELS, UNIT), DataType.INT8)
        numbers = ChannelNumbers.of(binding, channels, part)
        sums = binding.weight(f"weight_sums{part}", channels, DataType.INT32)
        if read.size == 1:
            numbers = attrs.evolve(numbers, starts=numbers.starts - current_tier().byte_shift * sums)
            is_matrix = current_tier().products is IntegerProducts.BYTE_MATRICES
            return cls(matrix_rows(panels, read.length) if is_matrix else panels, numbers)
        # Machines without byte products multiply pairs of 16 bits: weights are widened once, when an engine is loaded,
        # as widening in the loop would take as many instructions as the products.
        panels = panels if repeated is None else repeated.joined(panels)
        pairs = panels.reshape(groups, count, -1, PANEL_CHANNELS, 2, 2).swapaxes(3, 4)
        return cls(np.ascontiguousarray(pairs, dtype=np.int16), numbers)


_TOGETHER, _LANES = 4, 4
"""Units that a turn of the loop over matrices goes through, and channels of a vector."""


def matrix_rows(panels: Array, length: int) -> Array:
    """Panels INT8 `[groups, panels, units, 32, 4]` as a machine that multiplies matrices of bytes reads them.

    Of each run of so many units, whole fours are rearranged: two units of two channels fill 16 bytes. Two rows of 32
    words then hold two units, the first one of the first four of each eight channels. What is left of a run stays.
    """
    groups, count, units, channels, size = panels.shape
    result = panels.reshape(-1, length, channels, size).copy()
    whole = result[:, : length // _TOGETHER * _TOGETHER]
    eights = channels // (2 * _LANES)
    # [.., pair of units, unit, eight channels, half, channel, 4] -> [.., half, eight channels, channel, unit, 4]
    split = whole.reshape(len(result), -1, 2, eights, 2, _LANES, size)
    whole[:] = split.transpose(0, 1, 4, 3, 5, 2, 6).reshape(whole.shape)
    return result.reshape(groups, count, units, channels, size)


def bind_integer_layer(binding: Binding, window: WindowGeometry) -> NativeStep:
    """A step for a layer with a window, from what its group dequantizes to what it gives: images, or each volume."""
    source, steps = accepted_weights(binding.group).source, bound_requantization(binding)
    batches = Images.of(binding, source.tensor.name, steps.residual).batches()
    made = [bind_integer_window(binding, window, images, steps) for images in batches]
    return NativeStep.joined(binding.group.name, made)


def bind_integer_window(
    binding: Binding, window: WindowGeometry, images: Images, steps: GroupRequantization, part: str = ""
) -> NativeStep:
    """A step that convolves an INT8 image, staged where it has to be.

    `part` ends the names of the packed weights.
    """
    source, size = accepted_weights(binding.group).source, current_tier().staged_bytes
    if current_tier().has_short_sums and REPEATED not in binding.weights and has_no_negative_codes(source):
        size = 1
    read = read_input(binding, window, ImageOperand.of(images.source), source.zero_point, size)
    repeated = Repeated.of(binding, len(read.segments), read.length // size)
    window = without_steps(window)
    if repeated is not None and _multiplies_bytes():
        read, repeated = repeated.read(read), None
    weights = Panels.of(binding, window, read, part, repeated)
    return bind_integer_product(binding, window, read, images, steps, weights)


def bind_integer_product(
    binding: Binding, window: WindowGeometry, read: Input, images: Images, steps: GroupRequantization, weights: Panels
) -> NativeStep:
    """A step that sums what register blocks read."""
    threads, steps = binding.num_threads, without_needless_rounding(steps)
    require_extents(images.output.shape, window.output, "output of a window")
    dense = DenseOperands.between(images.output, images.residual, threads)
    output, residual = dense.output, dense.residual
    panels, numbers = weights.values, weights.numbers
    axes = joined(pixel_axes(window, read.strides, output, residual))
    tiles = tile_table(axes)[0]
    depth = len(read.segments) * read.length
    residual_size = residual.size if residual is not None else 1
    group_inputs, group_outputs = window.input[1] // window.groups, window.output[1] // window.groups
    offsets = [
        (
            group * panels.strides[0],
            group * numbers.starts.strides[0],
            group * group_inputs * read.size,
            group * group_outputs * output.size,
            group * group_outputs * residual_size,
        )
        for group in range(window.groups)
    ]
    table = panel_table(offsets, whole_blocks(group_outputs), depth, output.size, residual_size)
    order = order_of(binding.tactic, tiles, table, depth)
    convolve, product_argument, marks = _CONVOLVE, _FLIP, None
    if read.size != current_tier().staged_bytes:
        convolve, marks = _CONVOLVE_UNSIGNED, joined_words(panels)
        product_argument = marks.ctypes.data - panels.ctypes.data // _BLOCK_BYTES if marks is not None else 0
    outer, inner = (tiles, table) if order == codes.TILES_OUTSIDE else (table, tiles)
    chunks, inner_parts = chunks_and_parts(len(outer), len(inner), threads)
    main = convolve.work(
        chunks,
        input=Pixels(read.address, axes[2].input),
        weights=panels.ctypes.data,
        output=pixels_at(output)._replace(stride=axes[2].output),
        residual=pixels_at(residual, codes.INT8)._replace(stride=axes[2].residual),
        segments=Runs(read.segments.ctypes.data, len(read.segments), read.length),
        tiles=WordTable(tiles.ctypes.data, len(tiles)),
        panels=WordTable(table.ctypes.data, len(table)),
        order=order,
        inner_parts=inner_parts,
        product_argument=product_argument,
        **numbers.arguments(steps, output, residual, depth * UNIT * _LARGEST_PRODUCT),
    )
    keeps = [binding, images, read, output, residual, weights, tiles, table, marks]
    return NativeStep(binding.group.name, [*read.work, *dense.before, main, *dense.after], keeps)


def joined_words(panels: Array) -> Array | None:
    """For each piece of INT8 panels as wide as a block, whether the words of a turn that begins there may be joined.

    UINT8, 1 where they may. None on tiers that join no words.
    """
    if _MARK_JOINED is None:
        return None
    marks = np.zeros(panels.nbytes // _BLOCK_BYTES, np.uint8)
    # The last row begins no turn of two.
    pieces = len(marks) - PANEL_CHANNELS // current_tier().block_channels
    work = _MARK_JOINED.work(1, weights=panels.ctypes.data, pieces=pieces, marks=marks.ctypes.data)
    # Now, and not in each run: the weights stay.
    NativeStep("joined words", [work]).run()
    return marks


def read_input(
    binding: Binding, window: WindowGeometry, source: ImageOperand, fill: int, size: int = current_tier().staged_bytes
) -> Input:
    """The input where it lies or staged, and where rows are too short for tiles, its windows gathered.

    What is read are values of so many bytes.
    """
    workspace, threads = Workspace(binding), binding.num_threads
    require_extents(source.shape, window.input, "input of a window")
    window, source = without_steps(window), with_pixels_of(window, source)
    work, keeps = list[Work](), list[object]([source])
    in_place = runs_in_place(window, source.strides) if size == 1 else None
    if in_place is not None:
        (runs, units), address = in_place, source.address
        image_stride, _, row, pixel = source.strides
    else:
        staged = Staged.of(window, size)
        image = workspace.take((staged.words,))
        work.append(stage_integers_work(window, staged, source, image, threads, fill))
        keeps.append(image)
        runs, units, address = staged.runs, staged.run_units, image.ctypes.data
        image_stride, row, pixel = staged.strides
    strides = window.steps((image_stride, row, pixel))
    segments, length = np.array(runs, np.int64), units * size
    if not window.has_short_rows:
        return Input(address, strides, segments, length, size, work, keeps)
    windows = workspace.take(_windows_shape(window, len(runs), length))
    work.append(gather_work(window, address, strides, segments, length, windows, threads))
    _, _, H, W = window.output
    pixel = windows.strides[0]
    strides, begin = (H * W * pixel, W * pixel, pixel), np.zeros(1, np.int64)
    return Input(windows.ctypes.data, strides, begin, windows.shape[1], size, work, [*keeps, segments, windows])

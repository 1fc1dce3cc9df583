"""Convolution and matrix products of INT8 values, with exact sums, over tiles of pixels and panels of channels.

And a matrix as the register block multiplies by it, for products of two tensors: it is packed in each run.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import LEAVES_SUMS, PANEL_CHANNELS, PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.byte_tables import load_code
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, copy_rows, value_stager
from dryfit_cpu.compiler.integer_micro_kernel import BLOCK_ROW_BYTES, held_arguments, integer_micro_kernel
from dryfit_cpu.compiler.memory import load_int, stack_memory, store_int32
from dryfit_cpu.compiler.register_block import PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import IntegerProducts, current_tier
from dryfit_cpu.compiler.word_products import IntegerProduct, tier_product, unsigned_product
from dryfit_cpu.descriptors import ChannelScales, Chunk, Pixels, RequantizationSteps, Runs, WordTable
from dryfit_cpu.native.indices import share
from dryfit_cpu.native.requantization import channels_from, finish_rows, numbers_of

_TILE_BYTES = 8 * TILE_WORDS
_PANEL_BYTES = 8 * PANEL_WORDS

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS = current_tier().block_channels


def _block_of(product: IntegerProduct) -> Any:
    """What computes one block by the micro-kernel of its size: (pixels, its arguments)."""
    # Three sizes of block, not one for each number of pixels: a tile that is left over overlaps the one before, which
    # costs products that are thrown away but no code. 14 pixels are 7 + 7, so two rows of 7 x 7 images are one whole
    # tile.
    whole, half, one = (
        integer_micro_kernel(_ROWS, 2, product),
        *(integer_micro_kernel(n, 1, product) for n in (_HALF, 1)),
    )

    @inlined
    def compute(pixels: int, arguments: Any) -> None:
        if pixels == _ROWS:
            whole(*arguments)
        elif pixels == _HALF:
            half(*arguments)
        else:
            one(*arguments)

    return compute


def _convolver(product: IntegerProduct) -> Any:
    """The native function that convolves by blocks of a kind of product."""
    compute_block = _block_of(product)

    def convolve(
        chunk: Chunk,
        input: Pixels,
        weights: int,
        scales: ChannelScales,
        output: Pixels,
        residual: Pixels,
        segments: Runs,
        tiles: WordTable,
        panels: WordTable,
        order: int,
        flip: int,
        ending: int,
        steps: RequantizationSteps,
    ) -> None:
        """Exact sums over k of input and weights, requantized, for tiles x panels.

        Tile and panel tables are those of `native/convolution.py`; what belongs to the channels has a word a channel,
        as the bias has there. What happens to a sum stands in `kernels/requantization.py`, step by step, under the same
        names.
        """
        scratch = stack_memory()
        # A block that its channels do not fill reads and writes pieces of stack, which have room for all of them:
        # weights of channels that there are not are zeros in the panel, but their results would be written over
        # somebody's bytes.
        output_piece, residual_piece = scratch, scratch + _ROWS * _CHANNELS
        words = segments.runs * segments.length
        # What is the same for all blocks is written to memory once, and a block gets its address: handing over some
        # thirty arguments for each block took longer than the products of the shortest blocks.
        read = (
            input.address, weights, scales.starts, scales.multipliers, scales.real_bias, input.stride, segments.address,
            segments.runs, segments.length, flip, ending, scratch,
        )  # fmt: skip
        for_blocks = held_arguments(*read, output.stride, residual.stride, *numbers_of(steps))
        for_pieces = held_arguments(*read, _CHANNELS, _CHANNELS, *numbers_of(steps))
        # The larger operand is gone through once, outside; the smaller one is read again for each of its pieces, and
        # stays in the second-level cache meanwhile. `goes_by_tiles` says from which size of the weights on it is
        # theirs.
        outer, inner, tile_step, panel_step = panels.rows, tiles.rows, _TILE_BYTES, 0
        if order == TILES_OUTSIDE:
            outer, inner, tile_step, panel_step = tiles.rows, panels.rows, 0, _PANEL_BYTES
        for i in range(*share(chunk, outer)):
            # What the next turn begins with is asked for, in pieces, while the blocks of this one are computed: the
            # processor foresees what lies behind a run, not the next panel or tile. On images of 7 x 7, whose weights
            # come from memory, that took 20 to 29 % off the time.
            if order == TILES_OUTSIDE:
                tile, panel = tiles.address + i * _TILE_BYTES, panels.address
                ahead = input.address + load_int(tiles.address + min(i + 1, tiles.rows - 1) * _TILE_BYTES)
            else:
                tile, panel = tiles.address, panels.address + i * _PANEL_BYTES
                ahead = weights + load_int(panel) + words * PANEL_ROW_BYTES
            for _ in range(inner):
                pixels, channels = load_int(tile + 48), min(load_int(panel + 40), _CHANNELS)
                panel_output = output.address + load_int(panel + 24)
                output0, output1 = panel_output + load_int(tile + 16), panel_output + load_int(tile + 24)
                residual0, residual1 = 0, 0
                if residual.address != 0:
                    panel_residual = residual.address + load_int(panel + 32)
                    residual0, residual1 = panel_residual + load_int(tile + 32), panel_residual + load_int(tile + 40)
                if channels == _CHANNELS or ending == LEAVES_SUMS:
                    compute_block(pixels, (for_blocks, tile, panel, ahead, output0, output1, residual0, residual1))
                else:
                    out1, res0, res1 = output_piece + _HALF * _CHANNELS, 0, 0
                    if residual.address != 0:
                        res0, res1 = residual_piece, residual_piece + _HALF * _CHANNELS
                        copy_rows(res0, _CHANNELS, residual0, residual.stride, min(pixels, _HALF), channels)
                        copy_rows(res1, _CHANNELS, residual1, residual.stride, pixels - _HALF, channels)
                    compute_block(pixels, (for_pieces, tile, panel, ahead, output_piece, out1, res0, res1))
                    copy_rows(output0, output.stride, output_piece, _CHANNELS, min(pixels, _HALF), channels)
                    copy_rows(output1, output.stride, out1, _CHANNELS, pixels - _HALF, channels)
                if ending == LEAVES_SUMS:
                    here = channels_from(scales, load_int(panel + 8) // 4)
                    for run in range(2):
                        places = min(_HALF, pixels - run * _HALF)
                        to, at = (output1, residual1) if run else (output0, residual0)
                        finish_rows(
                            scratch + run * _HALF * BLOCK_ROW_BYTES, Pixels(to, output.stride, output.kind),
                            Pixels(at, residual.stride, residual.kind), places, channels, here, steps,
                        )  # fmt: skip
                tile, panel, ahead = tile + tile_step, panel + panel_step, ahead + words * 32

    return native(convolve)


convolve = _convolver(tier_product)
if current_tier().has_short_sums:
    convolve_unsigned = _convolver(unsigned_product)


_UNIT = 4
_BYTE_SHIFT = current_tier().byte_shift
_, _fill = value_stager(STAGED_BYTES)
_IS_MATRIX = current_tier().products is IntegerProducts.BYTE_MATRICES


@native
def pack(
    chunk: Chunk,
    source: int,
    row_stride: int,
    column_stride: int,
    rows: int,
    columns: int,
    panels: int,
    starts: int,
    zero_point: int,
) -> None:
    """Pack `[rows, columns]` to panels of bytes or shorts, as `Panels` of `kernels/integer_products.py` has them.

    What sums of a column begin at takes back the zero point of what is multiplied, and where that is read as unsigned
    bytes the 128 that these are above their values. Beyond the columns and rows there are zeros.
    """
    units = (rows + _UNIT - 1) // _UNIT
    count = (columns + PANEL_CHANNELS - 1) // PANEL_CHANNELS
    above = zero_point + _BYTE_SHIFT
    for panel in range(*share(chunk, count)):
        to = panels + panel * units * PANEL_CHANNELS * _UNIT * STAGED_BYTES
        # Zeros first, values then: rows and columns that the matrix lacks need no case, and a panel is in the
        # first-level cache meanwhile. It is packed in each run, since both operands are computed.
        _fill(to, units * PANEL_CHANNELS * _UNIT, 0)
        for channel in range(PANEL_CHANNELS):
            column = panel * PANEL_CHANNELS + channel
            total = 0
            if column < columns:
                for row in range(rows):
                    code = load_code(source + row * row_stride + column * column_stride)
                    total += code
                    unit, place = row // _UNIT, row % _UNIT
                    at = (unit * PANEL_CHANNELS + channel) * _UNIT + place
                    if _IS_MATRIX and unit < units // 4 * 4:
                        # The places of `matrix_rows`.
                        at = (unit // 2 * 2 + channel // 4 % 2) * PANEL_CHANNELS + channel // 8 * 8
                        at = (at + channel % 4 * 2 + unit % 2) * _UNIT + place
                    if STAGED_BYTES == 2:
                        at = ((unit * 2 + place // 2) * PANEL_CHANNELS + channel) * 2 + place % 2
                    _fill(to + at * STAGED_BYTES, 1, code)
            store_int32(starts + 4 * column, -above * total)

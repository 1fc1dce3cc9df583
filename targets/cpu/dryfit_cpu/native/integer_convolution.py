"""Convolution and matrix products of INT8 values, with exact sums, over tiles of pixels and panels of channels.

And a matrix as the register block multiplies by it, for products of two tensors: it is packed in each run.
"""

from __future__ import annotations

from typing import Any

from dryfit_cpu.codes import LEAVES_SUMS, PANEL_CHANNELS, PANEL_WORDS, TILE_WORDS, TILES_OUTSIDE
from dryfit_cpu.compiler.byte_tables import load_code
from dryfit_cpu.compiler.compilation import inlined, native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, copy_rows, value_stager
from dryfit_cpu.compiler.integer_micro_kernel import held_arguments, integer_micro_kernel
from dryfit_cpu.compiler.memory import clear_bytes, copy_bytes, load_int, stack_memory, store_int32
from dryfit_cpu.compiler.register_block import BLOCK_ROW_BYTES, PANEL_ROW_BYTES
from dryfit_cpu.compiler.tier import IntegerProducts, current_tier
from dryfit_cpu.compiler.word_products import IntegerProduct, mark_joined, tier_product, unsigned_product
from dryfit_cpu.descriptors import ChannelScales, Chunk, Pixels, RequantizationSteps, Runs, WordTable
from dryfit_cpu.native.indices import alike, parted, share
from dryfit_cpu.native.requantization import channels_from, finish_rows, numbers_of

_TILE_BYTES = 8 * TILE_WORDS
_PANEL_BYTES = 8 * PANEL_WORDS

_TOGETHER_BYTES = 16 * 1024
"""Of inputs and outputs of tiles that go by together: half of the smallest first-level cache."""

_ROWS = current_tier().rows
_HALF = _ROWS // 2
_CHANNELS = current_tier().block_channels


def _block_of(product: IntegerProduct) -> Any:
    """What computes blocks of a size by its micro-kernel: (pixels of a block, blocks, tile, ahead, other arguments)."""
    # Three sizes of block, not one for each number of pixels: a tile that is left over overlaps the one before, which
    # costs products that are thrown away but no code. 14 pixels are 7 + 7, so two rows of 7 x 7 images are one whole
    # tile.
    whole, half, one = (integer_micro_kernel(*size, product) for size in ((_ROWS, 2), (_HALF, 1), (1, 1)))

    @inlined
    def compute(pixels: int, count: int, tile: int, ahead: int, arguments: Any) -> None:
        if pixels == _ROWS:
            whole(count, tile, ahead, *arguments)
        elif pixels == _HALF:
            half(count, tile, ahead, *arguments)
        else:
            one(count, tile, ahead, *arguments)

    return compute


@inlined
def _turns(
    order: int, chunk: Chunk, inner_parts: int, tiles: int, panels: int, tile_bytes: int
) -> tuple[int, int, int, int, int]:
    """A chunk's turns of the outer loop, from one to the one behind the last, and in each: tiles, panels, the first.

    The first is the tile or panel where the inner loop begins. A tile reads and writes so many bytes.
    """
    part, outer_parts, first, last = parted(chunk, inner_parts, panels if order == TILES_OUTSIDE else tiles)
    outer, span, across = panels, last - first, 1
    # The larger operand is gone through once, outside; the smaller one is read again for each of its pieces, and stays
    # in the second-level cache meanwhile. `goes_by_tiles` says from which size of the weights on it is theirs. Then
    # some tiles go by together, which stay in the first-level cache.
    if order == TILES_OUTSIDE:
        span = max(1, min(_TOGETHER_BYTES // tile_bytes, tiles // outer_parts))
        outer, across = (tiles + span - 1) // span, last - first
    return outer * part // outer_parts, outer * (part + 1) // outer_parts, span, across, first


@inlined
def _runs(base: int, offsets: int) -> tuple[int, int]:
    """Where the two runs of a block begin, from the address of their offsets in the row of a tile."""
    return base + load_int(offsets), base + load_int(offsets + 8)


@inlined
def _copy_runs(to: Any, to_stride: int, source: Any, source_stride: int, pixels: int, channels: int) -> None:
    """Copy the channels of a block's pixels, from the places of its two runs to others."""
    copy_rows(to[0], to_stride, source[0], source_stride, min(pixels, _HALF), channels)
    copy_rows(to[1], to_stride, source[1], source_stride, pixels - _HALF, channels)


def _convolver(product: IntegerProduct) -> Any:
    """The native function that convolves by blocks of a kind of product."""
    compute_blocks = _block_of(product)

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
        inner_parts: int,
        product_argument: int,
        ending: int,
        steps: RequantizationSteps,
    ) -> None:
        """Exact sums over k of input and weights, requantized, for tiles x panels.

        Tile and panel tables, chunks and inner parts are those of `native/convolution.py`; what belongs to the channels
        has a word a channel, as the bias has there. What happens to a sum stands in `kernels/requantization.py`, step
        by step, under the same names.
        """
        scratch = stack_memory()
        # A block that its channels do not fill reads and writes pieces of stack, which have room for all of them:
        # weights of channels that there are not are zeros in the panel, but their results would be written over
        # somebody's bytes. It has rows of the tables of its own, which say where the pieces begin.
        output_piece, residual_piece = scratch, scratch + _ROWS * _CHANNELS
        piece_tile = residual_piece + _ROWS * _CHANNELS
        piece_panel = piece_tile + _TILE_BYTES
        clear_bytes(piece_tile, _TILE_BYTES + _PANEL_BYTES)
        for side in (24, 40):
            store_int32(piece_tile + side, _HALF * _CHANNELS)
        words = segments.runs * segments.length
        tile_bytes = _ROWS * (4 * words + output.stride)
        start, stop, span, across, first = _turns(order, chunk, inner_parts, tiles.rows, panels.rows, tile_bytes)
        # What is the same for all blocks is written to memory once, and a block gets its address: handing over some
        # thirty arguments for each block took longer than the products of the shortest blocks.
        read = (
            input.address, weights, scales.starts, scales.multipliers, scales.real_bias, input.stride, segments.address,
            segments.runs, segments.length, product_argument, ending, scratch, words * 32,
        )  # fmt: skip
        for_blocks = held_arguments(*read, output.stride, residual.stride, *numbers_of(steps))
        for_pieces = held_arguments(*read, _CHANNELS, _CHANNELS, *numbers_of(steps))
        for i in range(start, stop):
            # What the next turn begins with is asked for, in pieces, while the blocks of this one are computed: the
            # processor foresees what lies behind a run, not the next panel or tile. On images of 7 x 7, whose weights
            # come from memory, that took 20 to 29 % off the time.
            first_tile, first_panel = (i * span, first) if order == TILES_OUTSIDE else (first, i)
            if order == TILES_OUTSIDE:
                behind = min(first_tile + span, tiles.rows - 1)
                next_ahead = input.address + load_int(tiles.address + behind * _TILE_BYTES)
            else:
                next_ahead = weights + load_int(panels.address + i * _PANEL_BYTES) + words * PANEL_ROW_BYTES
            for row in range(first_panel, first_panel + across):
                panel = panels.address + row * _PANEL_BYTES
                channels = min(load_int(panel + 40), _CHANNELS)
                tile, ahead, left = (
                    tiles.address + first_tile * _TILE_BYTES,
                    next_ahead,
                    min(span, tiles.rows - first_tile),
                )
                while left > 0:
                    pixels, count = load_int(tile + 48), 1
                    outputs = _runs(output.address + load_int(panel + 24), tile + 16)
                    residuals = _runs(residual.address + load_int(panel + 32), tile + 32)
                    at, arguments = tile, (for_blocks, panel, output.address, residual.address)
                    if ending != LEAVES_SUMS and channels == _CHANNELS:
                        count = alike(tile + 48, _TILE_BYTES, left)
                    elif ending != LEAVES_SUMS:
                        added = 0
                        if residual.address != 0:
                            added = residual_piece
                            _copy_runs(
                                _runs(added, piece_tile + 32), _CHANNELS, residuals, residual.stride, pixels, channels
                            )
                        copy_bytes(piece_tile, tile, 16)
                        copy_bytes(piece_panel, panel, 24)
                        at, arguments = piece_tile, (for_pieces, piece_panel, output_piece, added)
                    compute_blocks(pixels, count, at, ahead, arguments)
                    if ending == LEAVES_SUMS:
                        here = channels_from(scales, load_int(panel + 8) // 4)
                        for run in range(2):
                            finish_rows(
                                scratch + run * _HALF * BLOCK_ROW_BYTES,
                                Pixels(outputs[run], output.stride, output.kind),
                                Pixels(residuals[run], residual.stride, residual.kind),
                                min(_HALF, pixels - run * _HALF), channels, here, steps,
                            )  # fmt: skip
                    elif channels < _CHANNELS:
                        _copy_runs(
                            outputs, output.stride, _runs(output_piece, piece_tile + 16), _CHANNELS, pixels, channels
                        )
                    tile, ahead, left = tile + count * _TILE_BYTES, ahead + count * words * 32, left - count

    return native(convolve)


convolve = _convolver(tier_product)
if current_tier().has_short_sums:
    convolve_unsigned = _convolver(unsigned_product)


if current_tier().joins_words:

    @native
    def mark_joined_words(chunk: Chunk, weights: int, pieces: int, marks: int) -> None:
        """Write for each piece of panels as wide as a block whether the words of a turn from there on may be joined."""
        for piece in range(*share(chunk, pieces)):
            mark_joined(weights + piece * BLOCK_ROW_BYTES, marks + piece)


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

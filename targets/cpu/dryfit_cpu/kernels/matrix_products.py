"""Convolution and matrix products as tables: which pixels make a tile, which channels a panel, in which order."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array
from dryfit_cpu import codes
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.descriptors import Pixels, Runs, WordTable
from dryfit_cpu.kernels.epilogues import Epilogue
from dryfit_cpu.tactics import PANELS_BY_BLOCKS, TILES, cut_runs, family, goes_by_tiles

_CONVOLVE = NativeFunction("convolution", "convolve")
_CHUNKS_A_THREAD = 8
_LEAST_TURNS = 4
"""Of the inner loop in a part of it: fewer would read a panel's weights for little work."""
_NOTHING, _NO_EPILOGUE = Pixels(0, 0, codes.FP32), Epilogue()


@frozen
class Axis:
    """One axis of the pixels: its extent, and the bytes from one to the next in input, output and residual."""

    extent: int
    input: int
    output: int
    residual: int = 0

    def continues(self, inner: Axis) -> bool:
        """Whether stepping along this axis is going on along the inner one."""
        return (self.input, self.output, self.residual) == (
            inner.input * inner.extent,
            inner.output * inner.extent,
            inner.residual * inner.extent,
        )


def pack_panels(weights: Array, bias: Array, groups: int) -> dict[str, Array]:
    """Weights `[K, k]` as FP32 panels `[groups, panels, k, 32]`, and the bias `[groups, panels * 32]`, zero filled."""
    K, depth = weights.shape
    per_group = K // groups
    panels = -(-per_group // PANEL_CHANNELS)
    # 32 channels a panel on every machine, so that an engine is the same bytes wherever it is built; a machine with
    # narrower blocks takes parts of a panel's rows. k is next, so that a block reads its weights from first to last in
    # one stream, which the processor foresees.
    padded = np.zeros((groups, panels * PANEL_CHANNELS, depth), np.float32)
    padded[:, :per_group] = weights.reshape(groups, per_group, depth)
    packed = padded.reshape(groups, panels, PANEL_CHANNELS, depth).swapaxes(2, 3)
    padded_bias = np.zeros((groups, panels * PANEL_CHANNELS), np.float32)
    padded_bias[:, :per_group] = bias.reshape(groups, per_group)
    return {"panels": np.ascontiguousarray(packed), "bias": padded_bias}


def joined(axes: Sequence[Axis]) -> list[Axis]:
    """The same pixels in three axes, the inner ones as long as they can be."""
    long = [axis for axis in axes if axis.extent != 1] or [axes[-1]]
    result = [long[-1]]
    for axis in reversed(long[:-1]):
        if axis.continues(result[0]):
            result[0] = attrs.evolve(result[0], extent=result[0].extent * axis.extent)
        else:
            result.insert(0, axis)
    return [Axis(1, 0, 0, 0)] * (3 - len(result)) + result


def is_narrow(columns: int) -> bool:
    """Whether rows of so many pixels that cannot be joined are too short for a tile."""
    return columns < current_tier().rows // 2


def computed_pixels(columns: int) -> int:
    """How many pixels the tiles of a row compute for so many that there are, those that two tiles have included."""
    rows = current_tier().rows
    whole, rest = divmod(columns, rows)
    return columns if is_narrow(columns) else whole * rows + (-(-rest // (rows // 2))) * (rows // 2)


_SMALL_TILE = 0.3
"""Pixels that a smaller tile costs more than it has: it loads as many weights for fewer products. Our estimate."""


def _cuts(columns: int) -> list[tuple[int, int]]:
    """(first pixel, pixels) of whole, smaller and half tiles that cover a row in the least time; the last may overlap.

    With tiles of 14 pixels, 128 pixels are 8 of them and 2 of 8, not 9 of them and a half one.
    """
    rows, fewer, half = current_tier().rows, current_tier().fewer_rows, current_tier().rows // 2
    ways = []
    for smaller in range(rows // 2):
        for halves in (0, 1):
            whole = max(0, -(-(columns - fewer * smaller - half * halves) // rows))
            sizes = [rows] * whole + [fewer] * smaller + [half] * halves
            ways.append((sum(sizes) + _SMALL_TILE * (smaller + halves), sizes))
    cuts, start = [], 0
    for size in min(ways)[1]:
        cuts.append((max(0, min(start, columns - size)), size))
        start += size
    return cuts


def tile_table(axes: Sequence[Axis], *, may_be_smaller: bool = False) -> tuple[Array, bool]:
    """Byte offsets of the tiles that cover the pixels of three axes, and whether some pixels are in two of them.

    A row of pixels is cut into whole tiles. What is left is a tile that overlaps the last one, or a half tile, which
    is joined with that of the next row. Rows shorter than half a tile are taken pixel by pixel. Where tiles may also be
    smaller ones, of two runs, a single row is cut into those that compute the fewest pixels twice.
    """
    rows = current_tier().rows
    half = rows // 2
    H, W = axes[1].extent, axes[2].extent
    if is_narrow(W):
        return _pixel_table(axes), False
    if may_be_smaller and H == 1 and rows <= W:
        cuts = _cuts(W)
        places = [(0, first, 0, first + (0 if size == half else size // 2), size) for first, size in cuts]
        return _offsets(places, axes), sum(size for _, size in cuts) > W
    whole, rest = divmod(W, rows)
    starts = [(rows * tile, rows * tile + half) for tile in range(whole)]
    if rest > half:
        starts.append((max(W - rows, 0), W - half))
    tiles = [(h, first, h, second, rows) for h in range(H) for first, second in starts]
    # Half tiles of two rows make a whole one: on images of 7 x 7 with a tile of 14 pixels half of the work would be
    # thrown away otherwise.
    if 0 < rest <= half:
        tiles += [(h, W - half, h + 1, W - half, rows) for h in range(0, H - 1, 2)]
        tiles += [(H - 1, W - half, H - 1, W - half, half)] * (H % 2)
    return _offsets(tiles, axes), rest not in (0, half)


_ONE_PIXEL = 4
"""Pixels of a whole tile that take as long as a tile of one: its two sums wait four cycles for each product."""


def _pieces(columns: int) -> tuple[int, int, int]:
    """Whole tiles, half tiles and single pixels that a row of so many is cut into, none of them twice."""
    whole, rest = divmod(columns, current_tier().rows)
    return whole, *divmod(rest, current_tier().rows // 2)


def exact_tile_table(axes: Sequence[Axis]) -> tuple[Array, Sequence[Axis]]:
    """The tiles that cover the pixels of three axes, each of them once, and the axes along which they go."""
    rows, half = current_tier().rows, current_tier().rows // 2

    def cost(axes: Sequence[Axis]) -> int:
        whole, halves, ones = _pieces(axes[2].extent)
        return axes[0].extent * axes[1].extent * (whole * rows + halves * half + ones * _ONE_PIXEL)

    images, lines, columns = axes
    axes = min((joined(axes), joined([images, columns, lines])), key=cost)
    H, W = axes[1].extent, axes[2].extent
    whole, halves, ones = _pieces(W)
    tiles = [(h, rows * tile, h, rows * tile + half, rows) for h in range(H) for tile in range(whole)]
    if halves:
        tiles += [(h, rows * whole, h + 1, rows * whole, rows) for h in range(0, H - 1, 2)]
        tiles += [(H - 1, rows * whole, H - 1, rows * whole, half)] * (H % 2)
    tiles += [(h, w, h, w, 1) for h in range(H) for w in range(W - ones, W)]
    return _offsets(tiles, axes), axes


def _pixel_table(axes: Sequence[Axis]) -> Array:
    pixels = [(h, w, h, w, 1) for h in range(axes[1].extent) for w in range(axes[2].extent)]
    return _offsets(pixels, axes)


def _offsets(places: Sequence[tuple[int, int, int, int, int]], axes: Sequence[Axis]) -> Array:
    """(row, column, row, column, pixels) of one outer index as byte offsets for all of them."""
    outer, middle, inner = axes
    tiles = np.array(places, np.int64).reshape(-1, 5)
    table = np.empty((outer.extent, len(tiles), codes.TILE_WORDS), np.int64)
    for word, name in enumerate(("input", "output", "residual")):
        steps = np.arange(outer.extent)[:, None] * getattr(outer, name)
        for side in (0, 1):
            rows, columns = tiles[:, 2 * side], tiles[:, 2 * side + 1]
            table[:, :, 2 * word + side] = steps + rows * getattr(middle, name) + columns * getattr(inner, name)
    table[:, :, 6] = tiles[:, 4]
    return table.reshape(-1, codes.TILE_WORDS)


def whole_blocks(channels: int) -> Iterator[tuple[int, int]]:
    """(first channel, channels) of register blocks, of which the last may be filled in part."""
    block = current_tier().block_channels
    for start in range(0, channels, block):
        yield start, min(block, channels - start)


def blocks_and_vectors(channels: int) -> Iterator[tuple[int, int]]:
    """(first channel, channels) of the blocks: whole ones, then vectors, of which the last may be filled in part."""
    block, vector = current_tier().block_channels, current_tier().lanes
    start = 0
    while start < channels:
        left = channels - start
        width = block if left >= block else min(vector, left)
        yield start, width
        start += width


def _in_wide_blocks(blocks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same channels in blocks of one pixel, as far as these are full."""
    width = current_tier().wide_channels
    first_left = sum(channels for _, channels in blocks) // width * width
    yield from ((start, width) for start in range(0, first_left, width))
    yield from (block for block in blocks if block[0] >= first_left)


def panel_table(
    group_offsets: Sequence[tuple[int, int, int, int, int]],
    blocks: Iterable[tuple[int, int]],
    depth: int,
    output_size: int,
    residual_size: int,
) -> Array:
    """Byte offsets of the panels, cut to blocks of this machine.

    Group offsets say of independent products where each begins, in bytes, in weights, bias, input, output and residual.
    Blocks are (first channel, channels); each output sums over `depth` words.
    """
    cut, rows = list(blocks), []
    for weights, bias, source, output, residual in group_offsets:
        for channel, width in cut:
            panel, column = divmod(channel, PANEL_CHANNELS)
            rows.append((
                weights + 4 * (panel * PANEL_CHANNELS * depth + column),
                bias + 4 * channel,
                source,
                output + channel * output_size,
                residual + channel * residual_size,
                width,
            ))  # fmt: skip
    return np.array(rows, np.int64)


def order_of(tactic: str, tiles: Array, panels: Array, depth: int) -> int:
    """The outer loop of a product over these tables: as a tactic says, else by their sizes."""
    weight_bytes = 4 * depth * len(panels) * current_tier().block_channels
    by_tiles = tactic == TILES if tactic else goes_by_tiles(len(tiles), depth, weight_bytes)
    return codes.TILES_OUTSIDE if by_tiles else codes.PANELS_OUTSIDE


@frozen(eq=False)
class MatrixProduct:
    """A matrix product in all its strides.

    Attributes:
        axes: the pixels, from outermost to innermost.
        input, output, residual: the first pixel; its address.
        segment_length: values in each of the segments.
        weights: address of the packed panels; bias: address of the packed bias.
        group_outputs: output channels of a group.
        segments: byte offsets of the runs of values that a pixel sums over.
        group_offsets: independent products: where each begins, in bytes, in weights, bias, input, output and residual.
        epilogue: what follows the sums.
        tactic: one of `product_tactics`; empty for what is best by its sizes.
        panel_depth: words of k in a panel, where that is more than what is summed; else 0.
        continues: whether sums begin at what the output holds, FP32, and not at a bias. Channels fill whole vectors
            then, and no epilogue follows.
    """

    axes: Sequence[Axis]
    input: int
    output: Pixels
    segment_length: int
    weights: int
    bias: int
    group_outputs: int
    residual: Pixels = _NOTHING
    segments: Sequence[int] = (0,)
    group_offsets: Sequence[tuple[int, int, int, int, int]] = ((0, 0, 0, 0, 0),)
    epilogue: Epilogue = _NO_EPILOGUE
    tactic: str = ""
    panel_depth: int = 0
    continues: bool = False

    def work(self, threads: int) -> tuple[Work, list[Any]]:
        """The work, and the tables that have to be kept for it."""
        axes: Sequence[Axis]
        overlaps = False
        if self.continues:
            tiles, axes = exact_tile_table(self.axes)
        else:
            axes = joined(self.axes)
            tiles, overlaps = tile_table(axes, may_be_smaller=True)
        table = functools.partial(
            panel_table,
            self.group_offsets,
            depth=self.panel_depth or len(self.segments) * self.segment_length,
            output_size=4 >> (self.output.kind & 3),
            residual_size=4 >> (self.residual.kind & 3),
        )
        blocks = list(blocks_and_vectors(self.group_outputs))
        panels = table(blocks)
        runs, length = self.segments, self.segment_length
        adds_narrow = bool(self.residual.address and self.residual.kind)
        bypasses = not self.epilogue.ends_in_registers or self.output.kind != codes.FP32 or adds_narrow
        depth = len(runs) * length
        tiles_outside = order_of(self.tactic, tiles, panels, depth) == codes.TILES_OUTSIDE
        k_blocks = 1
        is_direct = not bypasses and self.group_outputs % current_tier().block_channels == 0 and not overlaps
        if is_direct and self.tactic == PANELS_BY_BLOCKS:
            runs, length = cut_runs(runs, length)
            k_blocks = len(runs)
        elif is_direct and not tiles_outside and len(tiles) > 1:
            k_blocks = _blocks_of(len(runs), 4 * PANEL_CHANNELS * depth)
        # A wide block finds its panels by the words that it sums over.
        has_whole_panels = k_blocks == 1 and not self.panel_depth and (tiles[:, -1] == 1).all()
        wide = table(_in_wide_blocks(blocks)) if has_whole_panels else panels
        if threads == 1 or len(wide) >= _CHUNKS_A_THREAD * threads:
            panels = wide
        segments = np.array(runs, np.int64)
        outer, inner = (len(tiles), len(panels)) if tiles_outside else (len(panels), len(tiles))
        chunks, inner_parts = chunks_and_parts(outer, inner, threads)
        work = _CONVOLVE.work(
            chunks,
            input=Pixels(self.input, axes[2].input),
            weights=self.weights,
            bias=self.bias,
            output=self.output._replace(stride=axes[2].output),
            residual=self.residual._replace(stride=axes[2].residual),
            segments=Runs(segments.ctypes.data, len(segments) // k_blocks, length),
            k_blocks=k_blocks,
            continues=int(self.continues),
            tiles=WordTable(tiles.ctypes.data, len(tiles)),
            panels=WordTable(panels.ctypes.data, len(panels)),
            order=codes.TILES_OUTSIDE if tiles_outside else codes.PANELS_OUTSIDE,
            inner_parts=inner_parts,
            finish=self.epilogue.finish(bypasses=bypasses),
        )
        return work, [segments, tiles, panels]


def chunks_and_parts(outer: int, inner: int, threads: int) -> tuple[int, int]:
    """(chunks, parts of the inner loop): the outer loop is cut, and the inner one too where it has too few turns.

    Five panels for two threads are three rounds; ten halves are five, each half with all of its panel's weights.
    """
    if threads == 1:
        return 1, 1
    # Several chunks for a thread: one that is late, slow, or has been put to sleep by the system, then leaves little
    # undone. A chunk costs one atomic operation, which is nothing beside a panel. With two chunks for each of 16
    # threads and one core at half the speed, ResNet-50 would take 1.4 times the ideal (simulated).
    parts = min(outer, _CHUNKS_A_THREAD * threads)
    if parts < outer:
        return parts, 1
    evenly = min(inner, threads) if outer % threads else 1
    wanted = -(-_CHUNKS_A_THREAD * threads // outer)
    inner_parts = max(evenly, min(wanted, inner // _LEAST_TURNS), 1)
    return parts * inner_parts, inner_parts


def _blocks_of(segments: int, panel_bytes: int) -> int:
    """The fewest blocks of whole segments that are each small enough, or one a segment."""
    for blocks in range(1, segments):
        if segments % blocks == 0 and panel_bytes // blocks <= family().panel_bytes:
            return blocks
    return segments

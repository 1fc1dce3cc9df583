"""What native functions are told about their operands: each class is a run of words in the table of arguments.

A native function whose parameter is annotated with one of these gets it as a named tuple, and a kernel hands over the
same class. Fields that a function does not read cost it nothing: the compiler drops the loads. So an operand is always
described as a whole, and in the same words.

Numba is not imported here: kernels that only bind arrays do not need it.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Chunk(NamedTuple):
    """The part of a function's work that one call does: chunk `number` of so many."""

    number: int
    chunks: int


class Extents(NamedTuple):
    """The extents of the four axes that an element-by-element function goes through, innermost last."""

    axis0: int
    axis1: int
    axis2: int
    axis3: int


class Elements(NamedTuple):
    """An array as element-by-element functions walk it; strides are in bytes, 0 along axes that it is repeated along.

    Functions that work along one axis have it last.
    """

    address: int
    kind: int
    stride0: int
    stride1: int
    stride2: int
    stride3: int


class Lines(NamedTuple):
    """Lines of memory, two axes of them: where they begin, and how far apart along a third axis things in them lie."""

    address: int
    stride0: int
    stride1: int
    step: int = 0


class Image(NamedTuple):
    """Images by pixels; strides are in bytes. An address of 0 is no image: nothing is added, say."""

    address: int
    kind: int
    image_stride: int
    row_stride: int
    pixel_stride: int
    channel_stride: int
    images: int
    rows: int
    columns: int
    channels: int


class WindowAxis(NamedTuple):
    """A window along one axis of an image: its places, and the padding before and behind the image."""

    extent: int = 1
    step: int = 1
    dilation: int = 1
    before: int = 0
    behind: int = 0


class ImagePadding(NamedTuple):
    """Images, rows and columns of padding around images; a volume's slices are its images."""

    front: int
    back: int
    top: int
    bottom: int
    left: int
    right: int


class WordTable(NamedTuple):
    """Rows of 64-bit words, whose meaning is the reader's."""

    address: int
    rows: int


class Runs(NamedTuple):
    """What each output of a matrix product sums over: a table of byte offsets, and the words from each of them on."""

    address: int
    runs: int
    length: int


class Pixels(NamedTuple):
    """An operand of a matrix product; pixels of a tile are `stride` bytes apart. 0 is the address of no residual."""

    address: int
    stride: int
    kind: int = 0


class Function(NamedTuple):
    """An activation, or another function of one operand, by its code."""

    kind: int
    alpha: float
    beta: float


class Finish(NamedTuple):
    """What follows real sums.

    Where `bypasses` is set, sums go through a piece of stack, and from there through inner activation, residual and
    outer activation; else the limits are all, or `x * clip(slope * x + shift, 0, 1)` where the slope is not 0.
    """

    bypasses: int
    low: float
    high: float
    inner: Function
    outer: Function
    slope: float = 0.0
    shift: float = 0.0


class RequantizationSteps(NamedTuple):
    """What happens to scaled sums of integers; `kernels/requantization.py` says it step by step."""

    rounding: int
    rounds_sum: int
    sum_low: float
    sum_high: float
    sum_multiplier: float
    operation: int
    residual_multiplier: float
    residual_zero: float
    low: float
    high: float
    rounds_last: int
    last_multiplier: float
    last_low: float
    last_high: float
    zero_point: float


class ChannelScales(NamedTuple):
    """What belongs to the channels of integer sums, a word each.

    Starts are INT32 and FP32 multipliers; `real_bias` is 0 where there is none. Shifts are 0 unless `scaling` asks for
    them, and of two words each where they are FP64 multipliers.
    """

    starts: int
    multipliers: int
    shifts: int
    scaling: int
    real_bias: int


class SampleSteps(NamedTuple):
    """What happens to values that are averaged, sampled or divided by their sum.

    Less the zero point of the source, times the multiplier, limited; where results are INT8, rounded, plus their zero
    point.
    """

    source_zero: float = 0.0
    multiplier: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    zero_point: float = 0.0
    rounding: int = 0


class TileGrid(NamedTuple):
    """Winograd's output tiles: rows and columns of them in an image, how many there are, and which are in a strip.

    Each of the `parts` has `tiles` of them in the strip. Those of the first part begin at `first`, those of each other
    part `tile_step` behind the ones before; the last part may end before. With a `channel_step` all parts have the same
    tiles, and so many output channels each.
    """

    rows: int
    columns: int
    end: int
    first: int
    tiles: int
    parts: int
    tile_step: int
    channel_step: int


class Positions(NamedTuple):
    """Tiles position by position, `[parts, positions, tiles, channels]`: bytes between tiles, positions and parts."""

    address: int
    tile_pitch: int
    position_bytes: int
    part_bytes: int


class Scales(NamedTuple):
    """Scales of quantized numbers `[outer, rows, inner]`: strides in bytes, one for `block` rows, 0 for one in all."""

    address: int
    kind: int
    outer_stride: int
    row_stride: int
    stride: int
    block: int


class TransposedTiles(NamedTuple):
    """How a transposition goes through its tiles; `native/transposition.py` says what the fields mean."""

    makes_pixels: int
    to_pieces: int
    rows: int
    columns: int
    source_pitch: int
    output_pitch: int
    stages_source: int
    stages_output: int
    streams: int
    ahead: int
    ahead_pieces: int

"""The numbers by which kernels and native functions name things to each other."""

from __future__ import annotations

from dryfit.network.data_types import DataType

FP32, FP16, INT8, BF16 = 0, 1, 2, 5
"""Element types in memory; the size in bytes is `4 >> (code & 3)`."""

ELEMENT_CODES = {
    DataType.FLOAT: FP32,
    DataType.HALF: FP16,
    DataType.INT8: INT8,
    DataType.BF16: BF16,
    DataType.BOOL: INT8,
}
"""BOOL is a byte that is 0 or 1."""

WORD_BYTES, WORD_INT32, WORD_INT64, WORD_FP32 = range(4)
"""Element types of whole numbers in memory, and FP32 for casts from them and to them."""

INT4, FP8, FP4, E8M0 = 6, 10, 14, 18
"""Element types, one a byte, that only what quantizes or dequantizes reads and writes."""

NARROW_CODES = {
    **ELEMENT_CODES,
    DataType.INT4: INT4,
    DataType.FP8: FP8,
    DataType.FP4: FP4,
    DataType.E8M0: E8M0,
}
"""All element types."""

FLOATS = frozenset({DataType.FLOAT, DataType.HALF, DataType.BF16})
"""The types that kernels of floating-point numbers serve; all are computed in FP32."""

HALF_TO_EVEN, HALF_AWAY_FROM_ZERO, HALF_UP = range(3)
"""Rounding modes."""

NONE, RELU, CLIP, LEAKY_RELU, SIGMOID, TANH, HARD_SIGMOID = range(7)
ELU, SELU, SOFTPLUS, SOFTSIGN, SCALED_TANH, THRESHOLDED_RELU, GELU_ERF, GELU_TANH = range(7, 15)
SWISH, HARD_SWISH = range(15, 17)
"""Activations. SWISH is x times the sigmoid of a multiple of x, HARD_SWISH x times its hard sigmoid."""

EXP, LOG, SQRT, RECIP, ABS, NEG, FLOOR, CEIL, ROUND, ERF, SIGN = range(17, 28)
IS_NAN, IS_INFINITE, IS_ZERO, IS_NOT_ZERO = range(28, 32)
"""Functions of one operand that pointwise work takes in the place of an activation."""

FIRST, SUM, PROD, MAX, MIN, SUB, DIV, MULTIPLY_ADD = range(8)
POW, SLOPE = range(8, 10)
EQUAL, GREATER, LESS, GREATER_EQUAL, LESS_EQUAL, UNEQUAL, SELECT = range(10, 17)
"""What a pointwise function does with its operands a, b and c; FIRST gives a, MULTIPLY_ADD gives a * b + c, SLOPE gives
a where it is at least 0, else a * b. Comparisons give 1 or 0, and SELECT b where a is not 0, else c."""

LEAVES_SUMS, SCALES, ADDS, ROUNDS_AND_ADDS, ROUNDS_LAST, ADDS_DISTANCES, ROUNDS_AND_ADDS_DISTANCES = range(7)
"""How an integer register block ends: with its sums, or requantized; then with a residual, or its distances from a zero
point, or another rounding."""

REAL_PRODUCTS, TWO_STEPS, ONE_STEP, DOUBLE_PRODUCTS = range(4)
"""How sums are scaled: by FP32 numbers; by fixed-point ones, rounded twice or once; by FP64 numbers, and rounded."""

TILES_OUTSIDE, PANELS_OUTSIDE = 0, 1
"""The outer loop of a matrix product."""

TILE_WORDS, PANEL_WORDS = 7, 6
"""Words in a row of its tile table and of its panel table."""

PANEL_CHANNELS = 32
"""Output channels of a packed panel, on every machine."""

WHOLE_TILE = 4
"""Extent of an output tile of Winograd's filtering in whole numbers."""

# The memory by which the threads of a schedule find each other, in bytes. What different threads write lies in
# different lines of the cache.
LINE_BYTES = 64
CURRENT, MEMBERS = 0, LINE_BYTES
"""In a team: the address of the entry that runs now or ran last; the number of helpers that are with it."""
ENTRY_TABLE, ENTRY_ROWS, ENTRY_COUNTERS, NUMBER, ARRIVALS = 0, 8, 16, LINE_BYTES, 2 * LINE_BYTES
"""In an entry: its table of work, that table's rows, their counters; the number of its last run; who came to it."""
ROW_WORDS = 3
"""Of a row of that table: function, descriptor, chunks."""


def interleavings() -> list[tuple[int, int, int, bool, bool]]:
    """Ways to copy planes to pixels, or pixels to planes, by their number.

    Each is (bytes of a value, planes, values from one pixel to the next, whether planes become pixels, whether a value
    that is left in a pixel becomes zero). Those of DLA_HWC4, CHW4, CHW2 and HWC; what is wider is transposed in blocks.
    """
    pitches = {1: ((3, 3), (3, 4), (4, 4)), 2: ((2, 2), (3, 3), (3, 4), (4, 4)), 4: ((2, 2), (3, 3), (3, 4), (4, 4))}
    ways = ((True, False), (False, False), (True, True))
    return [
        (size, planes, pitch, *way)
        for size, pairs in pitches.items()
        for planes, pitch in pairs
        for way in ways[: 3 if pitch > planes else 2]
    ]


BIN_BITS = 11
BINS = 1 << BIN_BITS
"""Bins of each sign; as `dryfit.network.layers.ranking` has it."""

COLUMNS = 4
"""32-bit counters of a bin, which neighbouring values take in turn: one alone would wait for its own last sum."""

BLOCK = 2048
"""Values that are looked at twice, once for their ends and once for their bins: they stay in the first cache."""

HEAD_BYTES = 128
SIDE_BYTES = BINS * COLUMNS * 4
PLACES = HEAD_BYTES + 2 * SIDE_BYTES
"""Where, behind both sides' counters, the places of a block's values stand."""

TABLE_BYTES = PLACES + 4 * BLOCK

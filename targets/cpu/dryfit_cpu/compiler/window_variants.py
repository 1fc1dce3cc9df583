"""Which code there is for windows that slide over channels, and the bytes that it reads beside the image.

Known without making any code. A panel belongs to a block of channels, as wide as the machine's registers make it:

    limits         64 bytes: the last limits as four equal bytes each; in FP32 the limits of the first rounding, its
                   scale in units of the last one, and the limits of that; whether there is a real bias; the zero point
                   of the results, which the first limits count from 0 and the others from it; filled up
    starts         4 bytes a channel: what the sums begin at
    multipliers    FP32, 4 bytes a channel
    real bias      FP32, 4 bytes a channel: what is added to scaled sums
    weights        [window columns, groups of rows] of 4 bytes a channel

With byte products (VNNI, `sdot`) a group is four rows of the window: a channel's four bytes of a column, the last group
filled up with zeros. On Arm without these it is two rows of 16-bit integers, one row after the other. Elsewhere it is
one row, in FP32.
"""

from __future__ import annotations

from dryfit.attrs_classes import frozen
from dryfit_cpu.compiler.tier import current_tier

LOW_BYTES, HIGH_BYTES, LOW, HIGH, RATIO, LAST_LOW, LAST_HIGH, HAS_BIAS, ZERO_POINT = range(0, 36, 4)
"""Where the limits of a panel stand, whether it has a real bias, and the zero point."""
STARTS = 64
"""Where the starts begin. Multipliers, real bias and weights follow."""

TO_BYTES, TO_BIASED_BYTES, TO_BYTES_AGAIN, TO_SCALED_SUMS = range(4)
"""What becomes of sums: INT8 rounded once, without or with a real bias; INT8 rounded twice; or FP32, scaled and not
rounded. Only the first is not asked whether there is a real bias."""

LEAST_CHANNELS = 16
"""Fewer do not fill a block."""


@frozen
class Variants:
    """The code for one kind of work in windows.

    Attributes:
        windows: (rows, columns, column step) that are unrolled; all others run in loops.
        widths: channels of a block, widest first.
    """

    windows: tuple[tuple[int, int, int], ...]
    widths: tuple[int, ...]

    def number(self, window: tuple[int, int], column_step: int, column_dilation: int, width: int) -> int:
        """The number of the code for a window and a width of blocks."""
        wanted = (*window, column_step)
        kind = self.windows.index(wanted) if wanted in self.windows and column_dilation == 1 else len(self.windows)
        return kind * len(self.widths) + self.widths.index(width)

    def blocks(self, channels: int) -> list[tuple[int, int]]:
        """(first channel, width) of blocks that cover at least the least width; one may overlap those before it."""
        blocks, done = [], 0
        fitting = [width for width in self.widths if width <= channels]
        while done < channels:
            left = channels - done
            width = next((width for width in reversed(fitting) if width >= left), fitting[0])
            first = min(done, channels - width)
            blocks.append((first, width))
            done = first + width
        return blocks


def _widths(widest: int) -> tuple[int, ...]:
    return tuple(width for width in (64, 32, LEAST_CHANNELS) if width <= max(LEAST_CHANNELS, widest))


def group_rows() -> int:
    """Rows of a group on this machine."""
    if current_tier().has_byte_products:
        return 4
    return 2 if current_tier().lane_words > 1 else 1


_REGISTER_BYTES = 4 * current_tier().lanes

SUMS = Variants(
    ((3, 3, 1), (3, 3, 2), (5, 5, 1), (5, 5, 2)),
    _widths(_REGISTER_BYTES if current_tier().has_byte_products else _REGISTER_BYTES // 2),
)
"""Byte products fill registers with bytes; sums in FP32 take two registers, or more where these are short."""
DISTANCES = Variants(SUMS.windows, _widths(_REGISTER_BYTES // 2)) if current_tier().has_byte_products else SUMS
"""Sums whose weights are distances from zero points, which bytes do not hold."""
AVERAGES = Variants((), SUMS.widths)
"""Sums whose weights are 1."""
REAL_SUMS = Variants((*SUMS.windows, (7, 7, 1)), (2 * current_tier().lanes, current_tier().lanes))
"""FP32 values."""
PAIRED_WINDOWS = REAL_SUMS.windows[:2] if current_tier().lanes == 8 else ()
"""Windows of 3 x 3 whose outputs are summed two rows at a time, where registers are eight lanes long and only 16."""
PAIRED_WIDTH, PAIRED_NUMBERS = REAL_SUMS.widths[0], len(PAIRED_WINDOWS) * len(REAL_SUMS.widths)
"""There is code for blocks of this width, of which the numbers in `REAL_SUMS` are below that one."""
PAIR_ROWS = 2
MAXIMA = Variants(((3, 3, 1), (3, 3, 2), (2, 2, 2)), _widths(_REGISTER_BYTES))

"""A quantized matrix as the register block multiplies by it, packed in each run."""

from __future__ import annotations

from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.byte_tables import load_code
from dryfit_cpu.compiler.compilation import native
from dryfit_cpu.compiler.integer_memory import STAGED_BYTES, stage_fill
from dryfit_cpu.compiler.memory import store_int32
from dryfit_cpu.descriptors import Chunk
from dryfit_cpu.native.indices import share

_UNIT = 4


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
    """Pack `[rows, columns]` to panels `[panels, units, 32, 4]` of bytes, or `[panels, units, 2, 32, 2]` of shorts.

    What sums of a column begin at takes back the zero point of what is multiplied, and where that is read as unsigned
    bytes the 128 that these are above their values. Beyond the columns and rows there are zeros.
    """
    units = (rows + _UNIT - 1) // _UNIT
    count = (columns + PANEL_CHANNELS - 1) // PANEL_CHANNELS
    above = zero_point + (128 if STAGED_BYTES == 1 else 0)
    for panel in range(*share(chunk, count)):
        to = panels + panel * units * PANEL_CHANNELS * _UNIT * STAGED_BYTES
        stage_fill(to, units * PANEL_CHANNELS * _UNIT, 0)
        for channel in range(PANEL_CHANNELS):
            column = panel * PANEL_CHANNELS + channel
            total = 0
            if column < columns:
                for row in range(rows):
                    code = load_code(source + row * row_stride + column * column_stride)
                    total += code
                    unit, place = row // _UNIT, row % _UNIT
                    at = (unit * PANEL_CHANNELS + channel) * _UNIT + place
                    if STAGED_BYTES == 2:
                        at = ((unit * 2 + place // 2) * PANEL_CHANNELS + channel) * 2 + place % 2
                    stage_fill(to + at * STAGED_BYTES, 1, code)
            store_int32(starts + 4 * column, -above * total)

"""How a thread's table of a histogram lies in memory: what the kernel allots, and what the native functions fill."""

from __future__ import annotations

BIN_BITS = 11
BINS = 1 << BIN_BITS
"""Bins of each sign; as `dryfit.network.layers.histogram` has it."""

COLUMNS = 4
"""32-bit counters of a bin, which neighbouring values take in turn: one alone would wait for its own last sum."""

BLOCK = 2048
"""Values that are looked at twice, once for their ends and once for their bins: they stay in the first cache."""

HEAD_BYTES = 128
SIDE_BYTES = BINS * COLUMNS * 4
PLACES = HEAD_BYTES + 2 * SIDE_BYTES
"""Where, behind both sides' counters, the places of a block's values stand."""

TABLE_BYTES = PLACES + 4 * BLOCK

"""Pooling of INT8 images whose channels lie together: maxima of bytes, and averages by sums of bytes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.compiler.window_variants import AVERAGES, LEAST_CHANNELS, MAXIMA
from dryfit_cpu.kernels.operands import Operand
from dryfit_cpu.kernels.window_panels import Limits, block_table, outside_of, packed_panel
from dryfit_cpu.steps import Work

_MAX_POOL = NativeFunction("integer_pooling", "max_pool")
_AVERAGE_POOL = NativeFunction("integer_pooling", "average_pool")
_LOWEST = outside_of(-128)
_ZERO = outside_of(0)
_NO_LIMITS = Limits((0.0, 0.0), 1.0, (0.0, 0.0))
_MOST_WEIGHTS = 1024
"""Of a window whose weights are worth having, though all are 1."""

Geometry = Mapping[str, int]
"""Where input and output lie, and the window, by the names of fields."""


def has_whole_blocks(source: Operand) -> bool:
    """Whether bytes of channels lie together and fill a block."""
    return source.kind == INT8 and source.has_dense_channels and source.shape[1] >= LEAST_CHANNELS


def can_sum_bytes(source: Operand, window: tuple[int, int]) -> bool:
    """Whether averages over a window are sums of bytes."""
    return has_whole_blocks(source) and window[0] * window[1] <= _MOST_WEIGHTS


def byte_maxima_work(chunks: int, geometry: Geometry) -> tuple[Work, object]:
    """Work that writes maxima as they are, to channels that lie together; and what it reads, which has to be kept."""
    window, columns = _window(geometry)
    blocks = block_table(MAXIMA, geometry["channels"], window, columns)
    fields = _without(geometry, "channels", "output_channel_stride", "output_kind")
    return _MAX_POOL.work(chunks, **fields, **_table_fields(blocks, _LOWEST)), blocks


def byte_averages_work(chunks: int, geometry: Geometry, **ending: float) -> tuple[Work, object]:
    """Work that divides sums by counts and requantizes; and what it reads, which has to be kept."""
    window, columns = _window(geometry)
    panels = {
        width: packed_panel(
            np.ones((*window, width), np.int8), np.zeros(width, np.int32), np.ones(width, np.float32), _NO_LIMITS
        )
        for width in AVERAGES.widths
    }
    of_blocks = [panels[width] for _, width in AVERAGES.blocks(geometry["channels"])]
    blocks = block_table(AVERAGES, geometry["channels"], window, columns, of_blocks)
    work = _AVERAGE_POOL.work(chunks, **_without(geometry, "channels"), **_table_fields(blocks, _ZERO), **ending)
    return work, (blocks, of_blocks)


def _without(geometry: Geometry, *names: str) -> dict[str, int]:
    return {name: value for name, value in geometry.items() if name not in names}


def _window(geometry: Geometry) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and columns, and the columns' step and dilation."""
    window = (geometry["window_rows"], geometry["window_columns"])
    return window, (geometry["column_step"], geometry["column_dilation"])


def _table_fields(blocks: Array, outside: Array) -> dict[str, int]:
    return {"blocks": blocks.ctypes.data, "block_count": len(blocks), "outside": outside.ctypes.data}

"""Pooling of INT8 images whose channels lie together: maxima of bytes, and averages by sums of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.codes import INT8
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.compiler.window_variants import AVERAGES, LEAST_CHANNELS, MAXIMA
from dryfit_cpu.descriptors import SampleSteps, Table, WindowAxis
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


def has_whole_blocks(source: Operand) -> bool:
    """Whether bytes of channels lie together and fill a block."""
    return source.kind == INT8 and source.has_dense_channels and source.shape[1] >= LEAST_CHANNELS


def can_sum_bytes(source: Operand, rows: WindowAxis, columns: WindowAxis) -> bool:
    """Whether averages over a window are sums of bytes."""
    return has_whole_blocks(source) and rows.extent * columns.extent <= _MOST_WEIGHTS


def byte_maxima_work(
    chunks: int, source: Operand, output: Operand, rows: WindowAxis, columns: WindowAxis
) -> tuple[Work, object]:
    """Work that writes maxima as they are, to channels that lie together; and what it reads, which has to be kept."""
    blocks = block_table(MAXIMA, output.shape[1], rows, columns)
    work = _MAX_POOL.work(chunks, **_arguments(source, output, rows, columns, blocks, _LOWEST))
    return work, blocks


def byte_averages_work(
    chunks: int,
    source: Operand,
    output: Operand,
    rows: WindowAxis,
    columns: WindowAxis,
    steps: SampleSteps,
    *,
    counts_padding: bool,
) -> tuple[Work, object]:
    """Work that divides sums by counts and requantizes; and what it reads, which has to be kept."""
    panels = {
        width: packed_panel(
            np.ones((rows.extent, columns.extent, width), np.int8),
            np.zeros(width, np.int32),
            np.ones(width, np.float32),
            _NO_LIMITS,
        )
        for width in AVERAGES.widths
    }
    of_blocks = [panels[width] for _, width in AVERAGES.blocks(output.shape[1])]
    blocks = block_table(AVERAGES, output.shape[1], rows, columns, of_blocks)
    arguments = _arguments(source, output, rows, columns, blocks, _ZERO)
    work = _AVERAGE_POOL.work(chunks, **arguments, counts_padding=int(counts_padding), steps=steps)
    return work, (blocks, of_blocks)


def _arguments(
    source: Operand, output: Operand, rows: WindowAxis, columns: WindowAxis, blocks: Array, outside: Array
) -> dict[str, Any]:
    return {
        "source": source.image,
        "outside": outside.ctypes.data,
        "blocks": Table(blocks.ctypes.data, len(blocks)),
        "output": output.image,
        "window_rows": rows,
        "window_columns": columns,
    }

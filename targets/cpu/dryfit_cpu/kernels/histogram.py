"""Histograms of FP32 tensors, whatever the order of their values in memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.reference.reduction import histogram_record
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu.codes import TABLE_BYTES
from dryfit_cpu.compiler.native import NativeFunction, NativeStep
from dryfit_cpu.kernels.copying import chunks_for

_CLEAR = NativeFunction("histogram", "clear_tables")
_COUNT = NativeFunction("histogram", "count_values")
_WRITE = NativeFunction("histogram", "write_record")

_MOST_VALUES = 1 << 31
"""More could overflow a counter."""


def _table_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    """A table for each chunk, of which there are no more than threads."""
    return _tables(math.prod(specs[group.inputs[0].name].shape), num_threads) * TABLE_BYTES


def _tables(values: int, num_threads: int) -> int:
    return min(chunks_for(values, num_threads), num_threads)


@kernel(
    "cpu.histogram",
    kinds="histogram",
    data_types=[DataType.FLOAT, DataType.INT64],
    workspace_bytes=_table_bytes,
)
def count_magnitudes(binding: Binding) -> NativeStep | Callable[[], None]:
    """A step for an array without gaps; what has gaps is counted by the reference."""
    (x,), (record,) = binding.inputs, binding.outputs
    if not _is_dense(x) or x.size > _MOST_VALUES or not record.flags.c_contiguous:

        def count() -> None:
            record[...] = histogram_record(x)

        return count
    # A table for each chunk, as chunks may run at once; they are added up by one thread, which is little beside the
    # values.
    number = _tables(x.size, binding.num_threads)
    tables = binding.workspace.ctypes.data
    work = [
        _CLEAR.work(number, tables=tables, number=number),
        _COUNT.work(number, source=x.ctypes.data, values=x.size, tables=tables),
        _WRITE.work(1, tables=tables, number=number, output=record.ctypes.data),
    ]
    return NativeStep(binding.group.name, work, [binding])


def _is_dense(array: Array) -> bool:
    """Whether an array has no gaps, in some order of its axes; it then begins at its first element."""
    step = array.itemsize
    for stride, extent in sorted(zip(array.strides, array.shape, strict=True)):
        if extent == 1:
            continue
        if stride != step:
            return False
        step *= extent
    return bool(np.prod(array.shape))

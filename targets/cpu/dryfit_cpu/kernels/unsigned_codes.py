"""UINT8 codes as INT8 ones that are 128 lower, and back: work that flips the highest bit of each."""

from __future__ import annotations

import numpy as np

from dryfit.target.kernels import Array
from dryfit_cpu.kernels.dense_operands import channels_last
from dryfit_cpu.kernels.integer_functions import Table, lookup_work
from dryfit_cpu.kernels.operands import aligned_empty
from dryfit_cpu.steps import Work

_FLIPS = Table((np.arange(256, dtype=np.uint8) ^ np.uint8(128)).view(np.int8), None)


def flip_work(source: Array, output: Array, threads: int) -> list[Work]:
    """Work that gives the codes of the other type; source and output, 8-bit integers, may be the same memory."""
    return lookup_work(_FLIPS, source.view(np.int8), output.view(np.int8), threads)


def memory_alike(array: Array) -> Array:
    """Memory for as many INT8 codes, in the order in which an array has its own."""
    is_channels_last = array.ndim == 4 and array.strides[1] == 1
    return channels_last(array.shape, np.int8) if is_channels_last else aligned_empty(array.shape, np.int8)

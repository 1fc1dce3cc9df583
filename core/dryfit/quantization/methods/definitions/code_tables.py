"""Functions of one code as tables of 256 codes, and the exponential that they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dryfit.quantization.methods.call import Operand

Array = np.ndarray[Any, Any]


def by_table(operand: Operand, function: Callable[[Array], Array]) -> Array:
    """The function of every element, of the operand's shape.

    Args:
        operand: INT8 or UINT8.
        function: of the distances of all 256 codes from the zero point, `int32[256]`.
    """
    codes = np.arange(256, dtype=np.uint8).view(operand.values.dtype)
    table = function(codes.astype(np.int32) - np.int32(operand.one_zero_point))
    return np.asarray(table[operand.values.view(np.uint8)])


def exponential(values: Array) -> Array:
    """`float32` of `exp`, computed in FP64; infinity where FP32 ends."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(np.asarray(values, np.float64)).astype(np.float32)

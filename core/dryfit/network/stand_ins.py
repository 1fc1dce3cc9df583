"""What stands in the place of an array that is left out: its type and shape, and no memory.

It is one element, 1, seen from everywhere, so that layers that look at a value find one that they can take.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.network.data_types import DataType

Array = np.ndarray[Any, Any]


def stand_in(dtype: DataType, shape: Sequence[int]) -> Array:
    """What takes the place of an array of this type and shape."""
    return np.broadcast_to(_one(dtype), shape)


def is_stand_in(array: Array) -> bool:
    """Whether an array is such a place, or a part of one."""
    one = _one(DataType.from_numpy(array.dtype))
    return bool(array.__array_interface__["data"][0] == one.__array_interface__["data"][0])


@functools.cache
def _one(dtype: DataType) -> Array:
    return np.ones((), dtype.numpy)

"""Other values for parameters and arrays: small and large, of other shapes, at the limits of their types."""

from __future__ import annotations

import enum
import random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 20, 31, 32, 33, 40, 64, -1, -2, -3)
_LARGE = (100, 1000, -100, 2**15, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
_REALS = (0.0, -1.0, 1e30, 2.5, 1e-30, -3.0)
_LARGEST_ARRAY = 1e6


class OtherValues:
    """Draws values that a forgery puts in the place of others.

    Args:
        rng: where choices come from.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def value(self, value: Any) -> Any:
        """Another value of a parameter."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, enum.Enum):
            return self._rng.choice(list(type(value)))
        if isinstance(value, int):
            return self._rng.choice(_SMALL if self._rng.random() < 0.85 else _LARGE)
        if isinstance(value, float):
            return self._rng.choice(_REALS)
        if isinstance(value, np.ndarray):
            return self.array(value)
        if value is None:
            return self._rng.choice([1, (1, 1), 0, (0, 1, 2, 3), np.ones(4, np.float32)])
        return self._tuple(value) if isinstance(value, tuple) else value

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            return (self._rng.choice(_SMALL),) * self._rng.randint(1, 4)
        changed, place = list(value), self._rng.randrange(len(value))
        way = self._rng.random()
        if way < 0.1:
            changed.append(changed[-1])
        elif way < 0.2:
            changed.pop()
        elif way < 0.4:
            changed = [self.value(changed[0])] * len(changed)
        else:
            changed[place] = self.value(changed[place])
        return tuple(changed)

    def array(self, array: Array) -> Array:
        """An array of another shape, or of other values."""
        shape, way = list(array.shape), self._rng.random()
        if way < 0.5 and shape:
            place = self._rng.randrange(len(shape))
            extent = shape[place]
            shape[place] = max(
                0, self._rng.choice([extent + 1, extent - 1, 2 * extent, extent // 2, 0, 1, extent + 32])
            )
        elif way < 0.6:
            shape.reverse()
        elif way < 0.7:
            shape = [*shape, 1]
        if np.prod(shape, dtype=float) > _LARGEST_ARRAY:
            return array
        numbers = np.random.default_rng(self._rng.randrange(1 << 30))
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            pool = np.array([0, 1, 2, 5, 7, limits.min, limits.max], array.dtype)
            return numbers.choice(pool, shape)
        return numbers.standard_normal(shape).astype(np.float32).astype(array.dtype)

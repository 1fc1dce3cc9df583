"""Rounding to whole numbers, as devices do it: the modes, and for each its definition in numpy.

The definitions are exact: no value is changed before it is rounded, so that the largest number below a half stays below
it. (Adding a half and taking the floor, the usual short form, gives 1 for it.)
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from dryfit.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    import numpy as np


class RoundingMode(enum.Enum):
    """Where a number half-way between two whole numbers goes; every other number goes to the nearest.

    Example:
        >>> str(RoundingMode.HALF_TO_EVEN), RoundingMode.parse("half_up") is RoundingMode.HALF_UP
        ('half_to_even', True)
    """

    HALF_TO_EVEN = "half_to_even"
    """To the even neighbour: 0.5 -> 0, 1.5 -> 2, -0.5 -> 0. IEEE 754's default."""
    HALF_AWAY_FROM_ZERO = "half_away_from_zero"
    """To the neighbour that is larger in magnitude: 0.5 -> 1, -0.5 -> -1."""
    HALF_UP = "half_up"
    """To the larger neighbour: 0.5 -> 1, -0.5 -> 0, -1.5 -> -1."""

    def __str__(self) -> str:
        return self.value

    @classmethod
    def parse(cls, text: str) -> RoundingMode:
        """The mode of a name, in any case.

        Raises:
            UnknownNameError: no mode has this name.
        """
        names = {mode.value: mode for mode in cls}
        if text.lower() not in names:
            raise UnknownNameError("rounding mode", text, names)
        return names[text.lower()]


def round_values(values: np.ndarray[Any, Any], mode: RoundingMode) -> np.ndarray[Any, Any]:
    """The whole numbers nearest to the values, in the values' own type.

    Infinities stay, NaN stays NaN, and what rounds to zero keeps its sign, as IEEE 754 has it.

    Args:
        values: floating point: float16, float32 or float64, of any shape. Integers come back as they are.
        mode: where what lies half-way goes.

    Raises:
        ConfigError: the values are neither floating-point numbers nor integers.
    """
    import numpy as np

    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.copy()
    if values.dtype.kind != "f":
        raise ConfigError("Only real numbers can be rounded", found=values.dtype, allowed="floating point or integers")
    if mode is RoundingMode.HALF_TO_EVEN:
        return np.asarray(np.rint(values))
    with np.errstate(invalid="ignore"):  # infinity minus infinity: no half, so it stays
        # The part behind the point of a magnitude is exact: its digits are the magnitude's own. That of a negative
        # number, counted from the whole number below, is not: 1 - 0.49999997 is 0.5 in float32.
        magnitude = np.abs(values)
        whole = np.floor(magnitude)
        part = magnitude - whole
    outwards = (values > 0) | (mode is RoundingMode.HALF_AWAY_FROM_ZERO)
    return np.asarray(np.copysign(whole + ((part > 0.5) | ((part == 0.5) & outwards)), values))

"""A logarithm that has the same bits on every machine.

numpy and the C library choose among several implementations by what the processor has, and their last bits differ. A
calibrator that looks for the smallest of many nearly equal numbers would give other ranges on another machine. This one
uses only operations whose result IEEE 754 prescribes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_TERMS = 11
"""The next term is below 2^-60 of the sum."""

_LOG_2 = math.log(2.0)


def natural_logarithm(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The natural logarithm of positive numbers, within 2e-16 of the larger of 1 and the result's magnitude.

    Zeros and NaN give what has no meaning, without an error. The series is 2 atanh((m - 1) / (m + 1)) for m from 0.7 to
    1.42, and the exponent's share is added.
    """
    fraction, exponent = np.frexp(np.asarray(values, np.float64))
    low = fraction < math.sqrt(0.5)
    fraction = np.where(low, 2.0 * fraction, fraction)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    total = np.full_like(square, 1.0 / (2 * _TERMS + 1))
    for term in range(_TERMS - 1, -1, -1):
        total *= square
        total += 1.0 / (2 * term + 1)
    return np.asarray(2.0 * ratio * total + (exponent - low) * _LOG_2)

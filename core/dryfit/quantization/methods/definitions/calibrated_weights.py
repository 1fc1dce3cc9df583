"""Weights that a builder quantizes itself, by the ranges that it found: symmetric codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.definitions.real_numbers import quantize
from dryfit.quantization.methods.method import MethodRule

Array = np.ndarray[Any, Any]
_LOWEST = np.int8(-127)


def calibrated_weights(call: OperatorCall, rule: MethodRule) -> Array:
    """INT8 codes of FP32 numbers, the lowest -127; reads the rule's requantization."""
    return np.maximum(quantize(call, rule), _LOWEST)

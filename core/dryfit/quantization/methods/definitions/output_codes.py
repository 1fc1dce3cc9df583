"""The codes that an output may have, and what vector kernels leave over for scalar code that rounds differently."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantization import Requantization, activation_range
from dryfit.quantization.rounding import RoundingMode

LIMIT_ROUNDING = "limit_rounding"
"""The option of a rule that says how the codes of limits are rounded: the name of a `RoundingMode`."""

LIMIT_ZERO_POINT_FIRST = "limit_zero_point_first"
"""The option that says whether the zero point is added to limits before they are rounded."""


def output_range(call: OperatorCall, rule: MethodRule) -> tuple[int, int]:
    """Lowest and highest code; limits are rounded as the options say: away from zero, then moved, without them.

    Raises:
        NetworkError: the output is real.
    """
    scale, zero_point = call.output_grid
    rounding = RoundingMode.parse(rule.options.get(LIMIT_ROUNDING, "half_away_from_zero"))
    is_first = bool(rule.options.get(LIMIT_ZERO_POINT_FIRST, False))
    return activation_range(call.limits, scale, zero_point, call.code_range, rounding, zero_point_first=is_first)


Array = np.ndarray[Any, Any]

VECTOR_CHANNELS = "vector_channels"
"""Option: as many output channels are finished at once; those left over, with the option `TAIL_ROUNDING`."""
VECTOR_ELEMENTS = "vector_elements"
"""Option: as many elements of the whole output, channels last, are finished at once; the same of those left over."""
TAIL_ROUNDING = "tail_rounding"
"""Option: the name of the `RoundingMode` of what is left over."""


def with_tail(rule: MethodRule, shape: tuple[int, ...], finish: Callable[[Requantization], Array]) -> Array:
    """Codes by the rule's record, and by its tail rounding where a vector kernel leaves them over.

    Args:
        rule: without the option `tail_rounding`, nothing is left over.
        shape: of the output, `[N, K, *spatial]`.
        finish: codes of the whole output by a record.
    """
    codes = finish(rule.record)
    if TAIL_ROUNDING not in rule.options:
        return codes
    tail = attrs.evolve(rule.record, rounding=RoundingMode.parse(rule.options[TAIL_ROUNDING]))
    return np.where(is_in_vectors(rule, shape), codes, finish(tail))


def is_in_vectors(rule: MethodRule, shape: tuple[int, ...]) -> Array:
    """Which elements of an output `[N, K, *spatial]` are no tail: bool, of a shape that broadcasts."""
    if VECTOR_CHANNELS in rule.options:
        K, spatial = shape[1], len(shape) - 2
        whole = np.arange(K) < K - K % int(rule.options[VECTOR_CHANNELS])
        return whole.reshape(-1, *(1,) * spatial)
    size = math.prod(shape)
    whole = np.arange(size) < size - size % int(rule.options[VECTOR_ELEMENTS])
    if len(shape) < 3:
        return whole.reshape(shape)
    return np.moveaxis(whole.reshape(shape[0], *shape[2:], shape[1]), -1, 1)

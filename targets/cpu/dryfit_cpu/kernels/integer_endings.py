"""How integer register blocks end: which requantizations are computed in registers, and by which code."""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.quantization.rounding import RoundingMode
from dryfit.target.kernels import Array
from dryfit_cpu import codes
from dryfit_cpu.kernels.requantization import GroupRequantization

_WHOLE_LIMIT = 2.0**31
"""What a number that is rounded stays below: above it there is no whole number in 32 bits."""
_LARGEST = 255.0
"""Of the distance of an INT8 value from a zero point."""

_CODES = {
    (False, False, False, False): codes.SCALES,
    (True, False, False, False): codes.ADDS,
    (True, True, False, False): codes.ADDS_DISTANCES,
    (True, False, True, False): codes.ROUNDS_AND_ADDS,
    (True, True, True, False): codes.ROUNDS_AND_ADDS_DISTANCES,
    (False, False, False, True): codes.ROUNDS_LAST,
}
"""(has a residual, it has a zero point, rounds_sum, rounds_last) to the ending; what is missing here is computed from
sums that are left."""


def largest(numbers: Array | None) -> float:
    """The largest number without its sign; 0 where there are none."""
    return 0.0 if numbers is None else float(np.abs(numbers.astype(np.float64)).max(initial=0.0))


def ending_of(steps: GroupRequantization, output_kind: int, residual_kind: int, largest_scaled: float) -> int:
    """The code of the ending that a block may have.

    Args:
        steps: what happens to the sums.
        output_kind: element code.
        residual_kind: element code; INT8 where there is none.
        largest_scaled: what a scaled sum with its bias cannot exceed, without its sign.

    A number that is rounded has to have a whole number in 32 bits, before it is limited.
    """
    form = (bool(steps.residual), steps.residual_zero != 0, steps.rounds_sum, steps.rounds_last)
    code = _CODES.get(form, codes.LEAVES_SUMS)
    is_common = steps.rounding is RoundingMode.HALF_TO_EVEN and output_kind == residual_kind == codes.INT8
    is_sum = steps.operation in (codes.FIRST, codes.SUM)
    if not (is_common and is_sum and steps.is_quantized) or steps.scaling != codes.REAL_PRODUCTS:
        return codes.LEAVES_SUMS
    sizes = [largest_scaled]
    if steps.rounds_sum:
        sizes.append(_LARGEST * abs(steps.sum_multiplier))
    if steps.residual:
        sizes.append(sizes[-1] + _LARGEST * abs(steps.residual_multiplier))
    if steps.rounds_last:
        sizes.append(_LARGEST * abs(steps.last_multiplier))
    return code if all(size < _WHOLE_LIMIT for size in sizes) else codes.LEAVES_SUMS


def without_needless_rounding(steps: GroupRequantization) -> GroupRequantization:
    """The same requantization with one rounding where the second one rounds whole numbers.

    Between roundings of equal scales stand limits only, such as those of RELU. Rounding keeps the order of numbers, and
    leaves whole ones as they are, so that

        round(limit(round(limit(x, a, b)), c, d)) = limit(limit(round(x), round(a), round(b)), round(c), round(d))
                                                  = round(limit(x, e, f))

    where e and f are the rounded a and b, limited by the rounded c and d.
    """
    is_identity = steps.last_multiplier == 1.0 and steps.rounding is RoundingMode.HALF_TO_EVEN
    if not (steps.rounds_last and is_identity and steps.is_quantized):
        return steps
    first, last = np.rint(steps.limits), np.rint(steps.last_limits)
    low, high = (float(min(max(limit, last[0]), last[1])) for limit in first)
    return attrs.evolve(steps, rounds_last=False, limits=(low, high), last_limits=(-np.inf, np.inf))

"""The codes that an output may have: those of its type within a fused activation's limits."""

from __future__ import annotations

from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.method import MethodRule
from dryfit.quantization.methods.requantize import activation_range
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

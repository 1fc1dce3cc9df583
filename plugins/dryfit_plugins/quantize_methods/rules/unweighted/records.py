"""Requantizations of operators without weights: they have an input scale and an output scale only.

Names as in `dryfit_plugins.quantize_methods.rules.weighted.records`.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

AWAY, UP, EVEN = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP, RoundingMode.HALF_TO_EVEN
INT8, UINT8 = frozenset({DataType.INT8}), frozenset({DataType.UINT8})


def fixed(
    rounding: RoundingMode, scale_rule: ScaleRule = ScaleRule.FLOAT, steps: Steps = Steps.TWO_STEP
) -> Requantization:
    """A mantissa of 31 bits; of one step 24 of them count, which are those of an FP32 number."""
    encoding = Encoding.Q24 if steps is Steps.ONE_STEP else Encoding.Q31
    return Requantization(scale_rule=scale_rule, encoding=encoding, steps=steps, rounding=rounding)


def real(rounding: RoundingMode, *, zero_point_first: bool = False, clamp_first: bool = False) -> Requantization:
    """FP32, one operation at a time."""
    return Requantization(
        scale_rule=ScaleRule.FLOAT,
        encoding=Encoding.FLOAT32,
        steps=Steps.REAL,
        rounding=rounding,
        zero_point_first=zero_point_first,
        clamp_first=clamp_first,
    )

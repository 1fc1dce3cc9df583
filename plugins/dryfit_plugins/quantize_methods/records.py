"""What the rules of several methods share: requantizations by the names of their arithmetic, and how a rule is written.

The first letters say how the scales meet (D: FP64; F: FP32 product, FP64 quotient; FF: all FP32), what follows how the
sums are multiplied (2: two roundings, the last away from zero; 2u: the last half up; 1: one rounding, half up).
Operators without weights have an input scale and an output scale only.
"""

from __future__ import annotations

from typing import Any

import attrs

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.conditions import has_one_type
from dryfit.quantization.methods.method import Definition, MethodRule
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


D2 = fixed(AWAY, ScaleRule.DOUBLE)
F2 = fixed(AWAY, ScaleRule.FLOAT_PRODUCT)
FF2 = fixed(AWAY)
D2U = fixed(UP, ScaleRule.DOUBLE)
F2U = fixed(UP, ScaleRule.FLOAT_PRODUCT)
D1 = attrs.evolve(D2U, steps=Steps.ONE_STEP)
F1 = attrs.evolve(F2U, steps=Steps.ONE_STEP)

REAL_DOUBLE = Requantization(scale_rule=ScaleRule.DOUBLE, encoding=Encoding.FLOAT64, steps=Steps.REAL, rounding=AWAY)
"""One product of FP64, away from zero."""
REAL_FLOAT = real(EVEN, clamp_first=True)
"""One product of FP32, ties to even, clamped before it is rounded."""

_SCALES = {
    ScaleRule.DOUBLE: "f64(sx) * f64(sw) / f64(sy)",
    ScaleRule.FLOAT_PRODUCT: "f64(f32(sx * sw)) / f64(sy)",
    ScaleRule.FLOAT: "f32(f32(sx * sw) / sy)",
}
_LAST_SHIFT = {AWAY: "rdbp", UP: "rrs"}


def formula_of(record: Requantization, sums: str = "sum") -> str:
    """A requantization in one line; `m` is the multiplier, (M, S) its mantissa and shift."""
    scales = _SCALES[record.scale_rule]
    if record.steps is Steps.REAL:
        kind = "f32" if record.encoding is Encoding.FLOAT32 else "f64"
        return f"clamp(round_{record.rounding}({kind}({sums}) * m) + zy), m = {scales}"
    if record.steps is Steps.ONE_STEP:
        return f"clamp(rrs({sums} * M, 31 - S) + zy), (M, S) = qmul({scales})"
    last = _LAST_SHIFT[record.rounding]
    return f"clamp({last}(srdhm({sums} << max(S, 0), M), max(-S, 0)) + zy), (M, S) = qmul({scales})"


def rule_of(operator: str, definition: Definition, formula: str, source: str, **given: Any) -> MethodRule:
    """A confirmed rule of an operator without weights, from one type to the same one unless other fields are given."""
    fields: dict[str, Any] = {
        "per_channel": False,
        "case": has_one_type,
        "case_text": "to the input's type",
        "fidelity": "confirmed",
    }
    return MethodRule(operator=operator, definition=definition, formula=formula, source=source, **{**fields, **given})

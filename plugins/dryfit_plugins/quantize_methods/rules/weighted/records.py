"""The requantizations that libraries use, by the names of the arithmetic in their documentation here.

The first letters say how the scales meet (D: FP64; F: FP32 product, FP64 quotient; FF: all FP32), what follows how the
sums are multiplied (2: two roundings, the last away from zero; 2u: the last half up; 1: one rounding, half up).
"""

from __future__ import annotations

from dryfit.quantization.methods.requantization import Encoding, Requantization, ScaleRule, Steps
from dryfit.quantization.rounding import RoundingMode

_AWAY, _UP, _EVEN = RoundingMode.HALF_AWAY_FROM_ZERO, RoundingMode.HALF_UP, RoundingMode.HALF_TO_EVEN


def _fixed(scale_rule: ScaleRule, steps: Steps, rounding: RoundingMode) -> Requantization:
    return Requantization(scale_rule=scale_rule, encoding=Encoding.Q31, steps=steps, rounding=rounding)


D2 = _fixed(ScaleRule.DOUBLE, Steps.TWO_STEP, _AWAY)
F2 = _fixed(ScaleRule.FLOAT_PRODUCT, Steps.TWO_STEP, _AWAY)
FF2 = _fixed(ScaleRule.FLOAT, Steps.TWO_STEP, _AWAY)
D2U = _fixed(ScaleRule.DOUBLE, Steps.TWO_STEP, _UP)
F2U = _fixed(ScaleRule.FLOAT_PRODUCT, Steps.TWO_STEP, _UP)
D1 = _fixed(ScaleRule.DOUBLE, Steps.ONE_STEP, _UP)
F1 = _fixed(ScaleRule.FLOAT_PRODUCT, Steps.ONE_STEP, _UP)

REAL_DOUBLE = Requantization(scale_rule=ScaleRule.DOUBLE, encoding=Encoding.FLOAT64, steps=Steps.REAL, rounding=_AWAY)
"""One product of FP64, away from zero."""
REAL_FLOAT = Requantization(
    scale_rule=ScaleRule.FLOAT, encoding=Encoding.FLOAT32, steps=Steps.REAL, rounding=_EVEN, clamp_first=True
)
"""One product of FP32, ties to even, clamped before it is rounded."""

_SCALES = {
    ScaleRule.DOUBLE: "f64(sx) * f64(sw) / f64(sy)",
    ScaleRule.FLOAT_PRODUCT: "f64(f32(sx * sw)) / f64(sy)",
    ScaleRule.FLOAT: "f32(f32(sx * sw) / sy)",
}
_LAST_SHIFT = {_AWAY: "rdbp", _UP: "rrs"}


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

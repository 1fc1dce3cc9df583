"""Requantization: from INT32 sums to codes of the output. What methods differ in, as a record, and its definition.

Notation: sx, sw, sy are the FP32 scales of input, weights and output; f32(.) and f64(.) one rounding to that type.
"""

from __future__ import annotations

import enum

import attrs

from dryfit.quantization.rounding import RoundingMode


class ScaleRule(enum.Enum):
    """How the three scales become one multiplier."""

    DOUBLE = "double"
    """f64(sx) * f64(sw) / f64(sy)."""
    FLOAT_PRODUCT = "float_product"
    """f64(f32(sx * sw)) / f64(sy)."""
    FLOAT = "float"
    """f32(f32(sx * sw) / sy)."""


class Steps(enum.Enum):
    """How the multiplier is applied to a sum."""

    TWO_STEP = "two_step"
    """A saturating rounding doubling high product with a 31-bit multiplier (ties up), then a rounding shift right."""
    ONE_STEP = "one_step"
    """A 64-bit product and one rounding shift right."""
    REAL = "real"
    """A product of real numbers, rounded to a whole number."""


class Encoding(enum.Enum):
    """What holds the multiplier."""

    Q31 = "q31"
    """INT32 mantissa of 31 bits and a power of two."""
    Q24 = "q24"
    """The 24-bit mantissa of an FP32 number, exactly, and a power of two."""
    FLOAT32 = "float32"
    FLOAT64 = "float64"


@attrs.frozen(kw_only=True)
class Requantization:
    """How sums become codes.

    Attributes:
        scale_rule: how scales meet.
        encoding: what holds the multiplier.
        steps: how it is applied.
        rounding: of the last step, where what lies half-way goes. The first of two steps is always half up.
        zero_point_first: whether the zero point is added before the rounding; else after it.
        clamp_first: whether values are clamped to the output's range before they are rounded; else after it.
        real_bias: whether a bias of real numbers is taken, and added after scaling, in FP32 and units of the output's
            scale. A bias of INT32 is among the sums.
    """

    scale_rule: ScaleRule
    encoding: Encoding
    steps: Steps
    rounding: RoundingMode
    zero_point_first: bool = False
    clamp_first: bool = False
    real_bias: bool = False

"""The range of a tensor's values, and the INT8 scale that follows from it."""

from __future__ import annotations

import math

import attrs
import numpy as np

from dryfit.errors import CalibrationError


def int8_scale(threshold: float) -> float:
    """The scale with which INT8 covers the values from `-threshold` to `threshold`.

    It is computed in binary64 and rounded once to binary32, half to even; 0.0 where the threshold is too small for a
    binary32 scale, infinity where it is too large.

    Source: NVIDIA/TensorRT calibration caches whose ranges are known; they hold range / 127.
    """
    with np.errstate(over="ignore"):
        return float(np.float32(threshold / 127.0))


@attrs.frozen
class DynamicRange:
    """The values that a tensor is expected to have; what lies outside is saturated.

    INT8 is symmetric here: both ends are kept, and the larger magnitude decides the scale.

    Attributes:
        minimum: the smallest value.
        maximum: the largest value.

    Raises:
        CalibrationError: an end is not finite, the ends are in the wrong order, or no binary32 scale covers them, as
            for the range from 0 to 0.

    Example:
        >>> DynamicRange(-127.0, 63.5).scale
        1.0
    """

    minimum: float
    maximum: float

    def __attrs_post_init__(self) -> None:
        ordered = math.isfinite(self.minimum) and math.isfinite(self.maximum) and self.minimum <= self.maximum
        if not ordered or not 0.0 < self.scale < math.inf:
            raise CalibrationError(
                "This is no dynamic range",
                found=f"{self.minimum} to {self.maximum}",
                allowed="two finite values in rising order, not both zero, whose 127th part is a binary32 number",
            )

    @property
    def threshold(self) -> float:
        """The larger magnitude of the two ends."""
        return max(abs(self.minimum), abs(self.maximum))

    @property
    def scale(self) -> float:
        """The real value of one INT8 step: `threshold / 127`, rounded to binary32."""
        return int8_scale(self.threshold)

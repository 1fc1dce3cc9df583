"""Rounding to whole numbers, as devices do it: the modes, and for each its definition in numpy.

The definitions are exact: no value is changed before it is rounded, so that the largest number below a half stays below
it. (Adding a half and taking the floor, the usual short form, gives 1 for it.)
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, PluginError, UnknownNameError, described_failure

if TYPE_CHECKING:
    import numpy as np


class RoundingMode(enum.Enum):
    """Where a number half-way between two whole numbers goes; every other number goes to the nearest.

    Example:
        >>> str(RoundingMode.HALF_TO_EVEN), RoundingMode.parse("half_up") is RoundingMode.HALF_UP
        ('half_to_even', True)
    """

    HALF_TO_EVEN = "half_to_even"
    """To the even neighbour: 0.5 -> 0, 1.5 -> 2, -0.5 -> 0. IEEE 754's default."""
    HALF_AWAY_FROM_ZERO = "half_away_from_zero"
    """To the neighbour that is larger in magnitude: 0.5 -> 1, -0.5 -> -1."""
    HALF_UP = "half_up"
    """To the larger neighbour: 0.5 -> 1, -0.5 -> 0, -1.5 -> -1."""

    def __str__(self) -> str:
        return self.value

    @classmethod
    def parse(cls, text: str) -> RoundingMode:
        """The mode of a name, in any case.

        Raises:
            UnknownNameError: no mode has this name.
        """
        names = {mode.value: mode for mode in cls}
        if text.lower() not in names:
            raise UnknownNameError("rounding mode", text, names)
        return names[text.lower()]


@frozen
class RoundingFunction:
    """A device's own way to round, by its definition in numpy.

    The host's native kernels do not have it: what they would quantize is computed in real numbers and rounded by this
    function, so that the result is exact and slower.

    Attributes:
        function: an array of finite float32 to the whole numbers that the device makes of them, in the same shape.
        name: for reports; the function's own by default.

    Example:
        >>> import numpy
        >>> truncate = RoundingFunction(numpy.trunc)
        >>> truncate.name, round_values(numpy.array([-1.5, 0.7], numpy.float32), truncate).tolist()
        ('trunc', [-1.0, 0.0])
    """

    function: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    name: str = attrs.field(
        default=attrs.Factory(lambda self: getattr(self.function, "__name__", "own"), takes_self=True)
    )

    @property
    def value(self) -> str:
        """The name, as a mode has it."""
        return self.name

    def __str__(self) -> str:
        return self.name

    def __call__(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The whole numbers; what is not finite stays as it is.

        Raises:
            PluginError: the function raises, or gives something other than whole numbers of this shape.
        """
        import numpy as np

        finite = np.isfinite(values)
        try:
            whole = np.asarray(self.function(np.where(finite, values, 0).astype(np.float32)))
        except Exception as error:
            raise PluginError(
                "The rounding function failed",
                where=f"rounding {self.name!r}",
                found=described_failure(error),
                remedy="Fix the function, or report it to the authors of the plugin",
            ) from error
        if whole.shape != values.shape or (whole != np.rint(whole)).any():
            raise PluginError(
                "A rounding function must return integral values in the shape of its argument",
                where=f"rounding {self.name!r}",
                found=f"{whole.dtype} of shape {whole.shape} for shape {values.shape}",
                remedy="Fix the function, or report it to the authors of the plugin",
            )
        return np.where(finite, whole, values).astype(values.dtype)


Rounding = RoundingMode | RoundingFunction
"""How a device finds whole numbers."""


def declared_rounding(declared: object) -> Rounding:
    """What a target declares: a mode, its name, or a function.

    Raises:
        UnknownNameError: no mode has this name.
        PluginError: it is something else.
    """
    if isinstance(declared, (RoundingMode, RoundingFunction)):
        return declared
    if isinstance(declared, str):
        return RoundingMode.parse(declared)
    if callable(declared):
        return RoundingFunction(declared)
    raise PluginError(
        "The rounding must be a mode or a function",
        found=repr(declared),
        allowed=f"{', '.join(mode.value for mode in RoundingMode)}, or a function of an array",
        remedy="Use one of these",
    )


def required_mode(rounding: Rounding) -> RoundingMode:
    """The mode, for what only modes are defined for.

    Raises:
        PluginError: it is a function.
    """
    if isinstance(rounding, RoundingFunction):
        raise PluginError(
            "The rounding of a quantize method must be a mode",
            found=str(rounding),
            allowed=", ".join(one.value for one in RoundingMode),
            remedy="Use one of these",
        )
    return rounding


def round_values(values: np.ndarray[Any, Any], mode: Rounding) -> np.ndarray[Any, Any]:
    """The whole numbers nearest to the values, in the values' own type; or those of a device's own function.

    Infinities stay, NaN stays NaN, and what rounds to zero keeps its sign, as IEEE 754 has it.

    Args:
        values: floating point: float16, float32 or float64, of any shape. Integers come back as they are.
        mode: where what lies half-way goes, or the function.

    Raises:
        ConfigError: the values are neither floating-point numbers nor integers.
    """
    import numpy as np

    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return values.copy()
    if values.dtype.kind != "f":
        raise ConfigError(
            "Values to round must be real numbers",
            found=values.dtype,
            allowed="floating point or integers",
            remedy="Convert them first",
        )
    if isinstance(mode, RoundingFunction):
        return mode(values)
    if mode is RoundingMode.HALF_TO_EVEN:
        return np.asarray(np.rint(values))
    with np.errstate(invalid="ignore"):  # infinity minus infinity: no half, so it stays
        # The part behind the point of a magnitude is exact: its digits are the magnitude's own. That of a negative
        # number, counted from the whole number below, is not: 1 - 0.49999997 is 0.5 in float32.
        magnitude = np.abs(values)
        whole = np.floor(magnitude)
        part = magnitude - whole
    outwards = (values > 0) | (mode is RoundingMode.HALF_AWAY_FROM_ZERO)
    return np.asarray(np.copysign(whole + ((part > 0.5) | ((part == 0.5) & outwards)), values))

"""How integer register blocks end: which requantizations are computed in registers, and by which code.

And the numbers by which a quantize method scales sums, as native functions read them: FP32 multipliers, as devices have
them; or in their place, by the method's record:

    TWO_STEPS, ONE_STEP    mantissas and shifts, INT32: a sum is multiplied by mantissa * 2**(shift - 31)
    DOUBLE_PRODUCTS        FP64 multipliers

The multipliers of sums that are scaled otherwise are 1, so that sums up to 2**24 pass as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.kernels import Array, Binding
from dryfit_cpu import codes
from dryfit_cpu.descriptors import ChannelScales
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

    No scaled sum with its bias exceeds `largest_scaled`, without its sign. A residual that is missing counts as INT8.

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


MANTISSAS, SHIFTS, DOUBLES = "mantissas", "shifts", "doubles"
"""Names of packed weights."""


@frozen(eq=False)
class MethodNumbers:
    """The numbers of all output channels.

    Attributes:
        scaling: code of how sums are scaled.
        multipliers: FP32 `[K]`.
        fixed_point: name of packed weights to `[K]`: what is there in the multipliers' place.
        real_bias: FP32 `[K]`, added to scaled sums; None for none.
    """

    scaling: int
    multipliers: Array
    fixed_point: Mapping[str, Array]
    real_bias: Array | None = None


@frozen(eq=False)
class PackedFixedPoint:
    """Packed numbers that scale sums in the place of FP32 multipliers.

    Attributes:
        mantissas: INT32; None where there are FP64 multipliers.
        shifts: INT32, or the FP64 multipliers.
    """

    mantissas: Array | None
    shifts: Array

    @classmethod
    def of(cls, binding: Binding, shape: Sequence[int], channels: int | None = None) -> PackedFixedPoint | None:
        """Those of a binding; None where it has none.

        Arrays of this shape are filled up with zeros to so many channels, where that is given.
        """

        def packed(name: str, dtype: DataType) -> Array:
            values = binding.weight(name, shape, dtype)
            return values if channels is None else np.pad(values, (0, channels - len(values)))

        if DOUBLES in binding.weights:
            return cls(None, packed(DOUBLES, DataType.DOUBLE))
        if MANTISSAS not in binding.weights:
            return None
        return cls(packed(MANTISSAS, DataType.INT32), packed(SHIFTS, DataType.INT32))


def channel_scales(
    multipliers: Array,
    fixed: PackedFixedPoint | None,
    scaling: int,
    starts: Array | None = None,
    bias: Array | None = None,
) -> ChannelScales:
    """What native functions are told about the channels of sums.

    FP32 multipliers scale, or what is `fixed` in their place. Sums begin at `starts` (INT32), where the function reads
    it; `bias` (FP32) is added to scaled sums.
    """
    begin, added = (0 if array is None else array.ctypes.data for array in (starts, bias))
    if fixed is None:
        return ChannelScales(begin, multipliers.ctypes.data, 0, codes.REAL_PRODUCTS, added)
    if (fixed.mantissas is None) != (scaling == codes.DOUBLE_PRODUCTS):
        raise EngineFileError(
            "The packed weights do not have the scales that the quantize method requires",
            found=MANTISSAS if fixed.mantissas is not None else DOUBLES,
            remedy="Build the engine again",
        )
    mantissas = multipliers if fixed.mantissas is None else fixed.mantissas
    return ChannelScales(begin, mantissas.ctypes.data, fixed.shifts.ctypes.data, scaling, added)

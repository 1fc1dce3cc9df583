"""The numbers by which a quantize method scales sums, as native functions read them.

FP32 multipliers, as devices have them; or in their place, by the method's record:

    TWO_STEPS, ONE_STEP    mantissas and shifts, INT32: a sum is multiplied by mantissa * 2**(shift - 31)
    DOUBLE_PRODUCTS        FP64 multipliers

The multipliers of sums that are scaled otherwise are 1, so that sums up to 2**24 pass as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.target.kernels import Array, Binding
from dryfit_cpu import codes
from dryfit_cpu.descriptors import ChannelScales

MANTISSAS, SHIFTS, DOUBLES = "mantissas", "shifts", "doubles"
"""Names of packed weights."""


@attrs.frozen(eq=False)
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


@attrs.frozen(eq=False)
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

        Args:
            binding: of a group with packed weights.
            shape: of each array.
            channels: to which they are filled up with zeros; None: not.
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

    Args:
        multipliers: FP32.
        fixed: what scales in their place; None where they do.
        scaling: code of how sums are scaled, by the method.
        starts: INT32, what sums begin at; None where the function does not read it.
        bias: FP32, what is added to scaled sums; None for nothing.
    """
    begin, added = (0 if array is None else array.ctypes.data for array in (starts, bias))
    if fixed is None:
        return ChannelScales(begin, multipliers.ctypes.data, 0, codes.REAL_PRODUCTS, added)
    if (fixed.mantissas is None) != (scaling == codes.DOUBLE_PRODUCTS):
        raise EngineFileError(
            "The packed weights scale sums in another way than the quantize method",
            found=MANTISSAS if fixed.mantissas is not None else DOUBLES,
            remedy="Build the engine again",
        )
    mantissas = multipliers if fixed.mantissas is None else fixed.mantissas
    return ChannelScales(begin, mantissas.ctypes.data, fixed.shifts.ctypes.data, scaling, added)

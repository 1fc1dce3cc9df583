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
class FixedPoint:
    """Packed numbers that scale sums in the place of FP32 multipliers.

    Attributes:
        mantissas: INT32; None where there are FP64 multipliers.
        shifts: INT32, or the FP64 multipliers.
    """

    mantissas: Array | None
    shifts: Array

    @classmethod
    def of(cls, binding: Binding, shape: Sequence[int], channels: int | None = None) -> FixedPoint | None:
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


def scale_fields(multipliers: Array, fixed: FixedPoint | None, scaling: int) -> dict[str, int]:
    """The fields by which native functions find what scales sums."""
    if fixed is None:
        return {"multipliers": multipliers.ctypes.data, "shifts": 0, "scaling": codes.REAL_PRODUCTS}
    if (fixed.mantissas is None) != (scaling == codes.DOUBLE_PRODUCTS):
        raise EngineFileError(
            "The packed weights scale sums in another way than the quantize method",
            found=MANTISSAS if fixed.mantissas is not None else DOUBLES,
            remedy="Build the engine again",
        )
    mantissas = multipliers if fixed.mantissas is None else fixed.mantissas
    return {"multipliers": mantissas.ctypes.data, "shifts": fixed.shifts.ctypes.data, "scaling": scaling}

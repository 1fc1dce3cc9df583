"""How a device rounds, saturates, accumulates and rescales."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode


@attrs.frozen
class Arithmetic:
    """The arithmetic of one computation type on a device.

    Attributes:
        precision: the computation type.
        accumulator: the type sums are kept in.
        rounds: where results are rounded to the tensor's type: `group` (once, at the end of a fused group) or `layer`.
        rounding: the rounding mode.
        fidelity: `documented`, `inferred` or `confirmed`.
        source: document and section, or "our choice, because ...".
        rounding_since: software version to the rounding mode from that version on, where it changed; the earliest entry
            holds before itself too.
    """

    precision: DataType
    accumulator: DataType
    rounds: str
    rounding: RoundingMode
    fidelity: str
    source: str
    rounding_since: Mapping[tuple[int, ...], RoundingMode] = attrs.field(factory=dict)

    def rounding_for(self, software: tuple[int, ...]) -> RoundingMode:
        """The rounding mode of a software version; `rounding` for the empty version."""
        if not self.rounding_since or not software:
            return self.rounding
        ordered = sorted(self.rounding_since.items())
        return ([mode for since, mode in ordered if software >= since] or [ordered[0][1]])[-1]


def integer_rounding(arithmetic: Mapping[DataType, Arithmetic], software: tuple[int, ...]) -> RoundingMode:
    """How a device finds whole numbers where it computes in INT8.

    Half to even, as ONNX defines quantization, where nothing is declared of INT8.

    Args:
        arithmetic: of the device, by computation type.
        software: version that it runs; empty for the newest.
    """
    record = arithmetic.get(DataType.INT8)
    return RoundingMode.HALF_TO_EVEN if record is None else record.rounding_for(software)

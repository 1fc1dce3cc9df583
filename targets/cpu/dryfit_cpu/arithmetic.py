"""Arithmetic of the CPU target, and its tensor formats: one, for every data type."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.formats import LINEAR

_FLOATING = "our choice: FP32 sums (FP64 for FP64), one rounding per layer group; the processor's IEEE 754 rounding"

_INTEGER = "our choice: exact INT32 sums, scaled in FP32, rounded like ONNX's QuantizeLinear"

ARITHMETIC = {
    **{
        precision: Arithmetic(
            precision=precision,
            accumulator=DataType.DOUBLE if precision is DataType.DOUBLE else DataType.FLOAT,
            rounds="group",
            rounding=RoundingMode.HALF_TO_EVEN,
            fidelity="confirmed",
            source=_FLOATING,
        )
        for precision in (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE)
    },
    DataType.INT8: Arithmetic(
        precision=DataType.INT8,
        accumulator=DataType.INT32,
        rounds="group",
        rounding=RoundingMode.HALF_TO_EVEN,
        fidelity="confirmed",
        source=_INTEGER,
    ),
}


FORMATS = dict.fromkeys(DataType, (LINEAR,))

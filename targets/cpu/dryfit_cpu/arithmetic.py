"""Arithmetic of the CPU target, and its tensor formats: one, for every data type."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.formats import LINEAR

_FLOATING = "our choice: sums in FP32 (FP64 for FP64), one rounding a layer group; IEEE 754 rounding of the processor"

_INTEGER = "our choice: exact sums in INT32, scaled in FP32, rounded as ONNX's QuantizeLinear does"

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

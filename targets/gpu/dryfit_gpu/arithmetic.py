"""Arithmetic of the GPU as far as it is known.

Which sums a GPU kernel keeps in FP16 is chosen by TensorRT at build time and not published; FP32 accumulation with one
rounding at the end of a fused group is what its convolution and matrix kernels are described as doing by default.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic

_FLOATING = "our choice: FP32 accumulation, one rounding per fused group; TensorRT selects its kernels at build time"
_INTEGER = (
    "TensorRT 10 developer guide, Quantized Types Rounding Modes: GPU, compute kernels (ties to even), weights by "
    "dynamic range or calibration (ties to positive infinity); TensorRT 8 agrees"
)

ARITHMETIC = {
    **{
        precision: Arithmetic(
            precision=precision,
            accumulator=DataType.FLOAT,
            rounds="group",
            rounding=RoundingMode.HALF_TO_EVEN,
            fidelity="inferred",
            source=_FLOATING,
        )
        for precision in (DataType.FLOAT, DataType.HALF, DataType.BF16)
    },
    DataType.INT8: Arithmetic(
        precision=DataType.INT8,
        accumulator=DataType.INT32,
        rounds="group",
        rounding=RoundingMode.HALF_TO_EVEN,
        fidelity="documented",
        source=_INTEGER,
        weight_rounding=RoundingMode.HALF_UP,
    ),
}

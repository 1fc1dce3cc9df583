"""Arithmetic of the DLA.

FP16: that sums are kept in FP32 and rounded once, at the end of a fused group, is our reading: the device's internal
pipe after the multipliers is described as 19 bits wide on Orin, and no document gives the accumulator of FP16
convolutions. INT8: the documents state the rounding, and disagree between versions. Sums of products are exact in
INT32, weights have a scale for each output channel, and the results of a fused group are rounded once. Sigmoid, TanH,
LRN, Softmax and some resizes that a build asks for in INT8 are computed in FP16: the notes of `dryfit_dla.limits` say
which, with their sources.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Approximation, Arithmetic

ARITHMETIC = {
    DataType.HALF: Arithmetic(
        precision=DataType.HALF,
        accumulator=DataType.FLOAT,
        rounds="group",
        rounding=RoundingMode.HALF_TO_EVEN,
        fidelity="inferred",
        source="our choice: FP32 sums, one rounding per fused group; the FP16 accumulator is not published",
        approximations=[
            Approximation(
                kernel="dla.optimized_softmax",
                text="Softmax where C, H or W, other than its axis, exceeds 1: exp by table lookup, sums in FP16",
                fidelity="inferred",
                source=(
                    "TensorRT 10 developer guide, DLA supported layers, Softmax: the optimized mode is approximate, "
                    "and its error grows as the axis approaches 1024; the method is not published and is our choice"
                ),
            )
        ],
    ),
    DataType.INT8: Arithmetic(
        precision=DataType.INT8,
        accumulator=DataType.INT32,
        rounds="group",
        rounding=RoundingMode.HALF_TO_EVEN,
        fidelity="documented",
        source=(
            "TensorRT 10 developer guide, Quantized Types Rounding Modes: DLA (ties to even); "
            "TensorRT 8 developer guide, INT8 Rounding Modes: DLA (ties away from zero). Weights: ties away from zero "
            "in the guides of 8 and 10.0; ties to even in that of 10.8, which adds FP4"
        ),
        rounding_since={(8,): RoundingMode.HALF_AWAY_FROM_ZERO, (10,): RoundingMode.HALF_TO_EVEN},
        weight_rounding=RoundingMode.HALF_TO_EVEN,
        weight_rounding_since={(8,): RoundingMode.HALF_AWAY_FROM_ZERO, (10, 8): RoundingMode.HALF_TO_EVEN},
    ),
}

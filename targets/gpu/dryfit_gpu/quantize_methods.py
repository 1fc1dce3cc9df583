"""Quantize methods of the GPU: its compute kernels, and the builder that quantizes weights by calibrated ranges."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.conditions import SYMMETRIC
from dryfit.quantization.methods.definitions.real_numbers import calibrated_weights
from dryfit.quantization.methods.devices import device_method, device_requantization
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod
from dryfit.quantization.rounding import required_mode
from dryfit_gpu.arithmetic import ARITHMETIC

_INT8 = ARITHMETIC[DataType.INT8]
_WEIGHT_ROUNDING = required_mode(_INT8.weight_rounding_for(()))

GPU = device_method("gpu", "TensorRT's compute kernels on the GPU", required_mode(_INT8.rounding_for(())), _INT8.source)
"""INT32 sums, everything else in FP32, one rounding to even."""

CALIBRATED_WEIGHTS = QuantizeMethod(
    name="calibrated-weights",
    title="TensorRT's builder on the GPU, quantizing weights by dynamic range or calibration",
    rules=(
        MethodRule(
            operator="quantize",
            definition=calibrated_weights,
            requantization=device_requantization(_WEIGHT_ROUNDING),
            types=frozenset({DataType.INT8}),
            requirements=(SYMMETRIC,),
            formula=f"clamp(round_{_WEIGHT_ROUNDING}(f32(x / sy)), -127, 127)",
            fidelity=_INT8.fidelity,
            source=_INT8.source,
        ),
    ),
    source=_INT8.source,
)
"""INT8 weights from -127 to 127, ties towards positive infinity."""

"""The method `tflite-ruy`: TensorFlow Lite, optimized kernels without a delegate."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import tflite as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import tflite_optimized as weighted

METHOD = QuantizeMethod(
    name="tflite-ruy",
    title="TensorFlow Lite, optimized kernels without a delegate",
    library="ai-edge-litert 2.3.0",
    rules=(*weighted.TFLITE_RUY, *unweighted.TFLITE_RUY),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""The optimized kernels without a delegate, on x86: vectors round half up."""

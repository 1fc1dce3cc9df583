"""The method `tflite-xnnpack`: TensorFlow Lite, default delegate XNNPACK."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import xnnpack as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import xnnpack as weighted

METHOD = QuantizeMethod(
    name="tflite-xnnpack",
    title="TensorFlow Lite, default delegate XNNPACK",
    library="ai-edge-litert 2.3.0",
    rules=(*weighted.TFLITE_XNNPACK, *unweighted.TFLITE_XNNPACK),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""What the default resolver runs: XNNPACK, requantization in FP32."""

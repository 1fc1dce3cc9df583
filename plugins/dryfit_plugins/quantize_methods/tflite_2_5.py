"""The method `tflite-2.5`: TensorFlow Lite of TensorFlow 2.5, default kernels."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import tflite as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import tflite_optimized as weighted

METHOD = QuantizeMethod(
    name="tflite-2.5",
    title="TensorFlow Lite of TensorFlow 2.5, default kernels",
    library="tensorflow-cpu 2.5.0",
    rules=(*weighted.TFLITE_2_5, *unweighted.TFLITE_2_5),
    source="measured against tensorflow-cpu 2.5.0 on x86-64",
)
"""The default kernels of TensorFlow 2.5 on x86: one rounding in convolutions."""

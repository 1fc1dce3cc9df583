"""The method `tflite`: TensorFlow Lite, reference kernels of LiteRT."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import tflite as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import tflite as weighted

METHOD = QuantizeMethod(
    name="tflite",
    title="TensorFlow Lite, reference kernels of LiteRT",
    library="ai-edge-litert 2.3.0",
    rules=(*weighted.TFLITE, *unweighted.TFLITE),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""The reference kernels: portable, the same on every machine."""

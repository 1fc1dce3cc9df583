"""The method `tflite-2.14`: TensorFlow Lite, reference kernels before LiteRT."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import tflite as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import tflite as weighted

METHOD = QuantizeMethod(
    name="tflite-2.14",
    title="TensorFlow Lite, reference kernels before LiteRT",
    library="tflite-runtime 2.14.0",
    rules=(*weighted.TFLITE_2_14, *unweighted.TFLITE_2_14),
    source="measured against tflite-runtime 2.14.0 on x86-64",
)
"""As `tflite`, but inner products in fixed point."""

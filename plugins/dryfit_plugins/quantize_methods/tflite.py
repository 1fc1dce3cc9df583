"""The methods `tflite`, `tflite-2.14`, `tflite-ruy` and `tflite-2.5`: TensorFlow Lite without a delegate."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods import tflite_elementwise as elementwise
from dryfit_plugins.quantize_methods import tflite_sixteen_bits as sixteen_bits
from dryfit_plugins.quantize_methods import tflite_unweighted as unweighted
from dryfit_plugins.quantize_methods import tflite_weighted as weighted

METHOD = QuantizeMethod(
    name="tflite",
    title="TensorFlow Lite, reference kernels of LiteRT",
    library="ai-edge-litert 2.3.0",
    rules=(*weighted.TFLITE, *unweighted.TFLITE, *elementwise.TFLITE, *sixteen_bits.TFLITE),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""The reference kernels: portable, the same on every machine."""


METHOD_2_14 = QuantizeMethod(
    name="tflite-2.14",
    title="TensorFlow Lite, reference kernels before LiteRT",
    library="tflite-runtime 2.14.0",
    rules=(*weighted.TFLITE_2_14, *unweighted.TFLITE_2_14),
    source="measured against tflite-runtime 2.14.0 on x86-64",
)
"""As `tflite`, but inner products in fixed point."""


METHOD_RUY = QuantizeMethod(
    name="tflite-ruy",
    title="TensorFlow Lite, optimized kernels without a delegate",
    library="ai-edge-litert 2.3.0",
    rules=(*weighted.TFLITE_RUY, *unweighted.TFLITE_RUY),
    source="measured against ai-edge-litert 2.3.0 on x86-64",
)
"""The optimized kernels without a delegate, on x86: vectors round half up."""


METHOD_2_5 = QuantizeMethod(
    name="tflite-2.5",
    title="TensorFlow Lite of TensorFlow 2.5, default kernels",
    library="tensorflow-cpu 2.5.0",
    rules=(*weighted.TFLITE_2_5, *unweighted.TFLITE_2_5),
    source="measured against tensorflow-cpu 2.5.0 on x86-64",
)
"""The default kernels of TensorFlow 2.5 on x86: one rounding in convolutions."""

"""The method `onnx`: ONNX Runtime, CPU."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.unweighted import onnx as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import onnx as weighted

METHOD = QuantizeMethod(
    name="onnx",
    title="ONNX Runtime, CPU",
    library="onnxruntime 1.31.1",
    rules=(*weighted.ONNX, *unweighted.ONNX),
    source="measured against onnxruntime 1.31.1 on x86-64",
)
"""QLinear operators and fused Q/DQ groups on x86: requantization in FP32."""

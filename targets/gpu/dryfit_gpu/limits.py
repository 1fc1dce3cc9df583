"""Limits of the GPU: every layer that TensorRT can say, in the data types that it has."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import check
from dryfit.target.limits import Finding, LimitTable, Question, rule, rules
from dryfit_gpu.quantization import QUANTIZATION


@check("data type")
def device_types_only(question: Question) -> Finding | None:
    """Tensors are of a type that TensorRT has."""
    foreign = [
        f"{tensor.name!r}: {question.spec(tensor).dtype.name}"
        for tensor in (*question.inputs, *question.outputs)
        if not question.spec(tensor).dtype.is_device_type
    ]
    return Finding(", ".join(foreign), "TensorRT's twelve data types") if foreign else None


@check("parameters")
def nothing_host_only(question: Question) -> Finding | None:
    """The layer uses nothing that exists only in ONNX and on the host."""
    layer: Any = question.layer
    operation: Any = getattr(layer, "op", None)
    if getattr(operation, "is_host_only", False):
        return Finding(operation.name, "TensorRT's operations", parameter="op")
    if getattr(layer, "is_host_only", False):
        if layer.kind in ("quantize", "dequantize"):
            return Finding(f"a {layer.kind} with {layer.host_only_reason}", _SYMMETRIC, remedy=_QUANTIZE_AGAIN)
        if layer.kind == "quantized_operator":
            return Finding(f"{layer.computes} by {layer.host_only_reason}", "TensorRT's own arithmetic", remedy=_METHOD)
        return Finding(f"a {layer.kind} with options that TensorRT does not have", "TensorRT's own")
    return None


_ON_THE_HOST = 'Such a layer runs on the CPU: allow it with --fallback CPU, or config.allow_fallback("CPU")'
_SYMMETRIC = "symmetric INT8, FP8, INT4 or FP4 by scales of a tensor, a channel or a one-dimensional block"
_METHOD = f"Quantize methods are computed on the host. {_ON_THE_HOST}; or leave the method out"
_QUANTIZE_AGAIN = f"Quantize the model so, with zero points of 0. {_ON_THE_HOST}"

_EVERY_LAYER = rules(
    (),
    rule(
        "types",
        device_types_only,
        source="TensorRT DataType",
        remedy=f"{_ON_THE_HOST}; a cast to FLOAT, HALF, INT32 or INT64 lets the GPU run it",
    ),
    rule(
        "parameters",
        nothing_host_only,
        source="TensorRT INetworkDefinition: the layer's own parameters",
        remedy=_ON_THE_HOST,
    ),
)

LIMITS = LimitTable("GPU", [*_EVERY_LAYER, *QUANTIZATION], source="TensorRT INetworkDefinition")

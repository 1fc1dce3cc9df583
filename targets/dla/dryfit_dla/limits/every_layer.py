"""What holds for every layer on the DLA."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.checks import between, check, each
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import GENERAL, INT8, REPORTS, RUNNING
from dryfit_dla.quantities import (
    activations,
    is_comparison,
    range_of,
)

SUPPORTED = frozenset(
    {
        "activation",
        "cast",
        "concatenation",
        "convolution",
        "deconvolution",
        "elementwise",
        "fully_connected",
        "identity",
        "lrn",
        "matrix_multiply",
        "parametric_relu",
        "pooling",
        "reduce",
        "resize",
        "scale",
        "shuffle",
        "slice",
        "softmax",
        "unary",
    }
)
"""A cast or an identity only after a comparison: see `dla.cast.follows_comparison`."""

_NEVER = "TensorRT does not offer this layer on the DLA"
_CONTROL = "the DLA does not branch or repeat: it runs a fixed sequence of layers"
_DATA = "the DLA cannot move data by index (TensorRT headers); a 1x1 convolution can select channels"
_QUANTIZATION = (
    "explicit quantization (Q/DQ) is not supported on the DLA: set dynamic ranges instead "
    "(`dryfit translate MODEL --to implicit` writes them if zero points are 0)"
)

_PARTS = "a build decomposes it into layers of other kinds, and each of them runs on the DLA if its own rules allow it"

UNSUPPORTED = {
    "assertion": "the host checks conditions, after the run",
    "attention": _PARTS,
    "conditional": _CONTROL,
    "constant": (
        "the DLA does not run constants as layers: a constant becomes an operand of the layer that reads it, "
        "or stays on the fallback device"
    ),
    "cumulative": _NEVER,
    "dequantize": _QUANTIZATION,
    "dynamic_quantize": _QUANTIZATION,
    "einsum": _NEVER,
    "fill": _NEVER,
    "gather": _DATA,
    "grid_sample": _NEVER,
    "histogram": "calibration collects histograms on the host",
    "kv_cache_update": _PARTS,
    "loop": f"{_CONTROL}; a loop with a small and constant number of iterations is unrolled",
    "nms": _NEVER,
    "non_zero": _NEVER,
    "normalization": f"{_NEVER}; a batch normalization becomes a scale layer, which the DLA supports",
    "one_hot": _NEVER,
    "padding": f"{_NEVER}; convolution and pooling layers have padding of their own",
    "plugin": "plugins are not supported on the DLA",
    "quantize": _QUANTIZATION,
    "quantized_operator": (
        "a quantize method reproduces the arithmetic of a library or of another device, and runs on the host: let the "
        "layer run on the CPU, or remove its quantize method"
    ),
    "ragged_softmax": _PARTS,
    "reverse_sequence": _NEVER,
    "rotary_embedding": _PARTS,
    "scatter": _DATA,
    "select": f"{_NEVER}; rewrite a constant mask as products and a sum",
    "shape": "shapes are computed at build time or on the host",
    "squeeze": f"{_NEVER}, whose tensors have rank 4",
    "top_k": _NEVER,
    "unsqueeze": f"{_NEVER}, whose tensors have rank 4",
    "vector_function": _NEVER,
}


_FLOATING = (DataType.FLOAT, DataType.HALF, DataType.INT8)


@check("data type")
def tensors_are_floating_or_int8(question: Question) -> Finding | None:
    """Tensors must be FP16, INT8 or FP32 (converted to the layer's precision)."""
    foreign = []
    for tensor in activations(question):
        dtype = question.spec(tensor).dtype
        between_comparison_and_cast = dtype is DataType.BOOL and is_comparison(tensor.producer)
        if dtype not in _FLOATING and not between_comparison_and_cast:
            foreign.append(f"{tensor.name!r}: {dtype.text}")
    return Finding(", ".join(foreign), "FP32, FP16 or INT8") if foreign else None


@check("output type")
def asked_outputs_are_fp16_or_int8(question: Question) -> Finding | None:
    """A requested output type must be FP16 or INT8."""
    if is_comparison(question.layer):
        return None
    asked = question.layer.output_types
    foreign = [
        f"output {index}: {dtype.text}"
        for index, dtype in sorted(asked.items())
        if dtype not in (DataType.HALF, DataType.INT8)
    ]
    return Finding(", ".join(foreign), "FP16 or INT8") if foreign else None


@check("shape")
def dimensions_are_static(question: Question) -> Finding | None:
    """All dimensions must be static (in a profile: minimum = optimum = maximum)."""
    dynamic = [
        f"{tensor.name!r}: {question.spec(tensor).shape}"
        for tensor in activations(question)
        if not question.spec(tensor).is_static
    ]
    return Finding(", ".join(dynamic), "static dimensions") if dynamic else None


@check("number of DLA cores")
def platform_has_a_core(question: Question) -> Finding | None:
    """The platform must have a DLA."""
    return None if question.cores > 0 else Finding(f"0 on {question.platform}", "at least 1")


@check("engine capability")
def capability_allows_dla(question: Question) -> Finding | None:
    """The engine must not be a safety engine."""
    capability = question.options.get("engine_capability", "STANDARD")
    return Finding("SAFETY", "STANDARD, DLA_STANDALONE") if capability == "SAFETY" else None


@check("dynamic range")
def int8_tensors_have_scales(question: Question) -> Finding | None:
    """Every tensor of an INT8 layer must have a scale (except at a cast after a comparison, which outputs 0 and 1)."""
    if question.options.get("assume_scales") or question.layer.kind in ("cast", "identity"):
        return None
    lacking = [
        repr(tensor.name)
        for tensor in activations(question)
        if range_of(tensor) is None
        and not question.is_constant(tensor)
        and question.spec(tensor).dtype not in (DataType.INT8, DataType.BOOL)
    ]
    return Finding(f"none for {', '.join(lacking)}", "one for every tensor") if lacking else None


EVERY_LAYER = rules(
    (),
    rule(
        "platform.cores",
        platform_has_a_core,
        source="product pages of NVIDIA Jetson",
        remedy="Choose a platform that has a DLA",
    ),
    rule(
        "types",
        tensors_are_floating_or_int8,
        source=RUNNING,
        remedy="Cast integer and BOOL tensors before this layer, or let it run on a fallback device",
    ),
    rule(
        "output_types",
        asked_outputs_are_fp16_or_int8,
        source=RUNNING,
        remedy="Call reset_output_type on the layer",
    ),
    rule(
        "int8.scales",
        int8_tensors_have_scales,
        source="TensorRT 8 developer guide, Working with INT8: a layer without ranges runs in another precision",
        precisions=INT8,
        remedy="Calibrate, or call set_dynamic_range on these tensors",
    ),
    rule(
        "dynamic_dimensions",
        dimensions_are_static,
        source=GENERAL,
        remedy="Use fixed shapes, or a profile with minimum = optimum = maximum",
    ),
    rule(
        "batch",
        each(quantities.batch, between(1, 4096)),
        source=GENERAL,
        remedy="Split the batch",
    ),
    rule(
        "batch_7",
        each(quantities.batch, between(1, 32)),
        until="7.2",
        source=f"{REPORTS} of TensorRT 7: the largest batch is 32",
        fidelity="inferred",
        remedy="Split the batch, or use software 8.0 or newer",
    ),
    rule(
        "extents",
        each(quantities.extents, between(1, 8192)),
        source=GENERAL,
        remedy="Reshape the long axis into two of C, H and W",
        number="IO-06",
    ),
    rule(
        "engine_capability",
        capability_allows_dla,
        source="TensorRT EngineCapability",
        remedy="Set engine_capability to STANDARD or DLA_STANDALONE",
    ),
)

"""Which layer kinds the DLA has within limits, and which it never has."""

from __future__ import annotations

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
"""A cast or an identity only behind a comparison: see `dla.cast.follows_comparison`."""

_NEVER = "the DLA has no such layer through TensorRT"
_DATA = "the DLA moves no data by index; TensorRT's header says so. A 1x1 convolution can pick channels"
_QUANTIZATION = (
    "explicit quantization is not accepted for DLA layers: state the scales as dynamic ranges instead, which "
    "`dryfit translate MODEL --to implicit` writes where zero points are 0"
)

UNSUPPORTED = {
    "constant": (
        "a constant is no layer of the DLA: it becomes part of the layer that takes it as an operand, "
        "and stays on the fallback device where no layer does"
    ),
    "cumulative": _NEVER,
    "dequantize": _QUANTIZATION,
    "dynamic_quantize": _QUANTIZATION,
    "einsum": _NEVER,
    "fill": _NEVER,
    "gather": _DATA,
    "grid_sample": _NEVER,
    "histogram": "it is the look that calibration takes at values, on the host",
    "nms": _NEVER,
    "non_zero": _NEVER,
    "normalization": f"{_NEVER}; a batch normalization becomes a scale layer, which it has",
    "one_hot": _NEVER,
    "padding": f"{_NEVER}; convolution and pooling pad by themselves",
    "plugin": "plugins never run on the DLA",
    "quantize": _QUANTIZATION,
    "quantized_operator": (
        "a quantize method is the arithmetic of a library or of another device, and is computed on the host: let the "
        "layer run on the CPU, or leave its quantize method out"
    ),
    "ragged_softmax": _NEVER,
    "reverse_sequence": _NEVER,
    "scatter": _DATA,
    "select": f"{_NEVER}; a constant mask can be written as products and a sum",
    "shape": "shapes are computed when the network is built, or on the host",
    "squeeze": f"{_NEVER}: its tensors have rank 4",
    "top_k": _NEVER,
    "unsqueeze": f"{_NEVER}: its tensors have rank 4",
}

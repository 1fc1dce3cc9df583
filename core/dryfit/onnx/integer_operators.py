"""Operators that take and give quantized integers themselves. Models with them are not imported for devices.

TensorRT refuses such models too: it takes quantize and dequantize nodes around operators on real numbers. Into networks
with a quantize method some are imported: see `dryfit.onnx.operators.quantized_integers`.

Source: TensorRT "Working with Quantized Types", ONNX support; ONNX Runtime, contributed operators.
"""

from __future__ import annotations

from dryfit.onnx.problems import NodeRefusedError

INTEGER_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
"""Those of ONNX's own set."""
_MICROSOFT = frozenset(
    {
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "MatMulInteger16",
        "MatMulIntegerToFloat",
        "QAttention",
        "QEmbedLayerNormalization",
        "QGemm",
        "QOrderedAttention",
        "QOrderedGelu",
        "QOrderedLayerNormalization",
        "QOrderedLongformerAttention",
        "QOrderedMatMul",
    }
)
_PREFIX = "QLinear"
"""How ONNX Runtime names all other such operators: `QLinearAdd`, `QLinearAveragePool`, ..."""


def integer_operator(op_type: str, domain: str) -> NodeRefusedError | None:
    """The refusal of an operator that computes on quantized integers; None for any other."""
    is_microsoft = domain == "com.microsoft" and (op_type in _MICROSOFT or op_type.startswith(_PREFIX))
    if not is_microsoft and not (domain == "" and op_type in INTEGER_OPERATORS):
        return None
    return NodeRefusedError(
        "The operator computes on quantized integers itself, which no device takes from ONNX",
        found=f"{domain or 'ai.onnx'} {op_type}",
        allowed="QuantizeLinear and DequantizeLinear around operators on real numbers",
        remedy="Export or quantize the model again in Q/DQ form (ONNX Runtime's quantizer: quant_format=QuantFormat.QDQ"
        "; Model Optimizer and PyTorch write it), or compute it on this machine in a library's own integers: "
        "--quantize-method NAME, or network.quantize_method before parsing, for the operators that methods have",
    )

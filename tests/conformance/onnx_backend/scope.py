"""Which operators of ONNX's backend suite are in scope, by category; their base cases are the count of the bar."""

from __future__ import annotations

CATEGORIES = {
    "quantize": """
        QuantizeLinear DequantizeLinear DynamicQuantizeLinear
    """,
    "convolution": """
        Conv ConvTranspose DeformConv
    """,
    "pooling": """
        AveragePool MaxPool GlobalAveragePool GlobalMaxPool LpPool GlobalLpPool
    """,
    "resize": """
        Resize Upsample GridSample
    """,
    "reduce, arg, top-k": """
        ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
        ReduceSumSquare ArgMax ArgMin TopK CumSum CumProd
    """,
    "softmax": """
        Softmax LogSoftmax Hardmax
    """,
    "activation": """
        Relu LeakyRelu PRelu ThresholdedRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Mish
        Gelu Clip Swish Shrink SwiGLU
    """,
    "elementwise, comparison, logic": """
        Add Sub Mul Div Pow Mod Max Min Sum Mean And Or Xor Not Equal Greater Less GreaterOrEqual LessOrEqual Where
        BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
    """,
    "unary": """
        Abs Neg Exp Log Sqrt Reciprocal Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Floor Ceil Round
        Sign IsNaN IsInf Det
    """,
    "matrix multiply": """
        MatMul Gemm Einsum
    """,
    "normalization": """
        BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization LRN
        LpNormalization MeanVarianceNormalization
    """,
    "shape and data movement": """
        Reshape Transpose Concat Split Slice Squeeze Unsqueeze Flatten Expand Tile Gather GatherElements GatherND
        ScatterElements ScatterND Scatter Pad CenterCropPad DepthToSpace SpaceToDepth Shape Size Constant
        ConstantOfShape Range NonZero OneHot Identity Trilu EyeLike ReverseSequence Compress Unique
    """,
    "attention": """
        Attention RotaryEmbedding TensorScatter
    """,
    "cast": """
        Cast CastLike BitCast
    """,
    "detection": """
        NonMaxSuppression RoiAlign
    """,
    "recurrent": """
        RNN GRU LSTM
    """,
    "control flow": """
        If Loop Scan
    """,
}

OPERATORS = frozenset(operator for operators in CATEGORIES.values() for operator in operators.split())

BASE_CASES_OF_ONNX_1_23 = 1184
"""Base cases of these operators in the suite of onnx 1.23; other releases have other numbers."""

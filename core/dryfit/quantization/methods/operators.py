"""The operators that quantize methods are about, by name, and which layers they are."""

from __future__ import annotations

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.normalization import VectorFunction, VectorFunctionLayer
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import InterpolationMode, Resize
from dryfit.network.layers.window_layer import Pooling, PoolingType

OPERATORS = {
    "average_pool": "average pooling over a window",
    "global_average_pool": "mean over the spatial axes",
    "bias_add": "sum with a constant that differs by channel",
    "comparison": "equal, greater or less, of two tensors: BOOL",
    "concat": "concatenation along an axis",
    "convolution": "convolution: groups, depthwise, pointwise",
    "deconvolution": "transposed convolution",
    "eltwise_sum": "sum of two tensors",
    "eltwise_difference": "difference of two tensors",
    "eltwise_quotient": "quotient of two tensors",
    "eltwise_squared_difference": "square of the difference of two tensors",
    "eltwise_product": "product of two tensors",
    "eltwise_extreme": "larger or smaller of two tensors",
    "function": "a function of one number: TANH, GELU, HARD_SWISH, EXP, LOG, SQRT, RSQRT, ABS, NEG",
    "l2_normalization": "vectors along an axis over their length",
    "log_softmax": "logarithm of exp(x) over its sum along an axis",
    "inner_product": "fully connected, matrix product with a constant",
    "leaky_relu": "x, or alpha * x below zero",
    "parametric_relu": "x, or slope * x below zero, with slopes from a tensor",
    "reduce": "sum, largest or smallest element over axes",
    "quantize": "floating-point values to codes",
    "dequantize": "codes to floating-point values",
    "requantize": "codes to codes of another scale, zero point or type",
    "relu": "max(x, 0), and clipped ones",
    "resize_bilinear": "bilinear interpolation of images",
    "sigmoid": "1 / (1 + exp(-x))",
    "softmax": "exp(x) over its sum along an axis",
}
"""Name to what it is."""

_BY_KIND = {
    "concatenation": "concat",
    "convolution": "convolution",
    "deconvolution": "deconvolution",
    "fully_connected": "inner_product",
    "matrix_multiply": "inner_product",
    "parametric_relu": "parametric_relu",
    "softmax": "softmax",
    "quantize": "quantize",
    "dequantize": "dequantize",
    "identity": "requantize",
}
_ACTIVATIONS = {
    ActivationType.RELU: "relu",
    ActivationType.CLIP: "relu",
    ActivationType.SIGMOID: "sigmoid",
    ActivationType.LEAKY_RELU: "leaky_relu",
    ActivationType.TANH: "function",
    ActivationType.GELU_ERF: "function",
    ActivationType.GELU_TANH: "function",
    ActivationType.HARD_SWISH: "function",
}
_Unary, _Pair = UnaryOperation, ElementWiseOperation
_FUNCTIONS = frozenset({_Unary.EXP, _Unary.LOG, _Unary.SQRT, _Unary.RSQRT, _Unary.ABS, _Unary.NEG})
_PAIRS = {
    ElementWiseOperation.SUM: "eltwise_sum",
    ElementWiseOperation.SUB: "eltwise_difference",
    ElementWiseOperation.PROD: "eltwise_product",
    ElementWiseOperation.MAX: "eltwise_extreme",
    ElementWiseOperation.MIN: "eltwise_extreme",
    ElementWiseOperation.DIV: "eltwise_quotient",
    ElementWiseOperation.SQUARED_DIFFERENCE: "eltwise_squared_difference",
    **dict.fromkeys((_Pair.EQUAL, _Pair.GREATER, _Pair.GREATER_EQUAL, _Pair.LESS, _Pair.LESS_EQUAL), "comparison"),
}
_VECTORS = {VectorFunction.LOG_SOFTMAX: "log_softmax", VectorFunction.L2_NORMALIZATION: "l2_normalization"}
_REDUCTIONS = {
    ReduceOperation.AVG: "global_average_pool",
    ReduceOperation.SUM: "reduce",
    ReduceOperation.MAX: "reduce",
    ReduceOperation.MIN: "reduce",
}


def operator_of(layer: Layer) -> str | None:
    """The operator that a layer of real numbers is; None for one that quantize methods do not speak of.

    A sum with a constant along the channels is an `eltwise_sum` here: only its neighbours tell that it is a `bias_add`.
    """
    if isinstance(layer, Activation):
        return _ACTIVATIONS.get(layer.activation_type)
    if isinstance(layer, Elementwise):
        return _PAIRS.get(layer.op)
    if isinstance(layer, Unary):
        return "function" if layer.op in _FUNCTIONS else None
    if isinstance(layer, VectorFunctionLayer):
        return _VECTORS[layer.function]
    if isinstance(layer, Pooling):
        return "average_pool" if layer.pooling_type is PoolingType.AVERAGE else None
    if isinstance(layer, Reduce):
        return _REDUCTIONS.get(layer.op)
    if isinstance(layer, Resize):
        return "resize_bilinear" if layer.resize_mode is InterpolationMode.LINEAR else None
    return _BY_KIND.get(layer.kind)

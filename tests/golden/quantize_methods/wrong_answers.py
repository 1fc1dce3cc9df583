"""For every cell of operator and method one wrong way to compute it: vectors that do not find it out prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.errors import ConfigError
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.shape_inference import axes_in
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.call import OperatorCall
from dryfit.reference.registry import evaluate
from dryfit.testing.operator_cases.habits import family_of
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]


def relu_of_bytes(call: OperatorCall) -> Array:
    """max(x, 0) of the codes, as if every zero point were 0."""
    return np.maximum(call.operand(0).values, 0)


_ONE_ROUNDING = {"dequantize": "tflite-ruy", "global_average_pool": "tflite-ruy"}
_OF_LIBRARY: dict[str, dict[str, str]] = {
    "tflite": {
        **_ONE_ROUNDING,
        "convolution": "tflite-xnnpack",
        "deconvolution": "tflite-xnnpack",
        "eltwise_sum": "tflite-xnnpack",
        "bias_add": "tflite-xnnpack",
    },
    "onnx": {**_ONE_ROUNDING, "average_pool": "caffe2", "convolution": "tflite-xnnpack"},
    "caffe2": {
        **_ONE_ROUNDING,
        "average_pool": "onnx",
        "convolution": "tflite-ruy",
        "deconvolution": "tflite-ruy",
        "eltwise_sum": "onnx",
        "inner_product": "tflite-2.14",
    },
}
_OF_METHOD: dict[str, dict[str, str]] = {
    "tflite": {"convolution": "tflite-ruy", "deconvolution": "tflite-ruy", "inner_product": "tflite-2.14"},
    "tflite-2.14": {"inner_product": "tflite"},
    "tflite-2.5": {"convolution": "tflite-ruy", "dequantize": "tflite", "quantize": "tflite", "softmax": "tflite"},
    "tflite-ruy": {
        "convolution": "tflite",
        "deconvolution": "tflite",
        "dequantize": "tflite",
        "global_average_pool": "tflite",
        "inner_product": "tflite-2.14",
        "requantize": "tflite",
        "resize_bilinear": "tflite",
        "softmax": "tflite",
    },
    "tflite-xnnpack": {
        "bias_add": "tflite",
        "convolution": "tflite",
        "deconvolution": "tflite",
        "eltwise_sum": "tflite",
        "inner_product": "tflite",
        "resize_bilinear": "tflite",
    },
}
_OTHERWISE = {"tflite": "onnx", "onnx": "tflite", "caffe2": "tflite"}


def in_real_numbers(call: OperatorCall) -> Array:
    """The layer of real numbers between a dequantize and a quantize that rounds ties to even."""
    values = [None if one is None else one.distances.astype(np.float32) * one.one_scale for one in call.operands]
    scale, zero_point = call.output_grid
    with np.errstate(all="ignore"):
        real = np.clip(evaluate(call.layer, values)[0], *call.limits)
        codes = np.rint(np.nan_to_num(real / scale)) + zero_point
    return np.asarray(np.clip(codes, *call.code_range).astype(call.to_type.numpy))


def product_of_bytes(call: OperatorCall) -> Array:
    """The product of the codes, as if every zero point were 0."""
    a, b = (one.values.astype(np.float32) * one.one_scale for one in call.present)
    codes = np.rint(a * b / call.output_grid[0])
    return np.asarray(np.clip(codes, *call.code_range).astype(call.to_type.numpy))


def comparison_of_codes(call: OperatorCall) -> Array:
    """The codes compared, as if the operands had one scale and zero point."""
    return np.asarray(evaluate(call.layer, [one.values.astype(np.float32) for one in call.present])[0])


def other_extreme(call: OperatorCall) -> Array:
    """The smaller in the place of the larger, and the other way round."""
    first, second = (one.values for one in call.present)
    is_larger = call.layer.op is ElementWiseOperation.MAX  # type: ignore[attr-defined]
    return (np.minimum if is_larger else np.maximum)(first, second)


def mean_of_extremes(call: OperatorCall) -> Array:
    """The mean over the axes in the place of an extreme."""
    layer = call.layer
    axes, keeps = axes_in(layer.axes), layer.keep_dims  # type: ignore[attr-defined]
    return np.asarray(call.operand(0).values.mean(axis=axes, keepdims=keeps).astype(call.to_type.numpy))


_IN_LITERT = ("tflite", "tflite-xnnpack")
_WRONG_IN_LITERT: dict[str, Callable[[OperatorCall], Array]] = {
    "comparison": comparison_of_codes,
    "eltwise_difference": in_real_numbers,
    "eltwise_extreme": other_extreme,
    "eltwise_product": product_of_bytes,
    "eltwise_quotient": in_real_numbers,
    "eltwise_squared_difference": in_real_numbers,
    "function": in_real_numbers,
    "l2_normalization": in_real_numbers,
    "log_softmax": in_real_numbers,
    "parametric_relu": in_real_numbers,
    "reduce": mean_of_extremes,
}
WRONG_DEFINITIONS: dict[tuple[str, str], Callable[[OperatorCall], Array]] = {
    ("caffe2", "relu"): relu_of_bytes,
    **{(method, operator): wrong for method in _IN_LITERT for operator, wrong in _WRONG_IN_LITERT.items()},
}
"""Where all methods that answer agree."""


def wrong_method(method: str, operator: str) -> str:
    """The method whose arithmetic stands in for a mistake."""
    family = family_of(method)
    return _OF_METHOD.get(method, {}).get(operator) or _OF_LIBRARY[family].get(operator) or _OTHERWISE[family]


def wrong_answers(method: str, operator: str, cases: Sequence[OperatorCase]) -> list[Array | None]:
    """What the wrong way gives; None where it has no answer."""
    if (method, operator) in WRONG_DEFINITIONS:
        return [WRONG_DEFINITIONS[method, operator](case.call) for case in cases]
    other = quantize_method(wrong_method(method, operator))
    return [_answer(other, case) for case in cases]


def _answer(other: Any, case: OperatorCase) -> Array | None:
    try:
        return other.evaluate(attrs.evolve(case.layer, method=other.name), case.inputs)[0]
    except ConfigError:
        return None

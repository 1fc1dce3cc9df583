"""For every cell of operator and method one wrong way to compute it: vectors that do not find it out prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.errors import ConfigError
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.call import OperatorCall
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
WRONG_DEFINITIONS: dict[tuple[str, str], Callable[[OperatorCall], Array]] = {("caffe2", "relu"): relu_of_bytes}
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

"""TensorFlow Lite as an oracle: three resolvers of LiteRT, and older versions in interpreters of their own."""

from __future__ import annotations

import sys

from tests.oracles.oracle import NoCounterpartError, Oracle, Translation
from tests.oracles.tflite_model import tflite_model
from tests.oracles.tflite_operators import AUTHORS
from tests.oracles.worker_process import Job

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.call import OperatorCall
from dryfit.quantization.methods.conditions import has_integer_bias
from dryfit.testing.operator_cases.operator_case import OperatorCase

_VERSIONS = {
    "CONV_2D": (3, 1),
    "DEPTHWISE_CONV_2D": (3, 1),
    "FULLY_CONNECTED": (4, 1),
    "TRANSPOSE_CONV": (3, 3),
    "RESIZE_BILINEAR": (3, 3),
    "HARD_SWISH": (1, 1),
    "NEG": (1, 1),
    "PRELU": (1, 1),
    "RELU_0_TO_1": (1, 1),
    "RELU_N1_TO_1": (1, 1),
    "TANH": (2, 1),
}
"""Operator to its version for INT8 and for UINT8; the others have version 2."""
_GROUPED_VERSION = 6
_OF_INT16 = {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 7, "ADD": 4, "SUB": 4, "MUL": 4, "NEG": 1}
_OF_INT16 |= dict.fromkeys(("AVERAGE_POOL_2D", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "RELU", "LOGISTIC", "TANH"), 3)
_OF_INT16 |= dict.fromkeys(("SOFTMAX", "RSQRT", "ABS", "TRANSPOSE_CONV", "BATCH_MATMUL", "CONCATENATION"), 3)
_OF_INT16 |= dict.fromkeys(("MAXIMUM", "MINIMUM", "RESIZE_BILINEAR"), 4)
_OF_NARROW_BIAS = {"CONV_2D": 8, "DEPTHWISE_CONV_2D": 7, "FULLY_CONNECTED": 11, "TRANSPOSE_CONV": 5}
"""Operator to its version for INT16, and with a bias of INT32; the others have version 2."""


def _version_of_int16(operator: str, call: OperatorCall) -> int:
    """Later versions have a field for the type of a bias."""
    has_narrow_bias = len(call.operands) > 2 and call.operands[2] is not None and has_integer_bias(call)
    versions = _OF_NARROW_BIAS if has_narrow_bias else _OF_INT16
    return versions.get(operator, 2)


class TensorFlowLiteOracle(Oracle):
    """TensorFlow Lite, with a resolver that says which kernels run.

    Attributes:
        resolver: `BUILTIN_REF` (the reference kernels), `AUTO` (XNNPACK where it has the operator) or
            `BUILTIN_WITHOUT_DEFAULT_DELEGATES` (the optimized kernels).
    """

    library = "tensorflow_lite"

    def __init__(self, resolver: str = "BUILTIN_REF", python: str = sys.executable) -> None:
        super().__init__(python)
        self.resolver = resolver

    def translation(self, case: OperatorCase) -> Translation:
        """A model of one operator, and its inputs."""
        call = case.call
        if call.operator not in AUTHORS:
            raise NoCounterpartError(f"TensorFlow Lite has no operator for {call.title}")
        operator, options, inputs, output, restore = AUTHORS[call.operator](call)
        version = _VERSIONS.get(operator, (2, 2))[call.code_type is DataType.UINT8]
        if call.code_type is DataType.INT16 or call.to_type is DataType.INT16:
            version = _version_of_int16(operator, call)
        elif operator == "CONV_2D" and getattr(call.layer, "num_groups", 1) > 1:
            version = _GROUPED_VERSION
        model = tflite_model(operator, version, options, [tensor for tensor, _ in inputs], output)
        values = [values for tensor, values in inputs if tensor.constant is None]
        return Translation(Job({"resolver": self.resolver}, [model, *values]), restore)

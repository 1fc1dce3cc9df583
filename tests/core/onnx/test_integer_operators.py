"""Operators on quantized integers are refused, all of them in one error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from tests.core.onnx.quantized_models import model_of

from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ModelRefusedError

X = np.zeros((1, 2, 4, 4), np.uint8)
CONSTANTS = {"s": np.float32(0.1), "z": np.uint8(0), "w": np.zeros((2, 2, 1, 1), np.uint8)}


def refusal(model) -> ModelRefusedError:
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(model)
    return caught.value


def test_every_such_node_of_a_model_is_named_also_behind_others() -> None:
    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["r"], "between"),
        helper.make_node("QLinearAdd", ["r", "s", "z", "r", "s", "z", "s", "z"], ["b"], "sum", domain="com.microsoft"),
        helper.make_node("QLinearMatMul", ["b", "s", "z", "b", "s", "z", "s", "z"], ["c"], "product"),
        helper.make_node("ConvInteger", ["c", "w"], ["d"], "integers"),
        helper.make_node("MatMulInteger", ["d", "d"], ["y"], "last"),
    ]
    error = refusal(model_of(nodes, {"x": X}, CONSTANTS))
    assert [problem.node_name for problem in error.problems] == ["first", "sum", "product", "integers", "last"]
    for problem in error.problems:
        assert "allowed: QuantizeLinear and DequantizeLinear around floating-point operators" in problem.reason
        assert "quant_format=QuantFormat.QDQ" in problem.reason
        assert str(problem) in str(error)


@pytest.mark.parametrize(
    "operator",
    [
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat",
        "QAttention",
        "QGemm",
        "QLinearAveragePool",
        "QLinearConcat",
        "QLinearGlobalAveragePool",
        "QLinearLeakyRelu",
        "QLinearMul",
        "QLinearSigmoid",
        "QLinearSoftmax",
    ],
)
def test_those_that_onnx_runtime_brings_are_told_as_what_they_are(operator: str) -> None:
    error = refusal(model_of([helper.make_node(operator, ["x"], ["y"], domain="com.microsoft")], {"x": X}, {}))
    assert f"compute on quantized integers are not supported (found com.microsoft {operator};" in str(error)


def test_an_unknown_operator_is_not_taken_for_one() -> None:
    error = refusal(model_of([helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")], {"x": X}, {}))
    assert "integers" not in str(error)

"""ONNX's backend interface."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from tests.core.onnx.models import model, numbers

from dryfit.errors import ExecutionError
from dryfit.onnx import backend
from dryfit.onnx.problems import ModelRefusedError


def test_inputs_may_be_a_list_a_mapping_or_one_array() -> None:
    prepared = backend.prepare(model("y = Neg(x)", inputs="float[3] x", outputs="float[3] y"))
    x = numbers(3)
    for inputs in ([x], {"x": x}, x):
        outputs = prepared.run(inputs)
        np.testing.assert_array_equal(outputs[0], -x)
        np.testing.assert_array_equal(outputs.y, -x)


def test_a_wrong_number_of_inputs_is_refused() -> None:
    prepared = backend.prepare(model("y = Neg(x)", inputs="float[3] x", outputs="float[3] y"))
    with pytest.raises(ExecutionError, match=r"found 2; allowed: x"):
        prepared.run([numbers(3), numbers(3)])


def test_initializers_are_not_fed() -> None:
    parsed = model(
        "y = Add(x, w)", inputs="float[3] x, float[3] w", outputs="float[3] y", weights={"w": np.ones(3, np.float32)}
    )
    np.testing.assert_array_equal(backend.run_model(parsed, [np.zeros(3, np.float32)])[0], np.ones(3, np.float32))


def test_what_a_network_fixes_is_taken_from_the_inputs_of_each_run() -> None:
    parsed = model(
        "b = Neg(a) y = ReduceSum<keepdims=0>(x, b)", inputs="float[2,3] x, int64[1] a", outputs="float[?] y"
    )
    prepared = backend.prepare(parsed)
    x = numbers(2, 3)
    for axis in (1, 2):
        np.testing.assert_allclose(prepared.run([x, np.array([axis])])[0], x.sum(axis=-axis), rtol=1e-6)


def test_a_model_with_another_fault_is_refused_when_it_is_prepared() -> None:
    parsed = model("b = ReduceSum(x, a) y = Nonsense(b)", inputs="float[2,3] x, int64[1] a", outputs="float[?,?] y")
    with pytest.raises(ModelRefusedError):
        backend.prepare(parsed)


def test_one_node_can_be_run() -> None:
    x = numbers(2, 3)
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    np.testing.assert_array_equal(backend.run_node(node, [x])[0], x.max())
    node = helper.make_node("Softmax", ["x"], ["y"])
    old = backend.run_node(node, [numbers(2, 3, 4)], opset_version=11)[0]
    np.testing.assert_allclose(old.sum(axis=(1, 2)), 1, rtol=1e-5)


def test_models_run_on_the_cpu_only() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")

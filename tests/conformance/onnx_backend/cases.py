"""The cases of ONNX's backend suite, and how one is run and compared."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from tests.conformance.onnx_backend.scope import OPERATORS

from dryfit.onnx.backend import DryfitBackend


@functools.cache
def node_cases() -> dict[str, TestCase]:
    """Name to case of the node tests whose operators are all in scope."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite makes its expected values with overflows on purpose
        cases = load_model_tests(kind="node")
    return {case.name: case for case in cases if {node.op_type for node in case.model.graph.node} <= OPERATORS}


def base_cases() -> list[str]:
    """Names of the cases that count: one node each."""
    return [name for name in node_cases() if "_expanded" not in name]


def expanded_cases() -> list[str]:
    """Names of the cases in which an operator is replaced by its function's body."""
    return [name for name in node_cases() if "_expanded" in name]


def sampled_expansions() -> set[str]:
    """Names of a part of these: two of each operator, those with the longest and the shortest names."""
    by_operator: dict[str, list[str]] = {}
    for name in expanded_cases():
        base = node_cases().get(name.partition("_expanded")[0])
        operator = name if base is None else base.model.graph.node[0].op_type
        by_operator.setdefault(operator, []).append(name)
    return {name for names in by_operator.values() for name in (min(names, key=len), max(names, key=len))}


def light_models() -> list[Path]:
    """The whole networks that come with onnx, with constant weights."""
    return sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))


def run_case(case: TestCase) -> None:
    """Run a case; an AssertionError where a result is wrong."""
    prepared = DryfitBackend.prepare(case.model)
    for inputs, expected in case.data_sets:
        outputs = prepared.run([_array(value) for value in inputs])
        compare([_array(value) for value in expected], list(outputs), case.rtol, case.atol)


def compare(expected: list[np.ndarray], outputs: list[np.ndarray], rtol: float, atol: float) -> None:
    """Compare as the suite does."""
    Runner.assert_similar_outputs(expected, outputs, rtol, atol)


def _array(value: object) -> np.ndarray:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value

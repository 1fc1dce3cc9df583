"""The cases of ONNX's backend suite, and how one is run and compared."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnx.reference.ops import op_pool_common
from tests.conformance.onnx_backend.scope import OPERATORS

from dryfit.onnx.backend import DryfitBackend

_POOLED_LATER: dict[int, tuple[np.ndarray, Callable[[], np.ndarray]]] = {}
"""Number of an array that stands for an expected result to the array and to what computes the result."""


@contextlib.contextmanager
def _made_quickly() -> Iterator[None]:
    """Let the suite compute the expected results of poolings when they are compared; they take two thirds of its time.

    The sources of its examples, for ONNX's own pages, take most of the rest, and nobody reads them here.
    """

    def pool_later(
        padded: np.ndarray, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *more: Any, **named: Any
    ) -> np.ndarray:
        result = np.zeros((*x_shape[:2], *out_shape), padded.dtype)
        arguments = (padded, x_shape, kernel, strides, out_shape, *more)
        _POOLED_LATER[id(result)] = result, functools.partial(pool, *arguments, **named)
        return result

    pool = op_pool_common.pool
    with mock.patch.object(op_pool_common, "pool", pool_later), mock.patch.object(base, "process_snippet", mock.Mock()):
        yield


@functools.cache
def node_cases() -> dict[str, TestCase]:
    """Name to case of the node tests whose operators are all in scope."""
    with _made_quickly(), warnings.catch_warnings():
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
    stands_for = _POOLED_LATER.get(id(value))
    if stands_for is not None:
        return stands_for[1]()
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value

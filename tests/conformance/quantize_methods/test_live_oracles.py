"""Quantize methods against the real libraries, asked now: other cases in every respect but the seed's than golden ones.

Unary operators over all 256 codes, sums over all 65,536 pairs, weighted operators with sums that seek ties. A library
that is not there is a visible skip.
"""

from __future__ import annotations

import functools
from collections import defaultdict

import numpy as np
import pytest
from tests.oracles.oracle import Refusal
from tests.oracles.table import ORACLES, oracle_of_method

from dryfit.errors import ConfigError
from dryfit.network.layers.movement import Identity
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.testing.operator_cases.case_table import DRAWN, further_cases, trial_cases
from dryfit.testing.operator_cases.operator_case import case_of
from dryfit_cpu.compiler.tier import current_tier

SEED = 31
CELLS = [
    (method, operator)
    for method in ORACLES
    for operator in sorted(DRAWN.keys() & {rule.operator for rule in quantize_method(method).rules})
]
APPROXIMATED = {("tflite-xnnpack", "sigmoid"): 1}
"""Codes of a case that may differ: its exponential is one unit off in the last place now and then, at sought ties."""


def library_of(method):
    """The oracle of a method, or a skip that says what is missing."""
    try:
        return oracle_of_method(method)
    except ConfigError as error:
        pytest.skip(str(error))


@functools.cache
def answers_of_library(method, draw, count):
    """Cases of each operator of a method with the library's answers: all in one process, which takes long to start."""
    operators = [operator for one, operator in CELLS if one == method]
    cases = [(operator, case) for operator in operators for case in draw(operator, method, count=count, seed=SEED)]
    found = defaultdict(list)
    answers = library_of(method).answers([case for _, case in cases])
    for (operator, case), answer in zip(cases, answers, strict=True):
        found[operator].append((case, answer))
    return found


def answered(method, operator, draw=trial_cases, count=1):
    """Cases of a cell that both the library and the method take, with the library's answers."""
    pairs = answers_of_library(method, draw, count)[operator]
    return [(case, answer) for case, answer in pairs if not isinstance(answer, Refusal) and takes(method, case)]


def takes(method, case):
    """Whether the method has a rule for a case."""
    try:
        quantize_method(method).rule_for(case.call)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(("method", "operator"), CELLS)
def test_a_definition_gives_the_codes_of_the_library(method, operator):
    if method == "onnx" and operator in {"convolution", "inner_product"} and "vnni" not in current_tier().name:
        pytest.skip("without VNNI ONNX Runtime adds pairs of UINT8 times INT8 in 16 bits, which saturates")
    pairs = answered(method, operator)
    assert pairs
    wrong = {}
    for case, expected in pairs:
        (found,) = quantize_method(method).evaluate(case.layer, case.inputs)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        count = int(np.count_nonzero(found != expected))
        wrong.update({case.title: count} if count > APPROXIMATED.get((method, operator), 0) else {})
    assert not wrong


@pytest.mark.parametrize(("method", "operator"), [cell for cell in CELLS if cell[0] in ("tflite", "tflite-xnnpack")])
def test_so_it_does_for_codes_of_int16_and_other_forms(method, operator):
    pairs, wrong = answered(method, operator, further_cases, 2), {}
    for case, expected in pairs:
        (found,) = quantize_method(method).evaluate(case.layer, case.inputs)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        count = int(np.count_nonzero(found != expected))
        wrong.update({case.title: count} if count else {})
    assert not wrong
    assert pairs or not any(takes(method, case) for case in further_cases(operator, method, count=2, seed=SEED))


def test_a_library_that_ends_its_process_refuses_one_case_only():
    oracle = library_of("tflite")
    (narrow, *_), equal = trial_cases("softmax", "tflite", count=1), np.zeros((1, 1000), np.int8)
    layer = narrow.layer.real_layer()
    # The reference softmax gives up where the sum of exponentials is 512 or more.
    hostile = case_of(layer, [equal], [(0.1, 0)], (1 / 256, -128))
    before, refusal, after = oracle.answers([narrow, hostile, narrow])
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "the library ended the process: SIGABRT"
    np.testing.assert_array_equal(before, after)


def test_what_a_library_does_not_have_is_refused_with_a_reason():
    wide = case_of(Identity(), [np.zeros(4, np.int8)], [(0.1, 0)], (0.2, 0), limits=(0.0, 1.0))
    (refusal,) = library_of("tflite").answers([wide])
    assert refusal == Refusal("TensorFlow Lite fuses no activation with limits (0.0, 1.0)")
    deconvolution = trial_cases("deconvolution", "tflite", count=1)[:1]
    assert library_of("onnx").answers(deconvolution) == [
        Refusal("ONNX Runtime has no quantized kernel of deconvolution")
    ]

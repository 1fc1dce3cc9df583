"""Quantize methods against what the real libraries answered, code for code: no library is needed here.

`quantize_methods/generate.py` wrote the files, `quantize_methods/manifest.json` says with which libraries.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.golden.quantize_methods.case_network import network_of
from tests.golden.quantize_methods.wrong_answers import wrong_answers
from tests.oracles.golden_file import read_golden

import dryfit
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.testing.operator_cases.habits import family_of

FOLDER = Path(__file__).parent / "quantize_methods"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
CELLS = [(method, operator) for method, entry in MANIFEST.items() for operator in entry["operators"]]

MOST_LAYERS = 4
"""Of an engine: kernels are compiled for each shape."""


def answered(method, operator):
    """The cases of a cell with the library's answers."""
    return read_golden(FOLDER / family_of(method) / f"{operator}.npz").of(method)


def differing(found, expected):
    """How many codes differ."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    return int(np.count_nonzero(found != expected))


@pytest.mark.parametrize(("method", "operator"), CELLS)
def test_a_definition_gives_the_codes_of_the_library(method, operator):
    rules = quantize_method(method)
    pairs = answered(method, operator)
    assert len(pairs) == MANIFEST[method]["operators"][operator]["cases"]
    wrong = {}
    for case, expected in pairs:
        (found,) = rules.evaluate(case.layer, case.inputs)
        count = differing(found, expected)
        wrong.update({case.title: count} if count else {})
    assert not wrong


@pytest.mark.parametrize(("method", "operator"), CELLS)
def test_an_engine_gives_the_codes_of_the_library(method, operator):
    pairs = answered(method, operator)
    chosen = np.random.default_rng([*method.encode()]).permutation(len(pairs))[:MOST_LAYERS]
    pairs = [pairs[index] for index in chosen]
    network, feeds = network_of([case for case, _ in pairs], method)
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = "CPU"
    engine = dryfit.Builder().build_engine(network, config)
    outputs = engine.create_execution_context().run(feeds)
    names = [tensor.name for tensor in network.outputs]
    counts = {
        case.title: differing(outputs[name], expected) for name, (case, expected) in zip(names, pairs, strict=True)
    }
    assert not {title: count for title, count in counts.items() if count}


@pytest.mark.parametrize(("method", "operator"), CELLS)
def test_a_wrong_definition_is_found_out(method, operator):
    pairs = answered(method, operator)
    wrong = wrong_answers(method, operator, [case for case, _ in pairs])
    counts = [
        differing(found, expected) for found, (_, expected) in zip(wrong, pairs, strict=True) if found is not None
    ]
    assert sum(counts) > 0


def test_every_operator_of_a_method_with_a_library_has_golden_vectors():
    operators = {method: {rule.operator for rule in quantize_method(method).rules} for method in MANIFEST}
    missing = {method: found - MANIFEST[method]["operators"].keys() for method, found in operators.items()}
    assert not {method: found for method, found in missing.items() if found}

"""`dryfit.lint`: findings about Q/DQ as records."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit

FOUND = [(f"qdq.{rule}", "the c") for rule in ("output.activation", "weights.coarse", "weights.per_tensor")]


@pytest.fixture
def against_rules():
    """A convolution with weights of one scale, and Q/DQ before its ReLU."""
    parsed = model(
        "dq = QuantizeLinear(x, s, z) d = DequantizeLinear(dq, s, z) "
        "kq = QuantizeLinear(w, s, z) k = DequantizeLinear(kq, s, z) "
        "c = Conv(d, k) eq = QuantizeLinear(c, s, z) e = DequantizeLinear(eq, s, z) y = Relu(e)",
        inputs="float[N,4,8,8] x",
        outputs="float[N,4,8,8] y",
        weights={"w": numbers(4, 4, 1, 1), "s": np.float32(0.5), "z": np.int8(0)},
    )
    for node in parsed.graph.node:
        node.name = f"the {node.output[0]}"
    return parsed


def test_a_model_gives_its_findings_as_records(against_rules):
    answer = dryfit.lint(against_rules, shape={"x": (1, 4, 8, 8)}, fail_on="warnings,errors")
    assert [(one.rule, one.layer) for one in answer.findings] == FOUND
    assert (answer.summary.warnings, answer.summary.quantizes) == (3, 3)
    assert [(one.condition, one.failed) for one in answer.conditions] == [("warnings", True), ("errors", False)]
    assert {one.rule: one.findings for one in answer.rules if one.findings} == dict.fromkeys(dict(FOUND), 1)


def test_a_network_is_linted_as_a_model_is_and_stays_as_it_is(against_rules):
    network = dryfit.network_from_onnx(against_rules)
    answer = dryfit.lint(network, shape="x=1x4x8x8")
    assert answer.to_dict() | {"model": ""} == dryfit.lint(against_rules).to_dict() | {"model": ""}
    assert (answer.model, network.inputs[0].shape[0]) == (network.name, -1)


def test_the_text_is_that_of_the_command(against_rules):
    answer = dryfit.lint(against_rules)
    assert str(answer).splitlines()[-1] == answer.summary_line()
    assert "3 warnings" in repr(answer)


def test_long_names_are_shortened_in_text_and_whole_in_records(against_rules):
    for node in against_rules.graph.node:
        node.name = node.output[0] + "/more" * 100
    answer = dryfit.lint(against_rules)
    assert max(map(len, str(answer).splitlines())) < 250
    assert all(one.layer.endswith("/more" * 100) for one in answer.findings)


def test_a_word_that_is_no_condition_is_refused(against_rules):
    with pytest.raises(dryfit.ConfigError, match=r"did you mean 'qdq.weights.per_tensor'"):
        dryfit.lint(against_rules, fail_on="qdq.weights.pertensor")

"""`dryfit qdq lint`, its formats and conditions, and the rules in `dryfit explain-rule`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers
from tests.schemas import validate

from dryfit.answers.lint import LintAnswer
from dryfit.quantization.lint import all_lint_rules

SCHEMA = LintAnswer.schema()


@pytest.fixture
def against_rules(tmp_path: Path) -> Path:
    """A convolution with weights of one scale, and Q/DQ with a zero point before its ReLU."""
    parsed = model(
        "dq = QuantizeLinear(x, s, z) d = DequantizeLinear(dq, s, z) "
        "kq = QuantizeLinear(w, t, z) k = DequantizeLinear(kq, t, z) "
        "c = Conv(d, k) eq = QuantizeLinear(c, s, z3) e = DequantizeLinear(eq, s, z3) y = Relu(e)",
        inputs="float[N,4,8,8] x",
        outputs="float[N,4,8,8] y",
        weights={
            "w": numbers(4, 4, 1, 1),
            "s": np.float32(0.5),
            "t": np.float32(0.02),
            "z": np.int8(0),
            "z3": np.int8(3),
        },
    )
    for node in parsed.graph.node:
        node.name = f"the {node.output[0]}"
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


FOUND = {"qdq.type.zero_point": 1, "qdq.output.activation": 1, "qdq.weights.per_tensor": 1}


def test_the_answer_is_what_the_schema_promises(dryfit_command: Any, against_rules: Path) -> None:
    answer = dryfit_command("qdq", "lint", against_rules, "--json").json
    validate(answer, SCHEMA)
    assert {rule["rule"]: rule["findings"] for rule in answer["rules"] if rule["findings"]} == FOUND
    assert [rule["rule"] for rule in answer["rules"]] == list(all_lint_rules())
    assert answer["findings"][0] == {
        "rule": "qdq.type.zero_point",
        "severity": "error",
        "layer": "the eq",
        "kind": "quantize",
        "onnx_nodes": ["the eq"],
        "tensor": "c",
        "found": "its zero point is 3",
    }
    assert answer["summary"] == {
        "quantizes": 3,
        "dequantizes": 3,
        "findings": 3,
        "errors": 1,
        "warnings": 2,
        "notes": 0,
    }


def test_people_read_errors_first_with_what_to_do(dryfit_command: Any, against_rules: Path) -> None:
    lines = dryfit_command("qdq", "lint", against_rules).out.splitlines()
    assert lines[0].startswith("error qdq.type.zero_point: ")
    assert lines[1] == "  the eq: tensor 'c': its zero point is 3"
    assert lines[2].startswith("  What to do: Quantize symmetrically")
    assert lines[-1] == f"{against_rules}: 3 quantizations and 3 dequantizations, 1 error, 2 warnings"


@pytest.mark.parametrize(
    ("conditions", "failed"),
    [
        ("errors", ["errors"]),
        ("warnings>2", []),
        ("findings>=3,notes", ["findings>=3"]),
        ("qdq.output", ["qdq.output"]),
        ("QDQ.weights.per_tensor", ["QDQ.weights.per_tensor"]),
        ("qdq.weights>1", []),
        ("qdq.residual", []),
    ],
)
def test_conditions_make_the_exit_code_1(
    dryfit_command: Any, against_rules: Path, conditions: str, failed: list[str]
) -> None:
    ended = dryfit_command("qdq", "lint", against_rules, "--fail-on", conditions, "--json")
    assert [one["condition"] for one in ended.json["conditions"] if one["failed"]] == failed
    assert ended.code == int(bool(failed))


def test_a_rule_that_does_not_exist_is_no_condition(dryfit_command: Any, against_rules: Path) -> None:
    ended = dryfit_command("qdq", "lint", against_rules, "--fail-on", "qdq.weights.pertensor")
    assert ended.code == 2
    assert "did you mean 'qdq.weights.per_tensor'" in " ".join(ended.err.split())


def test_sarif_has_a_result_for_each_finding_and_every_rule(dryfit_command: Any, against_rules: Path) -> None:
    ended = dryfit_command("qdq", "lint", against_rules, "--format", "sarif", "--fail-on", "errors")
    (run,) = json.loads(ended.out)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == {*all_lint_rules(), "dryfit.fail_on"}
    results = [(one["ruleId"], one["level"]) for one in run["results"]]
    assert results == [
        ("dryfit.fail_on", "error"),
        ("qdq.type.zero_point", "error"),
        ("qdq.output.activation", "warning"),
        ("qdq.weights.per_tensor", "warning"),
    ]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    assert run["results"][1]["locations"][0]["logicalLocations"] == [{"name": "the eq"}]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]


def test_junit_fails_for_conditions_alone_and_skips_rules_with_findings(
    dryfit_command: Any, against_rules: Path
) -> None:
    ended = dryfit_command("qdq", "lint", against_rules, "--format", "junit", "--fail-on", "errors")
    root = ET.fromstring(ended.out)  # noqa: S314  our own output
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["skipped"]) == (
        str(1 + len(all_lint_rules())),
        "1",
        "3",
    )


def test_a_model_without_quantization_has_no_findings(dryfit_command: Any, digits_model: Path) -> None:
    ended = dryfit_command("qdq", "lint", digits_model, "--fail-on", "findings")
    assert (ended.code, ended.out) == (0, f"{digits_model}: 0 quantizations and 0 dequantizations, no findings\n")


@pytest.mark.parametrize("rule", all_lint_rules())
def test_every_rule_is_explained(dryfit_command: Any, rule: str) -> None:
    facts = dryfit_command("explain-rule", rule.upper(), "--json").json
    assert facts["rule"] == rule
    assert facts["source"].startswith("TensorRT 10")


def test_the_first_words_list_the_rules_of_the_lint(dryfit_command: Any) -> None:
    listed = dryfit_command("explain-rule", "qdq.weights", "--json").json["rules"]
    assert [one["rule"] for one in listed] == [rule for rule in all_lint_rules() if rule.startswith("qdq.weights.")]
    assert "qdq.weights.axis" in dryfit_command("explain-rule", "qdq").out


def test_an_unknown_rule_of_the_lint_names_the_closest(dryfit_command: Any) -> None:
    ended = dryfit_command("explain-rule", "qdq.weights.axes")
    assert ended.code == 2
    assert "Did you mean 'qdq.weights.axis'?" in ended.err

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.schemas import validate

from dryfit.answers.build import BuildAnswer
from dryfit.answers.inspect_engine import InspectAnswer
from dryfit.answers.json_data import json_schema
from dryfit.answers.quantize_methods import QuantizeMethodsAnswer
from dryfit.answers.run import RunAnswer
from dryfit.answers.targets import TargetAnswer, TargetDifferences, TargetsAnswer

TARGETS = json_schema(TargetsAnswer | TargetAnswer | TargetDifferences, "dryfit targets --json")


def check(answer: dict[str, Any], schema: dict[str, Any]) -> None:
    """The answer fits its schema, and without any of its keys that the schema requires it does not."""
    validate(answer, schema)
    for key in schema.get("required", ()):
        with pytest.raises(jsonschema.ValidationError):
            validate({name: value for name, value in answer.items() if name != key}, schema)


def test_build_inspect_and_run_answer_as_their_schemas_promise(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    engine = tmp_path / "digits.engine"
    options = ("--device", "DLA", "--precision", "fp16", "--fallback", "GPU", "--shape", "image=2x1x8x8")
    check(dryfit_command("build", digits_model, "-o", engine, *options, "--json").json, BuildAnswer.schema())
    check(dryfit_command("inspect", engine, "--json").json, InspectAnswer.schema())
    check(dryfit_command("run", engine, "--random", 1, "--json").json, RunAnswer.schema())
    more = ("--profile", "--output-dir", tmp_path / "out")
    check(dryfit_command("run", engine, "--random", 1, *more, "--json").json, RunAnswer.schema())


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "DLA"),
        ("show", "GPU"),
        ("show", "CPU"),
        ("diff", "orin", "xavier"),
        ("diff", "orin@8.5", "orin"),
    ],
)
def test_targets_answers_as_its_schema_promises(dryfit_command: Any, arguments: tuple[str, ...]) -> None:
    answer = dryfit_command("targets", *arguments, "--json").json
    check(answer, TARGETS)
    with pytest.raises(jsonschema.ValidationError):
        validate({**answer, "device": 1, "targets": [{}]}, TARGETS)


@pytest.mark.parametrize("arguments", [(), ("tflite",), ("onnx", "--operator", "softmax")])
def test_quantize_methods_answers_as_its_schema_promises(dryfit_command: Any, arguments: tuple[str, ...]) -> None:
    answer = dryfit_command("quantize-methods", *arguments, "--json").json
    check(answer, QuantizeMethodsAnswer.schema())
    assert {"tflite", *arguments[:1]} & {method["name"] for method in answer["methods"]}


def test_the_rules_of_a_quantize_method_are_told_with_formula_and_source(dryfit_command: Any) -> None:
    assert "verified against" in dryfit_command("quantize-methods").out
    told = dryfit_command("quantize-methods", "onnx", "--operator", "relu").out
    assert "onnxruntime" in told
    assert "confirmed" in told
    assert "softmax" not in told
    refused = dryfit_command("quantize-methods", "tflight")
    assert refused.code == 2
    assert "Did you mean 'tflite'?" in refused.err


def test_the_schema_of_targets_tells_its_commands_apart(dryfit_command: Any) -> None:
    answers = [
        dryfit_command("targets", *arguments, "--json").json
        for arguments in (("list",), ("show", "DLA"), ("diff", "orin", "xavier"))
    ]
    for index, answer in enumerate(answers):
        schemas = [one.schema() for one in (TargetsAnswer, TargetAnswer, TargetDifferences)]
        fits = [jsonschema.Draft202012Validator(one).is_valid(answer) for one in schemas]
        assert fits == [index == other for other in range(3)]

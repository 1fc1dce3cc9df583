"""The structure follows OASIS SARIF 2.1.0; what is checked here are the parts of its schema that a check uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.schemas import validate

from dryfit.plugins import registry

DLA = ("--device", "dla", "--precision", "fp16", "--shape", "image=1x1x8x8")

_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": _TEXT}, "additionalProperties": False}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_RULE = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": _TEXT,
        "name": {"type": "string", "pattern": "^[A-Za-z0-9]+$"},
        "shortDescription": _MESSAGE,
        "fullDescription": _MESSAGE,
        "help": _MESSAGE,
        "defaultConfiguration": {
            "type": "object",
            "properties": {"level": _LEVEL},
            "additionalProperties": False,
        },
        "properties": {"type": "object"},
    },
    "additionalProperties": False,
}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "properties": {"uri": {"type": "string", "pattern": "^[A-Za-z0-9._~/%:-]+$"}},
                    "additionalProperties": False,
                }
            },
            "required": ["artifactLocation"],
            "additionalProperties": False,
        },
        "logicalLocations": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": _TEXT}, "additionalProperties": False},
        },
    },
    "additionalProperties": False,
}
_RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
    "properties": {
        "ruleId": _TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": _LEVEL,
        "message": _MESSAGE,
        "locations": {"type": "array", "minItems": 1, "items": _LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "properties": {"type": "object"},
    },
    "additionalProperties": False,
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": _TEXT,
                                    "semanticVersion": _TEXT,
                                    "rules": {"type": "array", "uniqueItems": True, "items": _RULE},
                                },
                                "additionalProperties": False,
                            }
                        },
                        "additionalProperties": False,
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                            },
                            "additionalProperties": False,
                        },
                    },
                    "artifacts": {"type": "array"},
                    "results": {"type": "array", "items": _RESULT},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "properties": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def run_of(text: str) -> Any:
    document = json.loads(text)
    validate(document, SARIF)
    return document["runs"][0]


def test_the_document_is_sarif(dryfit_command: Any, digits_model: Path) -> None:
    for options in (("--fallback", "GPU"), (), ("--fallback", "GPU", "--fail-on", "fallback,loadables>8")):
        run = run_of(dryfit_command("check", digits_model, *DLA, *options, "--format", "sarif").out)
        ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(set(ids)) == len(ids)
        assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])


def test_the_rules_are_those_of_the_limit_tables_with_their_help(dryfit_command: Any, digits_model: Path) -> None:
    run = run_of(dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--format", "sarif").out)
    shown = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    for device in ("DLA", "GPU"):
        limits = registry.target(device).limits
        assert limits is not None
        for rule in limits.all_rules:
            entry = shown.pop(rule.id)
            assert rule.source in entry["fullDescription"]["text"]
            assert rule.text[1:] in entry["shortDescription"]["text"]
            assert entry["help"]["text"].startswith(rule.remedy)
            assert f"dryfit explain-rule {rule.id}" in entry["help"]["text"]
            expected = {"violation": "error", "warning": "warning", "note": "note"}[rule.severity]
            assert entry["defaultConfiguration"]["level"] == expected
    assert list(shown) == ["dryfit.refused", "dryfit.fail_on"]


def test_every_violation_is_a_result_that_names_its_layer(dryfit_command: Any, digits_model: Path) -> None:
    for options, level in ((("--fallback", "GPU"), "warning"), (("--fallback", "none"), "error")):
        answer = dryfit_command("check", digits_model, *DLA, *options, "--json").json
        run = run_of(dryfit_command("check", digits_model, *DLA, *options, "--format", "sarif").out)
        expected = {
            (layer["name"], one["rule"], level)
            for layer in answer["layers"]
            for one in layer["verdicts"]["DLA"]["violations"]
        }
        found = {
            (result["locations"][0]["logicalLocations"][0]["name"], result["ruleId"], result["level"])
            for result in run["results"]
            if result["level"] != "note" and result["ruleId"] != "dryfit.refused"
        }
        assert found == expected
        refused = [result["message"]["text"] for result in run["results"] if result["ruleId"] == "dryfit.refused"]
        assert refused == answer["refusals"]
        uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == digits_model.as_uri()


def test_warnings_are_notes_where_the_layer_runs(dryfit_command: Any, digits_model: Path) -> None:
    options = ("--device", "dla", "--precision", "fp16", "--shape", "image=1x1x8x8", "--fallback", "GPU")
    answer = dryfit_command("check", digits_model, *options, "--json").json
    run = run_of(dryfit_command("check", digits_model, *options, "--format", "sarif").out)
    notes = [result for result in run["results"] if result["level"] == "note"]
    assert len(notes) == answer["summary"]["warnings"]


def test_a_condition_that_holds_is_an_error_and_the_exit_code(dryfit_command: Any, digits_model: Path) -> None:
    fail_on = ("--fail-on", "fallback>3%,loadables>8")
    ended = dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", *fail_on, "--format", "sarif")
    run = run_of(ended.out)
    (result,) = [result for result in run["results"] if result["ruleId"] == "dryfit.fail_on"]
    assert result["level"] == "error"
    assert "fallback>3%" in result["message"]["text"]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": ended.code}]
    assert ended.code == 1


def test_a_fingerprint_does_not_change_with_the_order_of_results(dryfit_command: Any, digits_model: Path) -> None:
    run = run_of(dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--format", "sarif").out)
    prints = [result["partialFingerprints"]["layerAndRule/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    assert "elu2:DLA:dla.activation.type" in prints


def test_a_relative_path_with_spaces_is_a_relative_uri(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "my models").mkdir()
    (tmp_path / "my models" / "é.onnx").write_bytes(digits_model.read_bytes())
    monkeypatch.chdir(tmp_path)
    run = run_of(dryfit_command("check", "my models/é.onnx", *DLA, "--format", "sarif").out)
    assert run["artifacts"][0]["location"]["uri"] == "my%20models/%C3%A9.onnx"

"""SARIF 2.1.0 documents, which code-scanning services show beside the model: what all commands that write them share.

Conditions of `--fail-on` are results of a rule of their own.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.13 to 3.54.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dryfit.answers.conditions import Outcome
from dryfit.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FAIL_ON = "dryfit.fail_on"


def sarif_document(
    model: str,
    rules: Iterable[Mapping[str, Any]],
    results: Iterable[Mapping[str, Any]],
    outcomes: Sequence[Outcome],
    properties: Mapping[str, Any],
) -> str:
    """The document of one run.

    Args:
        model: the path of the model.
        rules: see `rule_entry`; the one for conditions is added.
        results: `ruleId`, `level`, `message`, what else there is, and in `logicalLocations` the names in the model.
        outcomes: of the conditions.
        properties: of the run.
    """
    entries = [*rules, _FAIL_ON_RULE]
    numbers = {rule["id"]: number for number, rule in enumerate(entries)}
    failed = [outcome for outcome in outcomes if outcome.failed]
    every = [*map(_condition, failed), *results]
    run = {
        "tool": {"driver": {"name": "dryfit", "semanticVersion": __version__, "rules": entries}},
        "invocations": [{"executionSuccessful": True, "exitCode": int(bool(failed))}],
        "artifacts": [{"location": {"uri": _uri(model)}, "mimeType": "application/octet-stream"}],
        "results": [{"ruleIndex": numbers[one["ruleId"]], **_located(model, one)} for one in every],
        "columnKind": "unicodeCodePoints",
        "properties": properties,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def rule_entry(
    id: str, *, text: str, full_text: str, help_text: str, level: str, properties: Mapping[str, Any]
) -> dict[str, Any]:
    """A rule of the document.

    Args:
        id: words with dots between them.
        text: the rule without its full stop.
        full_text: what is said after it.
        help_text: what to do.
        level: `error`, `warning` or `note`.
        properties: what else there is to say.
    """
    return {
        "id": id,
        "name": "".join(word.capitalize() for word in id.replace(".", "_").split("_")),
        "shortDescription": {"text": _sentence(text)},
        "fullDescription": {"text": f"{_sentence(text)} {full_text}"},
        "help": {"text": f"{help_text}More: dryfit explain-rule {id}"},
        "defaultConfiguration": {"level": level},
        "properties": properties,
    }


_FAIL_ON_RULE: Mapping[str, Any] = {
    "id": FAIL_ON,
    "name": "FailOn",
    "shortDescription": {"text": "A --fail-on condition holds."},
    "help": {"text": "Change the model so that the condition no longer holds, or set another limit."},
    "defaultConfiguration": {"level": "error"},
}


def _condition(outcome: Outcome) -> dict[str, Any]:
    return {"ruleId": FAIL_ON, "level": "error", "message": {"text": f"The condition holds: {outcome}"}}


def _located(model: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """A result with its one location: the model, and the names in it that the result brings."""
    rest = {key: value for key, value in result.items() if key != "logicalLocations"}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(model)}}}
    if "logicalLocations" in result:
        location["logicalLocations"] = result["logicalLocations"]
    return {**rest, "locations": [location]}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _uri(model: str) -> str:
    """The model's path as a URI; a relative one stays relative, to where the command ran."""
    path = Path(model)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())

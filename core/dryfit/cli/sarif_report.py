"""A check as SARIF 2.1.0, which code-scanning services show beside the model.

The rules are those of the limit tables of the devices that were asked, with what to do as their help; a result is a
rule that a layer fails. A refused layer that can run nowhere is an error, one that falls back a warning, and a warning
about a layer a note. Conditions of `--fail-on` are results of a rule of their own.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.13 to 3.54.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dryfit.cli.fail_conditions import Outcome

if TYPE_CHECKING:
    from dryfit.target.limits import Rule

Report = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FAIL_ON = "dryfit.fail_on"
LEVELS = {"violation": "error", "warning": "warning", "note": "note"}
"""Severity of a rule to SARIF's level."""


def sarif_text(report: Report, outcomes: Sequence[Outcome]) -> str:
    """The document.

    Args:
        report: see `dryfit.cli.placement_report`.
        outcomes: of the conditions.
    """
    rules = list(_rules(report))
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    location = {"physicalLocation": {"artifactLocation": {"uri": _uri(report["model"])}}}
    results = [{"ruleIndex": numbers[one["ruleId"]], **one} for one in _results(report, outcomes, location)]
    failed = any(outcome.failed for outcome in outcomes)
    run = {
        "tool": {"driver": {"name": "dryfit", "semanticVersion": version("dryfit"), "rules": rules}},
        "invocations": [{"executionSuccessful": True, "exitCode": int(failed)}],
        "artifacts": [{"location": {"uri": _uri(report["model"])}, "mimeType": "application/octet-stream"}],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {key: report[key] for key in ("device", "platform", "software", "precisions", "fallback")},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rules(report: Report) -> Iterator[dict[str, Any]]:
    """The rules of the devices that layers were asked about, and the one for conditions."""
    from dryfit.plugins import registry

    asked = [report["device"], *(device for layer in report["layers"] for device in layer["verdicts"])]
    for device in dict.fromkeys(asked):
        table = registry.target(device).limits
        yield from (_rule(rule) for rule in ([] if table is None else table.all_rules))
    yield {
        "id": FAIL_ON,
        "name": "FailOn",
        "shortDescription": {"text": "A condition of --fail-on holds."},
        "help": {"text": "Change the model until the condition no longer holds, or state another limit."},
        "defaultConfiguration": {"level": "error"},
    }


def _rule(rule: Rule) -> dict[str, Any]:
    scope = f"Holds for {rule.scope}." if rule.scope else "Holds for every platform, version and precision."
    remedy = f"{rule.remedy}. " if rule.remedy else ""
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.replace(".", "_").split("_")),
        "shortDescription": {"text": _sentence(rule.text)},
        "fullDescription": {"text": f"{_sentence(rule.text)} {scope} Source ({rule.fidelity}): {rule.source}."},
        "help": {"text": f"{remedy}More: dryfit explain-rule {rule.id}"},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"parameter": rule.parameter, "kinds": sorted(rule.kinds), "fidelity": rule.fidelity},
    }


def _results(report: Report, outcomes: Sequence[Outcome], location: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for outcome in outcomes:
        if outcome.failed:
            message = {"text": f"The condition holds: {outcome}"}
            yield {"ruleId": FAIL_ON, "level": "error", "message": message, "locations": [location]}
    for layer in report["layers"]:
        where = {**location, "logicalLocations": [{"name": layer["name"]}]}
        for device, verdict in layer["verdicts"].items():
            is_there = device == layer["device"]
            level = "warning" if layer["device"] else "error"
            found = [(level, one) for one in verdict["violations"]]
            found += [("note", one) for one in verdict["warnings"] if is_there]
            for severity, one in found:
                yield {
                    "ruleId": one["rule"],
                    "level": severity,
                    "message": {"text": f"{layer['name']} on {device}: {one['message']}"},
                    "locations": [where],
                    "partialFingerprints": {"layerAndRule/v1": f"{layer['name']}:{device}:{one['rule']}"},
                    "properties": {
                        "actual": one["actual"],
                        "allowed": one["allowed"],
                        "remedy": one["remedy"],
                        "onnx_nodes": layer["onnx_nodes"],
                    },
                }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _uri(model: str) -> str:
    """The model's path as a URI; a relative one stays relative, to where the command ran."""
    path = Path(model)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())

"""A check as SARIF.

The rules are those of the limit tables of the devices that were asked, with what to do as their help; a result is a
rule that a layer fails. A refused layer that unplaced is an error, one that falls back a warning, and a warning
about a layer a note. What a build raises is an error of a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dryfit.answers.check import CheckAnswer
from dryfit.cli.sarif_document import rule_entry, sarif_document
from dryfit.plugins import registry

if TYPE_CHECKING:
    from dryfit.target.limits import Rule

REFUSED = "dryfit.refused"

LEVELS = {"violation": "error", "warning": "warning", "note": "note"}
"""Severity of a rule to SARIF's level."""


def sarif_text(answer: CheckAnswer) -> str:
    """The document."""
    properties = {
        "device": answer.device,
        "platform": answer.platform,
        "software": answer.software,
        "precisions": list(answer.precisions),
        "fallback": answer.fallback,
    }
    refused = [{"ruleId": REFUSED, "level": "error", "message": {"text": one}} for one in answer.refusals]
    rules, results = [*_rules(answer), _REFUSED_RULE], [*refused, *_results(answer)]
    return sarif_document(answer.model, rules, results, answer.conditions, properties)


_REFUSED_RULE: Mapping[str, Any] = {
    "id": REFUSED,
    "name": "Refused",
    "shortDescription": {"text": "The network cannot be built."},
    "help": {"text": "Fix the problem that the message names."},
    "defaultConfiguration": {"level": "error"},
}


def _rules(answer: CheckAnswer) -> Iterator[dict[str, Any]]:
    """The rules of the devices that layers were asked about."""
    asked = [answer.device, *(device for layer in answer.layers for device in layer.verdicts)]
    for device in dict.fromkeys(asked):
        table = registry.target(device).limits
        yield from (_rule(rule) for rule in ([] if table is None else table.all_rules))


def _rule(rule: Rule) -> dict[str, Any]:
    scope = f"Holds for {rule.scope}." if rule.scope else "Holds for every platform, version and precision."
    return rule_entry(
        rule.id,
        text=rule.text,
        full_text=f"{scope} Source ({rule.fidelity}): {rule.source}.",
        help_text=f"{rule.remedy}. " if rule.remedy else "",
        level=LEVELS[rule.severity],
        properties={"parameter": rule.parameter, "kinds": sorted(rule.kinds), "fidelity": rule.fidelity},
    )


def _results(answer: CheckAnswer) -> Iterator[dict[str, Any]]:
    for layer in answer.layers:
        for device, verdict in layer.verdicts.items():
            level = "warning" if layer.device else "error"
            found = [(level, one) for one in verdict.violations]
            found += [("note", one) for one in verdict.warnings if device == layer.device]
            for severity, one in found:
                yield {
                    "ruleId": one.rule,
                    "level": severity,
                    "message": {"text": f"{layer.name} on {device}: {one.message}"},
                    "logicalLocations": [{"name": layer.name}],
                    "partialFingerprints": {"layerAndRule/v1": f"{layer.name}:{device}:{one.rule}"},
                    "properties": {
                        "actual": one.actual,
                        "allowed": one.allowed,
                        "remedy": one.remedy,
                        "onnx_nodes": list(layer.onnx_nodes),
                    },
                }

"""What `--fail-on` of `dryfit check` looks at: the report that `--json` prints, so that a program can ask the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dryfit.cli.console import bytes_text
from dryfit.cli.fail_conditions import BYTES, PERCENT, FailCondition, Outcome, Subjects, beginnings
from dryfit.short_text import count_text

Report = dict[str, Any]


def _rules(first_word: str) -> Collection[str]:
    """The ids of the rules of the device that the word names, of all devices where it names none; and beginnings."""
    from dryfit.plugins import registry

    named = registry.find_target(first_word)
    asked = registry.targets().values() if named is None else [named]
    tables = [target.limits for target in asked if target.limits is not None]
    return {beginning for table in tables for rule in table.all_rules for beginning in beginnings(rule.id)}


SUBJECTS = Subjects(
    {
        "fallback": "layers that are not on the device that they were given, in number or % of all that run on devices",
        "unplaced": "layers that can run nowhere they may go, in number or %",
        "loadables": "segments on the device that was asked for",
        "segments": "segments on all devices",
        "reformats": "copies between types, formats or devices, in number or bytes, such as 1.5MiB",
        "warnings": "warnings about layers on the device where they run",
        "refusals": "errors that a build raises",
    },
    aliases={"reformat": "reformats", "refusal": "refusals", "warning": "warnings"},
    units={"fallback": {PERCENT}, "unplaced": {PERCENT}, "reformats": set(BYTES)},
    rules=_rules,
)


def placement_outcomes(conditions: Sequence[FailCondition], report: Report) -> list[Outcome]:
    """What each condition finds in a report."""
    return [condition.outcome(*_measured(condition, report)) for condition in conditions]


def _measured(condition: FailCondition, report: Report) -> tuple[float, str]:
    """The value in the unit of the limit (sizes in bytes), and in words."""
    summary, subject = report["summary"], condition.subject
    match subject:
        case "fallback":
            return _share(condition, report, summary["fallback_layers"] + summary["unplaced_layers"])
        case "unplaced":
            return _share(condition, report, summary["unplaced_layers"])
        case "loadables":
            count = summary["segments_by_device"].get(report["device"], 0)
            return count, f"{count} on {report['device']}"
        case "segments" | "warnings":
            return summary[subject], f"{summary[subject]}"
        case "refusals":
            return len(report[subject]), f"{len(report[subject])}"
        case "reformats":
            count, size = summary["reformats"], summary["reformat_bytes"]
            return size if condition.unit else count, f"{count} of {bytes_text(size)}"
    layers = [layer["name"] for layer in report["layers"] if subject in _rule_words(layer)]
    return len(layers), f"{count_text(len(layers), 'layer')} ({', '.join(layers) or 'none'})"


def _share(condition: FailCondition, report: Report, count: int) -> tuple[float, str]:
    """A number of layers, also as a share of those that run on devices; shape computations are not counted."""
    total = sum(layer["segment"] is not None or layer["device"] is None for layer in report["layers"])
    share = 100 * count / total if total else 0.0
    return share if condition.unit == PERCENT else count, f"{count} of {total} layers ({share:.1f} %)"


def _rule_words(layer: dict[str, Any]) -> set[str]:
    """The ids of the rules that a layer fails, of the warnings on the device where it runs, and their beginnings."""
    failed = [
        one["rule"]
        for device, verdict in layer["verdicts"].items()
        for one in (*verdict["violations"], *(verdict["warnings"] if device == layer["device"] else ()))
    ]
    return {beginning for rule in failed for beginning in beginnings(rule)}

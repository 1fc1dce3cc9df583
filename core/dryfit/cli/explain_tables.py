"""The explanation for people: reasons with the layers behind them, and a table of edits that pay."""

from __future__ import annotations

from typing import Any

from dryfit.answers.placement_text import FIRST_ONLY, LISTED_NAMES, listed_names, other_causes
from dryfit.answers.text import bytes_text
from dryfit.cli.arithmetic_report import print_arithmetic
from dryfit.cli.console import print_defaults, print_line, print_list, print_table
from dryfit.cli.explain_reformats import print_reformats
from dryfit.cli.operator_rules_report import print_operators
from dryfit.cli.placement_tables import estimate_text, heading
from dryfit.short_text import count_text, with_short_names

Report = dict[str, Any]


def print_explanation(report: Report) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.explain_report`.
    """
    print_line(heading(report))
    print_defaults(report["assumed"])
    if report["simulated"]:
        print_line(f"Simulated: {report['simulated']}.")
    print_line()
    if report["layer"] is not None:
        for layer in report["layers"]:
            _print_layer(report, layer)
    print_line(_summary(report))
    print_line()
    _print_layers(report)
    _print_causes(report)
    _print_estimates(report)
    print_arithmetic(report["arithmetic"])
    print_operators(report["quantized_operators"], report["left"])
    _print_remarks(report)
    print_reformats(report)
    _print_edits(report)


def print_applied(report: Report) -> None:
    """What `--apply` did.

    Args:
        report: see `dryfit.cli.explain_apply.apply_report`.
    """
    for edit in report["edits"]:
        print_line(f"{edit['id']}: {edit['title']}, at {', '.join(edit['nodes'])}")
    proof = report["proof"]
    values = proof["values"]
    print_line(
        f"Proved equal on random inputs of {len(proof['seeds'])} seeds: {', '.join(values[:LISTED_NAMES])}"
        f"{f' and {len(values) - LISTED_NAMES} more' if len(values) > LISTED_NAMES else ''} within "
        f"{proof['tolerance']:g} of their ranges"
    )
    if report["before"]["refused_layers"]:
        print_line(
            f"On {report['device']}: {_change(report, 'refused_layers')} layers leave, {_change(report, 'loadables')} "
            f"loadables, {_change(report, 'border_bytes')} at borders"
        )
    print_line(f"Written to {report['output']}")


def _print_layer(report: Report, layer: dict[str, Any]) -> None:
    """One layer that was asked about by name."""
    where = layer["device"] or "nowhere"
    cause = "" if layer["violations"] else f", {layer['cause']}"
    print_line(f"{layer['name']} ({layer['kind']}): on {where}{cause}")
    facts = {
        "ONNX nodes": ", ".join(layer["onnx_nodes"]),
        "precision": layer["precision"],
        "MACs": f"{layer['macs']:,} ({_percent(layer['macs'], report['summary']['macs'])})",
    }
    for label, value in facts.items():
        print_line(f"  {label:<11} {value}")
    for one in layer["violations"]:
        print_line(f"  fails {one['rule']}")
        for label in ("parameter", "actual", "allowed", "remedy", "source", "fidelity"):
            if one[label]:
                print_line(f"    {label:<9} {one[label]}")
    print_line()


def _summary(report: Report) -> str:
    summary, device = report["summary"], report["device"]
    leaving = summary["layers_leaving"]
    if report["layer"] is not None and len(report["layers"]) == 1:
        return f"The layer {'leaves' if leaving else 'does not leave'} {device}"
    if not leaving:
        return f"No layer leaves {device}"
    return (
        f"{leaving} of {summary['layers']} layers leave{'s' if leaving == 1 else ''} {device}, with "
        f"{_percent(summary['macs_leaving'], summary['macs'])} of {_count(summary['macs'])} multiply-accumulates"
    )


def _print_layers(report: Report) -> None:
    """The layers that leave, with all that stands against them; those of one kind that fail the same rules together."""
    if report["layer"] is not None:
        return
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for layer in report["layers"]:
        if layer["violations"]:
            rules = (layer["kind"], *(one["rule"] for one in layer["violations"]))
            groups.setdefault(rules, []).append(layer)
    entries = []
    for alike in groups.values():
        texts = [_reasons(layer) for layer in alike]
        names = listed_names([layer["name"] for layer in alike])
        first_only = FIRST_ONLY if len(set(texts)) > 1 else ""
        entries.append((f"{names} ({alike[0]['kind']})", f"{with_short_names(texts[0])}{first_only}", ""))
    print_list(f"Layers that leave {report['device']}", entries)


def _reasons(layer: dict[str, Any]) -> str:
    return "; ".join(f"{one['message']} [{one['rule']}]" for one in layer["violations"])


def _print_causes(report: Report) -> None:
    entries = []
    for cause in report["causes"]:
        count = len(cause["layers"])
        share = _percent(cause["macs"], report["summary"]["macs"])
        text = f"{count_text(count, 'layer')}, {share} of multiply-accumulates"
        entries.append((cause["rule"], text, f"{cause['remedy'] or 'Nothing is known to help'}. ({cause['source']})"))
    print_list("Causes", entries)


def _print_estimates(report: Report) -> None:
    entries = [
        (f"segment {one['segment']} on {one['device']}", estimate_text(one), f"Source: {one['source']}.")
        for one in report["estimates"]
    ]
    print_list("Estimated cost of one run, not measured", entries)


def _print_remarks(report: Report) -> None:
    """Causes of placements that no rule tells, then warnings and notes of layers that stay; alike ones together."""
    layers: dict[str, list[str]] = {}
    for layer in report["layers"]:
        if layer["supported"]:
            for one in (*layer["warnings"], *layer["notes"]):
                layers.setdefault(f"{one['message']} [{one['rule']}]", []).append(layer["name"])
    entries = [
        (f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0], text, "")
        for text, names in layers.items()
    ]
    # The cause of a layer that was asked about by name has been told.
    layers_to_tell = report["layers"] if report["layer"] is None else []
    causes = {layer["name"]: layer["cause"] for layer in layers_to_tell if not layer["violations"]}
    print_list("To know", [*other_causes(causes), *entries])


def _print_edits(report: Report) -> None:
    rows = [_row(one) for one in report["edits"]]
    if rows:
        columns = ["edit", "layers that leave", "loadables", "border bytes", "change"]
        print_table("Suggested model edits (each applied alone)", columns, rows)
    elif report["causes"]:
        print_line("No known model edit would help here")
    if report["dynamic_inputs"]:
        names = ", ".join(report["dynamic_inputs"])
        print_line(f"Placed with dynamic shapes, as the model has them: --shape NAME=SHAPE fixes those of {names}")
    together = report["together"]
    if together is not None:
        print_line(
            f"Together: {_change(together, 'refused_layers')} layers leave, "
            f"{_change(together, 'loadables')} loadables, {_change(together, 'border_bytes')} at borders"
        )
    best = together or next(iter(report["edits"]), None)
    if best is not None:
        print_line(f"Apply with: --apply {best['apply']} -o NEW.onnx")
    unmeasured = [(one["id"], one["reason"], "") for one in report["unmeasured_edits"]]
    print_list("Edits that could not be measured", unmeasured)


def _row(edit: dict[str, Any]) -> tuple[object, ...]:
    changes = [_change(edit, what) for what in ("refused_layers", "loadables", "border_bytes")]
    return edit["apply"], *changes, edit["title"]


def _change(edit: dict[str, Any], what: str) -> str:
    """Such as `4 -> 3`; one figure where it stays."""
    before, after = (
        "unknown"
        if edit[side][what] is None
        else bytes_text(edit[side][what])
        if what == "border_bytes"
        else str(edit[side][what])
        for side in ("before", "after")
    )
    return before if before == after else f"{before} -> {after}"


def _percent(part: int, total: int) -> str:
    if not part or not total:
        return "0 %"
    share = 100 * part / total
    return "less than 0.1 %" if share < 0.1 else f"{share:.1f} %"


def _count(number: int) -> str:
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)

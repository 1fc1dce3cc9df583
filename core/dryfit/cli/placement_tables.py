"""A placement report for people: tables of layers, segments and reformats, and lists of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dryfit.cli.assumptions import print_defaults
from dryfit.cli.console import bytes_text, device_text, print_line, print_list, print_table, table_name
from dryfit.cli.placement_causes import FIRST_ONLY, grouped_entries, listed_names, other_causes
from dryfit.errors import DryfitError, PlacementError
from dryfit.estimate_text import time_text
from dryfit.short_text import count_text, with_short_names

Report = dict[str, Any]
LISTED_SEGMENTS = 20
"""How many segments are listed without `--verbose`."""
_SHORT_TYPES = {"FLOAT": "FP32", "HALF": "FP16", "DOUBLE": "FP64"}
"""Types that people call otherwise than the API does."""


def print_placement(report: Report, verbose: bool, errors: Sequence[DryfitError] = ()) -> None:
    """The answer: every reason against the device that was asked for, and the segments.

    Args:
        report: see `dryfit.cli.placement_report`.
        verbose: also every layer, the causes of cuts, and the reformats.
        errors: what a build raises.
    """
    print_verdict(report, errors)
    print_line(heading(report))
    print_defaults(report.get("assumed", ()))
    if report["simulated"]:
        print_line(f"Simulated: {report['simulated']}.")
    print_line()
    if verbose:
        rows = [(one["name"], one["kind"], one["device"] or "none", one["segment"]) for one in report["layers"]]
        print_table("Layers", ["layer", "kind", "device", "segment"], rows)
    print_list(f"Not on {report['device']}, because", _reasons(report, "violations"))
    print_list("Placed as they are, because", other_causes(_unrefused(report), is_full=verbose))
    print_list("Warnings", _reasons(report, "warnings"))
    print_segments(report, verbose)
    print_precisions(report)
    print_offloading(report, verbose)
    print_refusals(report, errors)
    print_line(summary_line(report))


def print_verdict(report: Report, errors: Sequence[DryfitError] = ()) -> None:
    """The first line, where there is bad news: that it cannot be built, or that nothing is left on the device."""
    if errors:
        more = f" (and {count_text(len(errors) - 1, 'more problem')})" if errors[1:] else ""
        where = f"{errors[0].where}: " if errors[0].where and not isinstance(errors[0], PlacementError) else ""
        print_line(f"Build would fail: {where}{errors[0].message}{more}")
    device, fallback = report["device"], report["fallback"]
    has_work = any(layer["segment"] is not None for layer in report["layers"])
    if fallback and has_work and device not in report["summary"]["segments_by_device"]:
        fallen = count_text(report["summary"]["fallback_layers"], "layer")
        rules = Counter(rule for layer in report["layers"] for rule in _failed_rules(layer, device))
        first = next((f", most often by {rule}" for rule, _ in rules.most_common(1)), "")
        print_line(f"Nothing runs on {device}: {fallen} fall back to {fallback}{first}")


def _failed_rules(layer: dict[str, Any], device: str) -> set[str]:
    return {one["rule"] for one in layer["verdicts"].get(device, {}).get("violations", ())}


def print_refusals(report: Report, errors: Sequence[DryfitError]) -> None:
    """What a build of this raises, in its own words; nothing where it can be built.

    Layers and segments without a place are counted only, where the lists before tell each of them.
    """
    if errors:
        print_line("Building this would fail:")
    for error in errors:
        is_told = isinstance(error, PlacementError) and _tells_unplaced(report)
        print_line(f"  {'. '.join(filter(None, (f'{error.message}: see above', error.remedy))) if is_told else error}")


def _tells_unplaced(report: Report) -> bool:
    """Whether the lists of reasons have all layers without a place: those speak of the device that was asked for."""
    listed = {layer for one in report["offloading"] for lost in one["rejected"] for layer in lost["layers"]}
    return report["fallback"] is None and all(
        layer["name"] in listed or layer["verdicts"].get(report["device"], {}).get("violations")
        for layer in report["layers"]
        if layer["device"] is None
    )


def print_offloading(report: Report, verbose: bool = False) -> None:
    """For each device with memory pools for its segments: how many candidates it got, what they need, and the others.

    A memory pool that falls short stands there by name.
    """
    for one in report["offloading"]:
        needs = _pools(one["pools"])
        print_line(
            f"{one['device']} segments: {one['offloaded']} of {one['candidates']} accepted"
            f"{f'; memory in total: {needs}' if needs else ''}"
        )
        lost = [
            (_span(rejected["layers"]), rejected["cause"], _short(rejected["short_of"])) for rejected in one["rejected"]
        ]
        print_list(f"Not accepted by {one['device']}, because", lost if verbose else grouped_entries(lost))


def print_segments(report: Report, verbose: bool) -> None:
    """Segments and, where `verbose`, the causes of their cuts, and reformats with theirs."""
    segments = [
        (one["id"], one["device"], len(one["layers"]), _span(one["layers"], verbose), _pools(one["pools"]))
        for one in report["segments"]
    ]
    shown = segments if verbose else segments[:LISTED_SEGMENTS]
    if segments:
        print_table("Segments", ["segment", "device", "layers", "from .. to", "memory pools"], shown)
    if len(segments) > len(shown):
        print_line(f"  + {count_text(len(segments) - len(shown), 'more segment')} (--verbose)")
    if not verbose:
        return
    cuts = [(f"segment {one['id']}", _cut(one["cut_cause"]), "") for one in report["segments"] if one["cut_cause"]]
    print_list("New segments, because", cuts)
    estimates = [
        (f"segment {one['id']}", estimate_text(one["estimate"]), "") for one in report["segments"] if "estimate" in one
    ]
    print_list("Estimated cost of one run, not measured", estimates)
    reformats = [
        (one["tensor"], one["from"], one["to"], bytes_text(one["bytes"]), one["cause"]) for one in report["reformats"]
    ]
    if reformats:
        print_table("Reformats", ["tensor", "from", "to", "size", "cause"], reformats)


def print_precisions(report: Report) -> None:
    """For each device the types that it computes in: `ACME_NPU: 10 layers FP16`."""
    for device, counts in report["summary"]["precisions_by_device"].items():
        (first, count), *others = [(_SHORT_TYPES.get(name, name), count) for name, count in counts.items()]
        told = [f"{count_text(count, 'layer')} {first}", *(f"{number} {name}" for name, number in others)]
        print_line(f"{device}: {', '.join(told)}")


def estimate_text(estimate: dict[str, Any]) -> str:
    """A target's estimate in one sentence, the time with its error."""
    time, is_bound = estimate["microseconds"], estimate["is_lower_bound"]
    facts = [
        *([] if time is None else [time_text(time, estimate["error_factor"], is_lower_bound=is_bound)]),
        f"{bytes_text(estimate['bytes_moved'])} moved",
        f"{estimate['macs']:,} multiply-accumulates",
    ]
    return f"estimated: {', '.join(facts)} ({estimate['fidelity']}: {estimate['basis']})"


def heading(report: Report) -> str:
    """What was asked."""
    device = device_text(report["device"], report["platform"], report["software"])
    precisions = ", ".join(word.upper() for word in report["precisions"]) or "FP32"
    fallback = f"fallback to {report['fallback']}" if report["fallback"] else "no fallback"
    return f"{report['model']} on {device}, {precisions}, {fallback}"


def summary_line(report: Report) -> str:
    """The answer in one line."""
    summary = report["summary"]
    placed = ", ".join(f"{count} on {device}" for device, count in summary["layers_by_device"].items())
    unplaced = f", {summary['unplaced_layers']} unplaced" if summary["unplaced_layers"] else ""
    parts = [
        f"{count_text(summary['layers'], 'layer')}: {placed or 'none placed'}{unplaced}",
        count_text(summary["segments"], "segment"),
        f"{count_text(summary['reformats'], 'reformat')} of {bytes_text(summary['reformat_bytes'])}"
        if summary["reformats"]
        else "no reformats",
        *(["the build would fail"] if report["refusals"] else []),
    ]
    return "; ".join(parts)


def _reasons(report: Report, which: str) -> list[tuple[str, str, str]]:
    """(layers, reason, remedy) for each rule of the verdicts on the device; layers that fail one alike are together.

    Where their values differ, those of the first are told. A warning about a device matters only to the layers that
    run there.
    """
    layers: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for layer in report["layers"]:
        if which == "warnings" and layer["device"] != report["device"]:
            continue
        for one in layer["verdicts"].get(report["device"], {}).get(which, ()):
            alike = layers.setdefault((one["rule"], one["allowed"], one["remedy"]), [])
            alike.append((layer["name"], one["message"]))
    reasons = []
    for (rule, _, remedy), alike in layers.items():
        differ = len({message for _, message in alike}) > 1
        reason = f"{with_short_names(alike[0][1])}{FIRST_ONLY if differ else ''} [{rule}]"
        reasons.append((listed_names([name for name, _ in alike]), reason, remedy))
    return reasons


def _unrefused(report: Report) -> dict[str, str]:
    """Layer name to cause, of the layers that the device asked for does not refuse."""
    return {
        layer["name"]: layer["cause"]
        for layer in report["layers"]
        if not layer["verdicts"].get(report["device"], {}).get("violations")
    }


def _short(shortages: list[dict[str, Any]]) -> str:
    """What to set so that a segment fits its pools."""
    wishes = [f"{one['pool']} of {bytes_text(1 << (one['needed'] - 1).bit_length())}" for one in shortages]
    return f"It would fit with {' and '.join(wishes)} (--mem-pool-size)" if wishes else ""


def _cut(cause: str) -> str:
    """The cause without the reasons of the layer that stands between, which are listed before."""
    before, between, _ = cause.partition(" this one: ")
    return before + between.removesuffix(": ")


def _span(layers: list[str], is_full: bool = False) -> str:
    ends = [layers[0], layers[-1]] if layers[1:] else layers
    return " .. ".join(ends if is_full else map(table_name, ends))


def _pools(pools: dict[str, int]) -> str:
    return ", ".join(f"{pool} {bytes_text(size)}" for pool, size in pools.items() if size)

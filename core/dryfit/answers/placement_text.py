"""Placements as text: tables of layers, segments and reformats, and lists of reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dryfit.answers.placement import LayerAnswer, Placement, PlacementHeading
from dryfit.answers.text import (
    Block,
    Entries,
    Line,
    Table,
    bytes_text,
    device_text,
    overlay_lines,
    table_name,
    type_text,
)
from dryfit.builder.assessment import OperatorRule
from dryfit.builder.decisions import SHAPE_COMPUTATION
from dryfit.builder.placement.assign import DEFAULT_DEVICE, OWN_DEVICE
from dryfit.engine.plan import PoolShortage
from dryfit.errors import PlacementError
from dryfit.estimate_text import time_text
from dryfit.passes.findings import LeftLayer
from dryfit.short_text import count_text, likeness, short_name, with_short_names
from dryfit.target.cost import CostEstimate

LISTED_SEGMENTS = 20
"""Segments that are listed unless the text is verbose."""
LISTED_NAMES = 4
"""Layers that are named where many have the same reason."""
FIRST_ONLY = " (values of the first layer; the others differ)"


def placement_blocks(answer: Placement, *, verbose: bool = False, is_built: bool = False) -> Iterator[Block]:
    """Return the outcome, every reason against the requested device, and the segments.

    Args:
        answer: the placement.
        verbose: whether to include every layer, the causes of cuts, and the reformats.
        is_built: whether the engine is already built.
    """
    yield from outcome_lines(answer, is_built=is_built)
    yield Line(heading(answer))
    yield from defaults_line(answer.assumed, answer.overlays)
    if answer.simulated:
        yield Line(f"Simulated: {answer.simulated}.")
    yield Line()
    if verbose:
        rows = [(one.name, one.kind, one.device or "none", one.segment) for one in answer.layers]
        yield Table("Layers", ["layer", "kind", "device", "segment"], rows)
    yield Entries(f"Why layers cannot run on {answer.device}", _reasons(answer, "violations"))
    causes = {one.name: one.cause for one in answer.layers if not one.violations(answer.device)}
    yield Entries("Why layers are placed where they are", other_causes(causes, is_full=verbose))
    yield Entries("Warnings", _reasons(answer, "warnings"))
    yield from segment_blocks(answer, verbose=verbose)
    yield from _precision_lines(answer)
    yield from offloading_blocks(answer, verbose=verbose)
    yield from _refusal_lines(answer)


def defaults_line(defaults: Sequence[str], overlays: Sequence[str] = ()) -> Iterator[Block]:
    """Return a line with the defaults that were applied, if any, and one with the active overlays."""
    if defaults:
        yield Line(f"Defaults: {' '.join(defaults)}")
    yield from overlay_lines(overlays)


def outcome_lines(answer: Placement, *, is_built: bool = False) -> Iterator[Block]:
    """Return the first lines: whether the network builds, and what runs where."""
    if answer.errors:
        first, *others = answer.errors
        more = f" (and {count_text(len(others), 'more problem')})" if others else ""
        where = f"{first.where}: " if first.where and not isinstance(first, PlacementError) else ""
        yield Line(f"Build would fail: {where}{first.message}{more}")
    device = answer.device
    has_work = any(layer.segment is not None for layer in answer.layers)
    if answer.fallback and has_work and device not in answer.summary.segments_by_device:
        number = answer.summary.fallback_layers
        fallen = f"{count_text(number, 'layer')} {'falls' if number == 1 else 'fall'} back"
        rules = Counter(rule for layer in answer.layers for rule in {one.rule for one in layer.violations(device)})
        often = next((f", most often by {rule}" for rule, _ in rules.most_common(1)), "")
        yield Line(f"Nothing runs on {device}: {fallen} to {answer.fallback}{often}")
    yield Line(summary_line(answer, is_built=is_built))


def _refusal_lines(answer: Placement) -> Iterator[Block]:
    """Return the errors of the build; layers and segments already listed are only counted."""
    if answer.errors:
        yield Line("Build errors:")
    for error in answer.errors:
        is_listed = isinstance(error, PlacementError) and _lists_unplaced(answer)
        parts = (f"{error.message}: see above", error.remedy)
        yield Line(f"  {'. '.join(filter(None, parts)) if is_listed else error}")


def _lists_unplaced(answer: Placement) -> bool:
    """Return whether the lists of reasons cover all unplaced layers, as they only cover the requested device."""
    listed = {layer for one in answer.offloading for lost in one.rejected for layer in lost.layers}
    return answer.fallback is None and all(
        layer.name in listed or layer.violations(answer.device) for layer in answer.layers if layer.device is None
    )


def offloading_blocks(answer: Placement, *, verbose: bool = False) -> Iterator[Block]:
    """Return the use of segment memory pools by device: number of granted candidates, their size, and the rest.

    Memory pools that are too small are named.
    """
    for one in answer.offloading:
        needs = pools_text(one.pools)
        in_total = f"; total memory: {needs}" if needs else ""
        yield Line(f"{one.device} segments: {one.offloaded} of {one.candidates} accepted{in_total}")
        lost = [(_span(rejected.layers), rejected.cause, _short(rejected.shortages)) for rejected in one.rejected]
        yield Entries(f"Why segments do not fit {one.device}", lost if verbose else grouped_entries(lost))


def segment_blocks(answer: Placement, *, verbose: bool = False) -> Iterator[Block]:
    """Return the segments, and if `verbose` the causes of their cuts and of reformats."""
    segments = [
        (one.index, one.device, len(one.layers), _span(one.layers, is_full=verbose), pools_text(one.pools))
        for one in answer.segments
    ]
    shown = segments if verbose else segments[:LISTED_SEGMENTS]
    if segments:
        yield Table("Segments", ["segment", "device", "layers", "from .. to", "memory pools"], shown)
    if len(segments) > len(shown):
        yield Line(f"  + {count_text(len(segments) - len(shown), 'more segment')} (--verbose)")
    if not verbose:
        return
    cuts = [(f"segment {one.index}", _cut(one.cut_cause), "") for one in answer.segments if one.cut_cause]
    yield Entries("Why new segments begin", cuts)
    estimates = [
        (f"segment {one.index}", estimate_text(one.estimate), "") for one in answer.segments if one.estimate is not None
    ]
    yield Entries("Estimated cost per inference (not measured)", estimates)
    reformats = [
        (one.tensor, type_text(one.source), type_text(one.destination), bytes_text(one.size), one.cause)
        for one in answer.reformats
    ]
    if reformats:
        yield Table("Reformats", ["tensor", "from", "to", "size", "cause"], reformats)


def _precision_lines(answer: Placement) -> Iterator[Block]:
    """Return the types by device: `ACME_NPU: 10 layers FP16`."""
    for device, counts in answer.summary.precisions_by_device.items():
        (first, count), *others = [(type_text(name), count) for name, count in counts.items()]
        shares = [f"{count_text(count, 'layer')} {first}", *(f"{number} {name}" for name, number in others)]
        yield Line(f"{device}: {', '.join(shares)}")


def operator_blocks(operators: Sequence[OperatorRule], left: Sequence[LeftLayer] = ()) -> Iterator[Block]:
    """Return the rules of quantize methods with their layer counts, and the layers that stay in floating point."""
    rules = Counter((one.method, one.operator, one.formula, one.fidelity, one.source) for one in operators)
    if rules:
        rows = [(method, operator, count, *facts) for (method, operator, *facts), count in rules.items()]
        yield Table("Quantize methods", ["method", "operator", "layers", "formula", "fidelity", "source"], rows)
    yield Entries(
        "Layers that stay in floating point", [(one.layer, f"not by {one.method}: {one.reason}", "") for one in left]
    )


def estimate_text(estimate: CostEstimate) -> str:
    """Return a target's estimate in one line, the time with its error."""
    time = estimate.microseconds
    facts = [
        *([] if time is None else [time_text(time, estimate.error_factor, is_lower_bound=estimate.is_lower_bound)]),
        f"{bytes_text(estimate.bytes_moved)} moved",
        f"{estimate.macs:,} multiply-accumulates",
    ]
    return f"{', '.join(facts)} ({estimate.fidelity}: {estimate.basis})"


def heading(answer: PlacementHeading) -> str:
    """Return the model, device, precisions and fallback of the answer."""
    device = device_text(answer.device, answer.platform, answer.software)
    precisions = ", ".join(word.upper() for word in answer.precisions) or "FP32"
    fallback = f"fallback to {answer.fallback}" if answer.fallback else "no fallback"
    return f"{answer.model} on {device}, {precisions}, {fallback}"


def summary_line(answer: Placement, *, is_built: bool = False) -> str:
    """Return the placement in one line.

    Args:
        answer: the placement.
        is_built: whether the engine is already built; if not, the line states whether a build would succeed.
    """
    summary = answer.summary
    placed = ", ".join(f"{count} on {device}" for device, count in summary.layers_by_device.items())
    unplaced = f", {summary.unplaced_layers} unplaced" if summary.unplaced_layers else ""
    reformats = f"{count_text(summary.reformats, 'reformat')} of {bytes_text(summary.reformat_bytes)}"
    parts = [
        f"{count_text(summary.layers, 'layer')}: {placed or 'none placed'}{unplaced}",
        count_text(summary.segments, "segment"),
        reformats if summary.reformats else "no reformats",
        *([] if is_built else [f"the build would {'fail' if answer.refusals else 'succeed'}"]),
    ]
    return "; ".join(parts)


# Reasons --------------------------------------------------------------------------------------------------------------


def _reasons(answer: Placement, which: str) -> list[tuple[str, str, str]]:
    """Return (layers, reason, remedy) for each rule in the device's verdicts; layers with equal violations are merged.

    If their values differ, those of the first layer are shown. Warnings are included only for layers that run on the
    device.
    """
    layers: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for layer in answer.layers:
        if answer.device not in layer.verdicts or (which == "warnings" and layer.device != answer.device):
            continue
        for one in getattr(layer.verdicts[answer.device], which):
            layers.setdefault((one.rule, one.allowed, one.remedy), []).append((layer.name, one.message))
    reasons = []
    for (rule, _, remedy), alike in layers.items():
        differ = len({message for _, message in alike}) > 1
        reason = f"{with_short_names(alike[0][1])}{FIRST_ONLY if differ else ''} [{rule}]"
        reasons.append((listed_names([name for name, _ in alike]), reason, remedy))
    return reasons


def other_causes(causes: Mapping[str, str], *, is_full: bool = False) -> list[tuple[str, str, str]]:
    """Return (layers, cause, "") for each cause other than the default device and similar ones: plugin votes, moves.

    Args:
        causes: cause by layer name, for layers that the requested device does not reject; the verdicts of the others
            are listed elsewhere.
        is_full: whether each layer has its own entry.
    """
    usual = (DEFAULT_DEVICE, OWN_DEVICE, SHAPE_COMPUTATION)
    entries = [(name, cause, "") for name, cause in causes.items() if cause not in usual]
    return entries if is_full else grouped_entries(entries)


def grouped_entries(entries: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Merge entries of (name, text, remedy) that differ only in names and numbers, and list all names."""
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for entry in entries:
        groups.setdefault((likeness(entry[1]), likeness(entry[2])), []).append(entry)
    found = []
    for members in groups.values():
        _, text, remedy = members[0]
        differ = len({(one[1], one[2]) for one in members}) > 1
        text = f"{with_short_names(text)}{FIRST_ONLY if differ else ''}"
        found.append((listed_names([name for name, _, _ in members]), text, remedy))
    return found


def listed_names(names: Sequence[str]) -> str:
    """Return the first names, shortened, and the number of the others."""
    shown = ", ".join(map(short_name, names[:LISTED_NAMES]))
    return shown if len(names) <= LISTED_NAMES else f"{shown} + {len(names) - LISTED_NAMES} more"


def _short(shortages: Sequence[PoolShortage]) -> str:
    """Return the settings that make a segment fit its pools."""
    wishes = [f"{one.pool} of {bytes_text(1 << (one.needed - 1).bit_length())}" for one in shortages]
    return f"It would fit with {' and '.join(wishes)} (--mem-pool-size)" if wishes else ""


def _cut(cause: str) -> str:
    """Return the cause without the reasons of the layer in between, which are listed before."""
    before, between, _ = cause.partition(" this one: ")
    return before + between.removesuffix(": ")


def _span(layers: Sequence[str], *, is_full: bool = False) -> str:
    ends = [layers[0], layers[-1]] if layers[1:] else layers
    return " .. ".join(ends if is_full else map(table_name, ends))


def pools_text(pools: Mapping[str, int], *, with_empty: bool = False) -> str:
    """Return memory pools with the bytes that they hold; empty pools only if `with_empty`."""
    return ", ".join(f"{pool} {bytes_text(size)}" for pool, size in pools.items() if size or with_empty)


def has_left(layer: LayerAnswer, device: str) -> bool:
    """Return whether the device rejects the layer, or the layer moved away from it."""
    if layer.device is None or layer.violations(device):
        return True
    return layer.device != device and layer.segment is not None and device in layer.verdicts

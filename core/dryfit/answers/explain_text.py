"""Explanations as text: reasons with the affected layers, and a table of suggested edits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dryfit.answers.arithmetic import arithmetic_blocks
from dryfit.answers.model_edits import change_text, changes
from dryfit.answers.placement_text import (
    FIRST_ONLY,
    defaults_line,
    estimate_text,
    heading,
    listed_names,
    operator_blocks,
    other_causes,
)
from dryfit.answers.text import Block, Entries, Line, Table, bytes_text, type_text
from dryfit.short_text import count_text, with_short_names

if TYPE_CHECKING:
    from dryfit.answers.explain import ExplainAnswer
    from dryfit.answers.explained_layers import ExplainedLayer
    from dryfit.answers.reformat_removal import ExplainedReformat


def explanation_blocks(answer: ExplainAnswer) -> Iterator[Block]:
    """Return the lines and tables that `dryfit explain` prints."""
    yield Line(_summary(answer))
    yield Line(heading(answer))
    yield from defaults_line(answer.assumed, answer.overlays)
    if answer.simulated:
        yield Line(f"Simulated: {answer.simulated}.")
    yield Line()
    if answer.layer is not None:
        for layer in answer.layers:
            yield from _layer(answer, layer)
    yield from _leaving_layers(answer)
    yield Entries("Causes", list(_causes(answer)))
    estimates = [
        (f"segment {one.segment} on {one.device}", estimate_text(one.estimate), f"Source: {one.source}.")
        for one in answer.estimates
        if one.estimate is not None
    ]
    yield Entries("Estimated cost per inference (not measured)", estimates)
    yield from arithmetic_blocks(answer.arithmetic)
    yield from operator_blocks(answer.quantized_operators, answer.left)
    yield _remarks(answer)
    yield from _reformats(answer)
    yield from _edits(answer)


def explanation_line(answer: ExplainAnswer) -> str:
    """Return a one-line summary of the explanation."""
    best = answer.together or next(iter(answer.edits), None)
    helps = f"; {best.text} would help" if best is not None else ""
    return f"{heading(answer)}: {_summary(answer)}{helps}"


def _layer(answer: ExplainAnswer, layer: ExplainedLayer) -> Iterator[Block]:
    """Return the text on one requested layer."""
    cause = "" if layer.violations else f", {layer.cause}"
    yield Line(f"{layer.name} ({layer.kind}): {f'on {layer.device}' if layer.device else 'unplaced'}{cause}")
    facts = {
        "ONNX nodes": ", ".join(layer.onnx_nodes),
        "precision": type_text(layer.precision),
        "MACs": f"{layer.macs:,} ({_percent(layer.macs, answer.summary.macs)})",
    }
    for label, value in facts.items():
        yield Line(f"  {label:<11} {value}")
    for one in layer.violations:
        yield Line(f"  violates {one.rule}")
        for label in ("parameter", "actual", "allowed", "remedy", "source", "fidelity"):
            if getattr(one, label):
                yield Line(f"    {label:<9} {getattr(one, label)}")
    yield Line()


def _summary(answer: ExplainAnswer) -> str:
    summary, device = answer.summary, answer.device
    leaving = summary.layers_leaving
    if answer.layer is not None and len(answer.layers) == 1:
        return f"The layer {'does not run' if leaving else 'runs'} on {device}"
    if not leaving:
        return f"All layers run on {device}"
    return (
        f"{leaving} of {summary.layers} layers {'does' if leaving == 1 else 'do'} not run on {device} "
        f"({_percent(summary.macs_leaving, summary.macs)} of {_count(summary.macs)} multiply-accumulates)"
    )


def _leaving_layers(answer: ExplainAnswer) -> Iterator[Block]:
    """Return the layers that leave, with their violated rules; layers of one kind with the same rules are merged."""
    if answer.layer is not None:
        return
    groups: dict[tuple[str, ...], list[ExplainedLayer]] = {}
    for layer in answer.layers:
        if layer.violations:
            groups.setdefault((layer.kind, *(one.rule for one in layer.violations)), []).append(layer)
    entries = []
    for alike in groups.values():
        texts = ["; ".join(f"{one.message} [{one.rule}]" for one in layer.violations) for layer in alike]
        first_only = FIRST_ONLY if len(set(texts)) > 1 else ""
        names = listed_names([layer.name for layer in alike])
        entries.append((f"{names} ({alike[0].kind})", f"{with_short_names(texts[0])}{first_only}", ""))
    yield Entries(f"Layers that cannot run on {answer.device}", entries)


def _causes(answer: ExplainAnswer) -> Iterator[tuple[str, str, str]]:
    for cause in answer.causes:
        share = _percent(cause.macs, answer.summary.macs)
        text = f"{count_text(len(cause.layers), 'layer')}, {share} of multiply-accumulates"
        yield cause.rule, text, f"{cause.remedy or 'No known edit helps'}. ({cause.source})"


def _remarks(answer: ExplainAnswer) -> Entries:
    """Return causes of placements that no rule explains, then warnings and notes of other layers, merged if equal."""
    layers: dict[str, list[str]] = {}
    for layer in answer.layers:
        if layer.supported:
            for one in (*layer.warnings, *layer.notes):
                layers.setdefault(f"{one.message} [{one.rule}]", []).append(layer.name)
    entries = [
        (f"{names[0]} + {len(names) - 1} more" if len(names) > 1 else names[0], text, "")
        for text, names in layers.items()
    ]
    # The cause of a layer that was asked about by name is in its own lines.
    shown = answer.layers if answer.layer is None else []
    causes = {layer.name: layer.cause for layer in shown if not layer.violations}
    return Entries("Notes", [*other_causes(causes), *entries])


def _reformats(answer: ExplainAnswer) -> Iterator[Block]:
    entries: list[tuple[str, str, str]] = []
    for one in answer.reformats:
        is_shown = any(one.rule in text for _, text, _ in entries)
        entries.append((one.tensor, f"{bytes_text(one.size)}, {one.cause} [{one.rule}]", _removal(one, is_shown)))
    yield Entries("Reformats: copies between types, formats or devices", entries)
    together = answer.io_formats
    if together is not None and answer.layer is None:
        before, after = together.before, together.after
        yield Line(
            f"With these input and output formats: {before.reformats} -> {after.reformats} reformats, "
            f"{bytes_text(before.reformat_bytes)} -> {bytes_text(after.reformat_bytes)}: {together.apply}"
        )
        yield Line()


def _removal(one: ExplainedReformat, is_shown: bool) -> str:
    """Return the remedy for a reformat; empty if another reformat of the same rule already shows it."""
    found = one.removed_by
    if found is None:
        return "" if is_shown else f"{one.remedy}."
    return (
        f"Avoidable: with {found.io_format} (verified) {count_text(found.reformats, 'reformat')} "
        f"of {bytes_text(found.reformat_bytes)} remain."
    )


def _edits(answer: ExplainAnswer) -> Iterator[Block]:
    rows = [(one.text, *changes(one.before, one.cost), one.title) for one in answer.edits]
    if rows:
        columns = ["edit", "layers lost", "loadables", "bytes at borders", "change"]
        yield Table("Suggested model edits (each applied alone)", columns, rows)
    elif answer.causes:
        yield Line("No known model edit would help")
    if answer.dynamic_inputs:
        names = ", ".join(answer.dynamic_inputs)
        yield Line(f"The model has dynamic shapes; fix them with --shape NAME=SHAPE (inputs: {names})")
    together = answer.together
    if together is not None:
        yield Line(f"Together: {change_text(together.before, together.cost)}")
    best = together or next(iter(answer.edits), None)
    if best is not None:
        yield Line(f"Apply with: --apply {best.text} -o NEW.onnx")
    unmeasured = [(one.id, one.reason, "") for one in answer.unmeasured_edits]
    yield Entries("Edits that could not be measured", unmeasured)


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

"""The quantization of a network as text: layer precisions, paths of Q/DQ layers, tensor scales, missing scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dryfit.answers.placement_text import defaults_line, heading
from dryfit.answers.text import Block, Entries, Line, Table, type_text
from dryfit.quantization.scale_table import RangeConflict, ScaleEntry
from dryfit.short_text import count_text, short_name, with_short_names

if TYPE_CHECKING:
    from dryfit.answers.explain_quantization import QuantizationAnswer, QuantizationSummary


def quantization_blocks(answer: QuantizationAnswer) -> Iterator[Block]:
    """Return the lines and tables that `dryfit explain --quantization` prints."""
    yield Line(heading(answer))
    if answer.simulated:
        yield Line(f"Simulated: {answer.simulated}.")
    yield from defaults_line(answer.assumed, answer.overlays)
    yield Line()
    layers = [
        (short_name(one.name), one.kind, one.device or "none", type_text(one.precision), with_short_names(one.reason))
        for one in answer.layers
    ]
    if layers:
        yield Table("Precisions", ["layer", "kind", "device", "precision", "because"], layers)
    paths = [
        (
            short_name(one.name),
            one.kind,
            "-" if one.type is None else type_text(one.type),
            one.granularity if one.scale is None else _scale(one.scale),
            one.outcome.value,
            one.path_text,
        )
        for one in answer.quantizations
    ]
    if paths:
        yield Table("Quantizations", ["layer", "kind", "type", "scale", "is", "where, or why not"], paths)
    tensors = [(short_name(one.tensor), _scale(one.scale), with_short_names(one.words)) for one in answer.tensors]
    if tensors:
        yield Table("Scales", ["tensor", "scale", "origin"], tensors)
    yield Entries("Missing scales", [_missing(one) for one in answer.tensors if one.scale is None])
    yield Entries("Contradictions", [_conflict(one) for one in answer.conflicts])
    unknown = [(name, "ignored", "") for name in answer.unknown]
    yield Entries("Scales of tensors that the network does not have", unknown)
    yield Line(summary_text(answer.summary))
    fallen = answer.summary.fallback_layers
    if fallen:
        yield Line(
            f"Not on {answer.device}, including Q/DQ: {fallen}. `dryfit explain` without --quantization shows why."
        )


def _scale(scale: float | None) -> str:
    return "none" if scale is None else f"{scale:.7g}"


def _missing(tensor: ScaleEntry) -> tuple[str, str, str]:
    waiting = f"required by {', '.join(map(short_name, tensor.needed_by))}" if tensor.needed_by else ""
    return short_name(tensor.tensor), with_short_names(tensor.words), waiting


def _conflict(conflict: RangeConflict) -> tuple[str, str, str]:
    text = f"{_scale(conflict.scale)} set by hand, and {_scale(conflict.other_scale)} for {conflict.other!r}"
    return short_name(conflict.tensor), f"{with_short_names(text)}, which shares its range by {conflict.rule}", ""


def summary_text(summary: QuantizationSummary) -> str:
    """Return a one-line summary of the counts."""
    texts = []
    if summary.layers or not summary.quantizations:
        texts.append(f"{count_text(summary.layers, 'layer')}: {_counts(summary.layers_by_precision)}")
    if summary.quantizations:
        texts.append(f"{summary.quantizations} Q/DQ: {_counts(summary.quantizations_by_outcome)}")
    if summary.tensors:
        texts.append(f"Scales of {count_text(summary.tensors, 'tensor')}: {_counts(summary.tensors_by_origin)}")
    if summary.macs:
        shares = {type_text(name): count / summary.macs for name, count in summary.macs_by_type.items()}
        texts.append(f"Multiply-accumulates: {', '.join(f'{share:.1%} {name}' for name, share in shares.items())}")
    return f"{'. '.join(texts)}."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {type_text(name)}" for name, count in counts.items()) or "none"

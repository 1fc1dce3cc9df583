"""What `dryfit explain --quantization` tells, as plain data: precisions of layers, scales of tensors, paths of Q/DQ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.answers.asked import load_network
from dryfit.answers.defaults import with_defaults
from dryfit.answers.json_data import plain
from dryfit.answers.options import NetworkOptions
from dryfit.answers.placement import placement_of
from dryfit.answers.placement_text import unknown_layer
from dryfit.answers.quantization_trace import trace_quantizations
from dryfit.builder.assessment import assessment_of
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.building import design_for_assessment
from dryfit.cli.network_config import create_config
from dryfit.cli.quantization_paths import integer_share, traced_data

if TYPE_CHECKING:
    from dryfit.answers.quantization_trace import QuantizationTrace, TracedQuantization
    from dryfit.builder.assessment import Assessment
    from dryfit.engine.plan import LayerPlacement
    from dryfit.quantization.scale_table import RangeConflict, ScaleEntry

Report = dict[str, Any]

HEAD = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")
"""Keys that are those of a placement report."""


def quantization_report(path: Path, layer_name: str | None, options: NetworkOptions) -> Report:
    """The precision of each layer with its reason, the scale of each tensor, and where each Q/DQ ended up.

    Without a precision and a fallback some are assumed, as `dryfit.answers.defaults` has it; a network with
    Q/DQ needs no precision.

    Args:
        path: the model.
        layer_name: a layer, or an ONNX node; None for all. Tensors and Q/DQ are then those of these layers.
        options: what was asked for.

    Raises:
        UnknownNameError: there is no such layer.
        DryfitError: the model cannot be imported, or the options do not fit it.
    """
    network = load_network(path, options)
    is_stated = is_explicit(network)
    options, assumed = with_defaults(options, None if is_stated else "int8")
    config = create_config(network, options)
    design = design_for_assessment(network, config)
    assessment = assessment_of(design, config)
    trace = trace_quantizations(network, design, config)
    placement = plain(placement_of(str(path), assessment, config.settings(network)))
    layers, quantizations = _chosen(assessment, trace, layer_name)
    names = {layer.layer for layer in layers}
    entries = [
        entry
        for entry in assessment.scales.entries.values()
        if not is_stated and (layer_name is None or names.intersection(entry.needed_by))
    ]
    described = [_layer(layer, assessment, trace.computed_in.get(layer.layer)) for layer in layers]
    return {
        **{key: placement[key] for key in HEAD},
        "assumed": assumed,
        "layer": layer_name,
        "layers": described,
        "quantizations": [traced_data(one) for one in quantizations],
        "tensors": [_tensor(entry) for entry in entries],
        "conflicts": [_conflict(conflict) for conflict in assessment.scales.conflicts],
        "unknown": list(assessment.scales.unknown),
        "warnings": list(assessment.warnings),
        "summary": {
            "layers": len(layers),
            "fallback_layers": placement["summary"]["fallback_layers"],
            "layers_by_precision": _counted(one["precision"] for one in described),
            "quantizations": len(quantizations),
            "quantizations_by_outcome": _counted(one.outcome.value for one in quantizations),
            "tensors": len(entries),
            "tensors_by_origin": _counted(entry.origin.value for entry in entries),
            "macs": sum(trace.macs_by_type.values()),
            "macs_by_type": dict(trace.macs_by_type),
            "macs_integer_share": integer_share(trace.macs_by_type),
        },
    }


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _chosen(
    assessment: Assessment, trace: QuantizationTrace, name: str | None
) -> tuple[list[LayerPlacement], list[TracedQuantization]]:
    """The layers of a name, or of an ONNX node's name, and the Q/DQ of their steps; all of them where none is given."""
    quantizations = list(trace.quantizations)
    traced = {one.layer.name for one in quantizations}
    layers = [one for one in assessment.layers if one.layer not in traced]
    if name is None:
        return layers, quantizations
    found = [one for one in layers if one.layer == name] or [one for one in layers if name in one.onnx_nodes]
    names = {one.layer for one in found}
    beside = [
        one
        for one in quantizations
        if one.layer.name == name or name in one.layer.onnx_nodes or names.intersection((one.layer.name, *one.steps))
    ]
    if not found and not beside:
        known = {one.layer for one in layers} | {node for one in layers for node in one.onnx_nodes}
        known |= {one.layer.name for one in quantizations}
        raise unknown_layer(name, known)
    return found, beside


def _layer(layer: LayerPlacement, assessment: Assessment, operands: str | None) -> dict[str, Any]:
    """A layer with its precision, which is that of its operands where these are quantized."""
    reason = assessment.reasons.get(layer.layer)
    text = layer.cause if reason is None else reason.text
    return {
        "name": layer.layer,
        "kind": layer.kind,
        "onnx_nodes": list(layer.onnx_nodes),
        "device": layer.device or None,
        "precision": operands or layer.precision.name,
        "cause": None if reason is None else reason.cause.value,
        "reason": f"Its step reads {operands}, as the Q/DQ around it say" if operands else text,
        "missing_scales": [] if reason is None else list(reason.tensors),
    }


def _tensor(entry: ScaleEntry) -> dict[str, Any]:
    found = entry.dynamic_range
    return {
        "name": entry.tensor,
        "scale": None if found is None else found.scale,
        "range": None if found is None else [found.minimum, found.maximum],
        "origin": entry.origin.value,
        "sources": list(entry.sources),
        "rule": entry.rule,
        "reason": entry.words,
        "needed_by": list(entry.needed_by),
    }


def _conflict(conflict: RangeConflict) -> dict[str, Any]:
    return {
        "tensor": conflict.tensor,
        "scale": conflict.scale,
        "other": conflict.other,
        "other_scale": conflict.other_scale,
        "rule": conflict.rule,
    }

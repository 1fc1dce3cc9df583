"""What `dryfit explain --quantization` tells, as plain data: the precision of each layer, the scale of each tensor."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.builder.assessment import assess
from dryfit.cli.network_options import NetworkOptions, create_config, load_model
from dryfit.cli.placement_report import placement_report
from dryfit.errors import UnknownNameError

if TYPE_CHECKING:
    from dryfit.builder.assessment import Assessment
    from dryfit.engine.plan import LayerPlacement
    from dryfit.quantization.scale_table import RangeConflict, ScaleEntry

Report = dict[str, Any]

HEAD = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")
"""Keys that are those of a placement report."""


def quantization_report(path: Path, layer_name: str | None, options: NetworkOptions, assumed: list[str]) -> Report:
    """The precision of each layer with its reason, and the scale of each tensor with its origin.

    Args:
        path: the model.
        layer_name: a layer, or an ONNX node; None for all. Tensors are then those of these layers.
        options: what was asked for, assumptions included.
        assumed: those in words.

    Raises:
        UnknownNameError: there is no such layer.
        DryfitError: the model cannot be imported, or the options do not fit it.
    """
    network = load_model(path, options.shapes)
    config = create_config(network, options)
    assessment = assess(network, config)
    placement = placement_report(str(path), assessment, config.settings(network))
    layers = _chosen(assessment, layer_name)
    names = {layer.layer for layer in layers}
    entries = [
        entry
        for entry in assessment.scales.entries.values()
        if layer_name is None or names.intersection(entry.needed_by)
    ]
    return {
        **{key: placement[key] for key in HEAD},
        "assumed": assumed,
        "layer": layer_name,
        "layers": [_layer(layer, assessment) for layer in layers],
        "tensors": [_tensor(entry) for entry in entries],
        "conflicts": [_conflict(conflict) for conflict in assessment.scales.conflicts],
        "unknown": list(assessment.scales.unknown),
        "warnings": list(assessment.warnings),
        "summary": {
            "layers": len(layers),
            "layers_by_precision": dict(sorted(Counter(layer.precision.name for layer in layers).items())),
            "tensors": len(entries),
            "tensors_by_origin": dict(sorted(Counter(entry.origin.value for entry in entries).items())),
        },
    }


def _chosen(assessment: Assessment, name: str | None) -> list[LayerPlacement]:
    """The layers of a name, or of an ONNX node's name; all of them where none is given."""
    layers = list(assessment.layers)
    if name is None:
        return layers
    found = [one for one in layers if one.layer == name] or [one for one in layers if name in one.onnx_nodes]
    if not found:
        known = {one.layer for one in layers} | {node for one in layers for node in one.onnx_nodes}
        raise UnknownNameError("layer or ONNX node", name, known)
    return found


def _layer(layer: LayerPlacement, assessment: Assessment) -> dict[str, Any]:
    reason = assessment.reasons.get(layer.layer)
    return {
        "name": layer.layer,
        "kind": layer.kind,
        "onnx_nodes": list(layer.onnx_nodes),
        "device": layer.device or None,
        "precision": layer.precision.name,
        "cause": None if reason is None else reason.cause.value,
        "reason": layer.cause if reason is None else reason.text,
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

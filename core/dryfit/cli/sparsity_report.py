"""What `dryfit sparsity check` tells, as plain data: the JSON that its `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.conditions import PERCENT, FailCondition, Outcome, beginnings
from dryfit.answers.options import NetworkOptions
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.onnx.model_file import ModelSource
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.builder.sparse_weights import LayerSparsity
    from dryfit.target.verdict import Violation

Report = dict[str, Any]

NOTE = (
    "Skipped zeros are time that the device saves by its documents; nothing was measured. Here all weights are "
    "multiplied, so results are those of the dense kernels, bit for bit."
)


def sparsity_report(
    model: Path, options: NetworkOptions, assumed: Sequence[str], source: ModelSource | None = None
) -> Report:
    """What there is to say of each layer with weights.

    Args:
        model: an ONNX file.
        options: what was asked.
        assumed: options that were taken because nothing was said.
        source: the model itself, where it is not what stands in the file.

    Raises:
        DryfitError: the model cannot be imported, or the options do not fit it.
    """
    from dryfit.builder.placement.target_variant import TargetVariant
    from dryfit.builder.sparse_weights import network_sparsity
    from dryfit.building import design_for_assessment

    network = load_network(model if source is None else source, options, model.parent)
    require_shapes(network, options.shape)
    config = create_config(network, options)
    default = TargetVariant.chosen(config, config.default_device_type)
    with log_to_stderr(None):
        design = design_for_assessment(network, config)
        found = network_sparsity(design, default)
    sparsity = default.target.sparsity
    total = sum(one.macs for one in found)
    layers = [_layer(one, total) for one in found]
    return {
        "model": str(model),
        "device": default.device,
        "platform": default.platform.name,
        "software": default.software_text,
        "precisions": list(options.precision),
        "fallback": config.fallback_device,
        "assumed": list(assumed),
        "pattern": None if sparsity is None else sparsity.pattern.text,
        "note": NOTE,
        "layers": layers,
        "summary": _summary(layers, total),
    }


def _layer(one: LayerSparsity, total: int) -> Report:
    verdict = one.verdict
    return {
        "name": one.layer,
        "kind": one.kind,
        "onnx_nodes": list(one.onnx_nodes),
        "device": one.device or None,
        "asked": one.asked,
        "macs": one.macs,
        "macs_share": one.macs / total if total else 0.0,
        "eligible": one.is_eligible,
        "has_pattern": one.has_pattern,
        "sparse": one.is_sparse,
        "violations": [] if verdict is None else _records(verdict.violations),
        "warnings": [] if verdict is None else _records(verdict.warnings),
        "notes": [] if verdict is None else _records(verdict.notes),
    }


def _records(violations: Iterable[Violation]) -> list[dict[str, Any]]:
    return [attrs.asdict(one) for one in violations]


def _summary(layers: Sequence[Report], total: int) -> Report:
    def share(key: str) -> float:
        return sum(one["macs"] for one in layers if one[key]) / total if total else 0.0

    return {
        "layers": len(layers),
        "eligible": sum(one["eligible"] for one in layers),
        "unpruned": sum(one["eligible"] and not one["has_pattern"] for one in layers),
        "sparse": sum(one["sparse"] for one in layers),
        "macs": total,
        "eligible_macs_share": share("eligible"),
        "sparse_macs_share": share("sparse"),
    }


def sparsity_outcomes(conditions: Sequence[FailCondition], report: Report) -> list[Outcome]:
    """What each condition finds in a report."""
    return [_outcome(condition, report) for condition in conditions]


def _outcome(condition: FailCondition, report: Report) -> Outcome:
    match condition.subject:
        case "dense":
            meant = [one for one in report["layers"] if not one["sparse"]]
        case "ineligible":
            meant = [one for one in report["layers"] if not one["eligible"]]
        case "unpruned":
            meant = [one for one in report["layers"] if one["eligible"] and not one["has_pattern"]]
        case subject:
            meant = [one for one in report["layers"] if subject in _failed(one)]
    share = 100 * sum(one["macs_share"] for one in meant)
    words = f"{count_text(len(meant), 'layer')}, {share:.1f} % of the multiply-accumulates"
    return condition.outcome(share if condition.unit == PERCENT else len(meant), words)


def _failed(layer: Report) -> set[str]:
    """The ids of the rules that stand against a layer, and their beginnings; notes are none of them."""
    told = [*layer["violations"], *layer["warnings"]]
    return {beginning for one in told for beginning in beginnings(one["rule"])}

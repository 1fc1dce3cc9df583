"""What a device has against the layers of a model: each layer with its rules, and each failed rule with its layers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.answers.json_data import Count, Share
from dryfit.answers.model_edits import PlacedModel
from dryfit.answers.placement import LayerAnswer, PlacedLayer
from dryfit.onnx.editing.edit import all_edits
from dryfit.target.verdict import Violation


@attrs.frozen
class ExplainedLayer(PlacedLayer):
    """A layer with what the device that was asked for has against it.

    Attributes:
        macs: multiply-accumulates of one run; dynamic extents count as 1.
        supported: whether the device that was requested takes it; None for what no device was requested.
        violations: every rule that the layer fails there.
        warnings: rules that do not decide, and did not hold.
        notes: what the device does with the layer that was not asked for.
    """

    macs: Count
    supported: bool | None
    violations: Sequence[Violation]
    warnings: Sequence[Violation]
    notes: Sequence[Violation]


@attrs.frozen
class FailedRule:
    """A rule that layers fail.

    Attributes:
        rule: id of the rule.
        remedy: what can be done; may be empty.
        source: document and section.
        fidelity: `documented`, `inferred` or `confirmed`.
        layers: the layers that fail it, each once.
        macs: multiply-accumulates of these layers.
        macs_share: those as a share of all.
        edits: ids of the edits that may cure it, whether or not they can be made here.
    """

    rule: str
    remedy: str
    source: str
    fidelity: str
    layers: Sequence[str]
    macs: Count
    macs_share: Share
    edits: Sequence[str]


@attrs.frozen
class ExplainSummary:
    """Counts over the layers that were explained; loadables and bytes are those of the whole network.

    Attributes:
        layers: number of layers in the network.
        layers_leaving: those that leave the device that was requested.
        macs: multiply-accumulates of the whole network.
        macs_leaving: those of the layers that leave.
        macs_leaving_share: `macs_leaving` as a share of `macs`.
        loadables: number of segments on the device.
        border_bytes: bytes that are copied between types, formats or devices; None where that is not known.
    """

    layers: Count
    layers_leaving: Count
    macs: Count
    macs_leaving: Count
    macs_leaving_share: Share
    loadables: Count
    border_bytes: Count | None


def explained_layer(found: PlacedModel, layer: LayerAnswer) -> ExplainedLayer:
    """The layer with what its device has against it."""
    verdict = layer.verdicts.get(found.placement.device)
    return ExplainedLayer(
        **{field.name: getattr(layer, field.name) for field in attrs.fields(PlacedLayer)},
        macs=found.macs.get(layer.name, 0),
        supported=None if verdict is None else verdict.supported,
        violations=() if verdict is None else verdict.violations,
        warnings=() if verdict is None else verdict.warnings,
        notes=() if verdict is None else verdict.notes,
    )


def failed_rules(found: PlacedModel, leaving: Sequence[LayerAnswer]) -> list[FailedRule]:
    """Each failed rule with the layers that fail it; that of the most multiply-accumulates first."""
    layers: dict[str, dict[str, Violation]] = {}
    for layer in leaving:
        for one in layer.violations(found.placement.device):
            layers.setdefault(one.rule, {}).setdefault(layer.name, one)
    total = sum(found.macs.values())
    causes = []
    for rule, failed in layers.items():
        first = next(iter(failed.values()))
        macs = sum(found.macs.get(name, 0) for name in failed)
        causes.append(
            FailedRule(
                rule=rule,
                remedy=first.remedy,
                source=first.source,
                fidelity=first.fidelity,
                layers=list(failed),
                macs=macs,
                macs_share=_share(macs, total),
                edits=[edit.id for edit in all_edits().values() if edit.may_cure([rule])],
            )
        )
    return sorted(causes, key=lambda cause: (-cause.macs, -len(cause.layers), cause.rule))


def summary_of(found: PlacedModel, leaving: Sequence[LayerAnswer], layers: int) -> ExplainSummary:
    """Counts over layers of a model.

    Args:
        found: the model.
        leaving: those of the layers that leave the device.
        layers: how many were explained.
    """
    total = sum(found.macs.values())
    macs = sum(found.macs.get(layer.name, 0) for layer in leaving)
    cost = found.cost
    return ExplainSummary(layers, len(leaving), total, macs, _share(macs, total), cost.loadables, cost.border_bytes)


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0

"""The layers that a device rejects: each layer with its violated rules, and each violated rule with its layers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.answers.json_data import Count, Share
from dryfit.answers.model_edits import PlacedModel
from dryfit.answers.placement import LayerAnswer, PlacedLayer
from dryfit.attrs_classes import frozen
from dryfit.onnx.editing.edit import all_edits
from dryfit.target.verdict import Violation


@frozen
class ExplainedLayer(PlacedLayer):
    """A layer with the rules of the requested device that it violates.

    Attributes:
        macs: multiply-accumulates per run; dynamic extents count as 1.
        supported: whether the requested device supports the layer; None without a requested device.
        violations: every rule of that device that the layer violates.
        warnings: violated rules that do not reject the layer.
        notes: further information on how the device handles the layer.
    """

    macs: Count
    supported: bool | None
    violations: Sequence[Violation]
    warnings: Sequence[Violation]
    notes: Sequence[Violation]


@frozen
class FailedRule:
    """A rule that layers violate.

    Attributes:
        rule: id of the rule.
        remedy: how to fix the violation; may be empty.
        source: document and section.
        fidelity: `documented`, `inferred` or `confirmed`.
        layers: layers that violate the rule, each listed once.
        macs: multiply-accumulates of these layers.
        macs_share: multiply-accumulates of these layers as a share of all.
        edits: ids of the edits that can fix the violation, whether or not they apply to this model.
    """

    rule: str
    remedy: str
    source: str
    fidelity: str
    layers: Sequence[str]
    macs: Count
    macs_share: Share
    edits: Sequence[str]


@frozen
class ExplainSummary:
    """Counts over the explained layers; loadables and bytes are those of the whole network.

    Attributes:
        layers: number of layers in the network.
        layers_leaving: number of layers that leave the requested device.
        macs: multiply-accumulates of the whole network.
        macs_leaving: multiply-accumulates of the layers that leave.
        macs_leaving_share: `macs_leaving` as a share of `macs`.
        loadables: number of segments on the device.
        border_bytes: bytes copied between types, formats or devices; None if unknown.
    """

    layers: Count
    layers_leaving: Count
    macs: Count
    macs_leaving: Count
    macs_leaving_share: Share
    loadables: Count
    border_bytes: Count | None


def explained_layer(found: PlacedModel, layer: LayerAnswer) -> ExplainedLayer:
    """Return the layer with the rules that it violates on its device."""
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
    """Return each violated rule with its layers, the one with the most multiply-accumulates first."""
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
    """Return the counts over the layers of a model.

    Args:
        found: the placed model.
        leaving: layers that leave the device.
        layers: number of explained layers.
    """
    total = sum(found.macs.values())
    macs = sum(found.macs.get(layer.name, 0) for layer in leaving)
    cost = found.cost
    return ExplainSummary(layers, len(leaving), total, macs, _share(macs, total), cost.loadables, cost.border_bytes)


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0

"""What `dryfit explain` tells, as plain data: the JSON that its `--json` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from dryfit.answers.options import NetworkOptions
from dryfit.answers.placement_text import unknown_layer
from dryfit.answers.reformat_removal import find_removals
from dryfit.cli.arithmetic_report import arithmetic_report
from dryfit.cli.explain_apply import Placed, cost_data, fixed_shapes, measured, place
from dryfit.cli.explain_reformats import reformat_report
from dryfit.engine.progress import ProgressMonitor
from dryfit.onnx.edit_report import EditReport, Proposal, propose_edits
from dryfit.onnx.editing.edit import all_edits
from dryfit.onnx.model_file import read_model

Report = dict[str, Any]


def explain_report(
    path: Path,
    layer_name: str | None,
    options: NetworkOptions,
    assumed: list[str],
    *,
    with_edits: bool,
    progress: ProgressMonitor | None = None,
) -> Report:
    """Everything about a model, or about one layer of it.

    Args:
        path: the model.
        layer_name: name of a layer or of an ONNX node; None for all layers.
        options: what was asked for, assumptions included.
        assumed: those in words.
        with_edits: whether to look for edits, and for formats of inputs and outputs.
        progress: is told of the placement and of everything that is tried; None for nobody.

    Raises:
        UnknownNameError: there is no such layer.
        DryfitError: the model cannot be imported, or the options do not fit it.
    """
    model, external = read_model(path)
    folder = path.parent
    placed = place(str(path), model, options, folder, progress)
    chosen = _chosen(placed, layer_name)
    leaving = [layer for layer in placed.leaving if layer in chosen]
    causes = _causes(placed, leaving)
    found = removals = None
    if with_edits:
        removals = find_removals(placed.network, placed.config, placed.design)
        nodes = None if layer_name is None else {node for layer in chosen for node in layer["onnx_nodes"]}
        rules = [cause["rule"] for cause in causes]
        found = propose_edits(
            model,
            external,
            lambda one: measured(one, options, folder, progress),
            rules,
            fixed_shapes(options),
            nodes,
            cost=placed.cost,
            progress=progress,
        )
    top = ("model", "device", "platform", "software", "precisions", "fallback", "simulated", "plugins")
    return {
        **{key: placed.report[key] for key in top},
        "assumed": assumed,
        "layer": layer_name,
        "layers": [_layer(placed, layer) for layer in chosen],
        "causes": causes,
        "estimates": [
            {"segment": one["id"], "device": one["device"], **one["estimate"]}
            for one in placed.report["segments"]
            if "estimate" in one
        ],
        "arithmetic": arithmetic_report(chosen, placed.config.settings(placed.network)),
        "quantized_operators": [
            one for one in placed.report["quantized_operators"] if _is_chosen(one["layer"], chosen)
        ],
        "left": [attrs.asdict(one) for one in placed.left if _is_chosen(one.layer, chosen)],
        **reformat_report(placed.report, removals, placed.network, [layer["name"] for layer in chosen]),
        "dynamic_inputs": [tensor.name for tensor in placed.network.inputs if -1 in tensor.shape],
        "summary": _summary(placed, leaving, len(chosen)),
        "edits": [] if found is None else [_proposal(one, found) for one in found.proposals],
        "together": None if found is None or found.together is None else _proposal(found.together, found),
        "unmeasured_edits": []
        if found is None
        else [{"id": choice, "reason": why} for choice, why in found.unmeasured.items()],
    }


def _chosen(placed: Placed, name: str | None) -> list[dict[str, Any]]:
    """The layers of a name, or of an ONNX node's name; all of them where none is given."""
    layers: list[dict[str, Any]] = placed.report["layers"]
    if name is None:
        return layers
    found = [layer for layer in layers if layer["name"] == name] or [one for one in layers if name in one["onnx_nodes"]]
    if not found:
        known = {layer["name"] for layer in layers} | {node for layer in layers for node in layer["onnx_nodes"]}
        raise unknown_layer(name, known)
    return found


def _is_chosen(layer: str, chosen: list[dict[str, Any]]) -> bool:
    return any(layer == one["name"] for one in chosen)


def _layer(placed: Placed, layer: dict[str, Any]) -> dict[str, Any]:
    device = placed.report["device"]
    verdict = layer["verdicts"].get(device, {"supported": None, "violations": [], "warnings": []})
    return {
        **{key: layer[key] for key in ("name", "kind", "onnx_nodes", "device", "segment", "precision", "cause")},
        "macs": placed.macs.get(layer["name"], 0),
        "supported": verdict["supported"],
        "violations": verdict["violations"],
        "warnings": verdict["warnings"],
        "notes": verdict.get("notes", []),
    }


def _causes(placed: Placed, leaving: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each failed rule with the layers that fail it; that of the most multiply-accumulates first."""
    causes: dict[str, dict[str, Any]] = {}
    device, total = placed.report["device"], sum(placed.macs.values())
    for layer in leaving:
        macs = placed.macs.get(layer["name"], 0)
        for one in layer["verdicts"].get(device, {"violations": ()})["violations"]:
            first = {key: one[key] for key in ("rule", "remedy", "source", "fidelity")}
            cause = causes.setdefault(one["rule"], {**first, "layers": [], "macs": 0})
            if layer["name"] not in cause["layers"]:
                cause["layers"].append(layer["name"])
                cause["macs"] += macs
    for cause in causes.values():
        cause["macs_share"] = _share(cause["macs"], total)
        cause["edits"] = [edit.id for edit in all_edits().values() if edit.may_cure([cause["rule"]])]
    return sorted(causes.values(), key=lambda cause: (-cause["macs"], -len(cause["layers"]), cause["rule"]))


def _summary(placed: Placed, leaving: list[dict[str, Any]], layers: int) -> dict[str, Any]:
    total = sum(placed.macs.values())
    macs = sum(placed.macs.get(layer["name"], 0) for layer in leaving)
    cost = placed.cost
    return {
        "layers": layers,
        "layers_leaving": len(leaving),
        "macs": total,
        "macs_leaving": macs,
        "macs_leaving_share": _share(macs, total),
        "loadables": cost.loadables,
        "border_bytes": cost.border_bytes,
    }


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0


def _proposal(proposal: Proposal, found: EditReport) -> dict[str, Any]:
    edits = list(dict.fromkeys(choice.edit for choice in proposal.choices))
    return {
        "apply": proposal.text,
        "title": "; ".join(edit.title for edit in edits),
        "changes": [edit.changes for edit in edits],
        "source": [edit.source for edit in edits],
        "nodes": list(proposal.places),
        "before": cost_data(found.cost),
        "after": cost_data(proposal.cost),
        "saved": cost_data(proposal.saved),
    }

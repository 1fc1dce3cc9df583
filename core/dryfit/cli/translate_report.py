"""What `dryfit translate` tells, as plain data: the keys of `translate.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from dryfit.builder.decisions import layer_placements
from dryfit.builder.design import Design
from dryfit.onnx.translation.agreement import Agreement
from dryfit.onnx.translation.carried_scales import CarriedScale
from dryfit.onnx.translation.explicit_model import ExplicitModel
from dryfit.onnx.translation.implicit_model import ImplicitModel
from dryfit.quantization.scale_table import RangeOrigin, ScaleEntry

Report = dict[str, Any]


def from_design(design: Design, translated: ExplicitModel) -> Report:
    """The parts of a report on a Q/DQ model that was made from scales."""
    scales = design.network_scales.table
    entries = scales.entries.values()
    placed = [one for one in layer_placements(design) if one.layer in design.precisions.converted]
    return {
        "tensors": [_design_tensor(one, translated) for one in entries],
        "layers": [
            {
                "name": one.layer,
                "nodes": list(one.onnx_nodes),
                "precision": one.precision.name,
                "output_type": None,
                "missing": [],
            }
            for one in placed
        ],
        "weights": [],
        "unequal": [_conflict(one.tensor, one.scale, one.other, one.other_scale, one.rule) for one in scales.conflicts],
        "borders": [],
        "notes": list(translated.notes),
    }


def from_implicit(translated: ImplicitModel, notes: Sequence[str]) -> Report:
    """The parts of a report on scales and precisions that were made from a Q/DQ model."""
    return {
        "tensors": [_carried_tensor(one, translated) for one in translated.carried.entries.values()],
        "layers": [
            {
                "name": one.layer,
                "nodes": list(one.nodes),
                "precision": one.precision.name,
                "output_type": None if one.output_type is None else one.output_type.name,
                "missing": list(one.missing),
            }
            for one in translated.layers
        ],
        "weights": [attrs.asdict(one) for one in translated.plain.requantized],
        "unequal": [
            _conflict(one.tensor, one.scale, one.other, one.other_scale, one.rule)
            for one in translated.carried.conflicts
        ],
        "borders": [{"name": name, "scale": scale} for name, scale in translated.plain.integer_borders.items()],
        "notes": list(notes),
    }


def agreement_data(agreement: Agreement | None) -> Report | None:
    """A comparison; None where none was made."""
    if agreement is None:
        return None
    return {
        "samples": agreement.samples,
        "tensors": [
            {
                "name": one.tensor,
                "output": one.is_output,
                "elements": one.elements,
                "different": one.different,
                "largest_codes": one.largest_codes,
                "largest_difference": one.largest_difference,
                "decibels": one.decibels,
            }
            for one in agreement.tensors
        ],
        "inside": agreement.inside,
        "codes": agreement.codes,
        "different": agreement.different,
        "largest_codes": agreement.largest_codes,
    }


def summary(report: Report) -> Report:
    """Counts of everything; the subjects of `--fail-on` are among them."""
    proof = report["proof"] or {"largest_codes": 0, "different": 0}
    return {
        "layers": len(report["layers"]),
        "int8": sum(one["precision"] == "INT8" for one in report["layers"]),
        "tensors": len(report["tensors"]),
        "scales": sum(one["scale"] is not None for one in report["tensors"]),
        "codes": proof["largest_codes"],
        "different": proof["different"],
        "missing": sum(one["scale"] is None for one in report["tensors"]),
        "lost": sum(bool(one["missing"]) for one in report["layers"]),
        "unequal": len(report["unequal"]),
        "weights": sum(one["changed_codes"] for one in report["weights"]),
        "notes": len(report["notes"]),
    }


def _design_tensor(entry: ScaleEntry, translated: ExplicitModel) -> Report:
    found = entry.dynamic_range
    return {
        "name": entry.tensor,
        "scale": None if found is None else found.scale,
        "origin": entry.origin.value,
        "source": ", ".join(entry.sources),
        "rule": entry.rule,
        "stated": None,
        "codes": translated.quantized.get(entry.tensor),
    }


def _carried_tensor(one: CarriedScale, translated: ImplicitModel) -> Report:
    is_stated = one.origin is RangeOrigin.CALIBRATED
    return {
        "name": one.tensor,
        "scale": one.scale,
        "origin": "stated" if is_stated else one.origin.value,
        "source": one.source,
        "rule": one.rule,
        "stated": one.scale if is_stated else one.stated,
        "codes": translated.plain.quantized.get(one.tensor),
    }


def _conflict(tensor: str, scale: float, other: str, other_scale: float, rule: str) -> Report:
    return {"tensor": tensor, "scale": scale, "other": other, "other_scale": other_scale, "rule": rule}

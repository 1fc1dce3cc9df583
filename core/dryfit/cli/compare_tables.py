"""The answer of `dryfit compare` for people: one table for each side, and what stands out in it."""

from __future__ import annotations

from typing import Any

from dryfit.answers.comparison.stored_network import MODEL_WEIGHTS
from dryfit.answers.placement_text import listed_names
from dryfit.cli.arithmetic_report import print_arithmetic
from dryfit.cli.compare_report import decibels_text, ratio_text
from dryfit.cli.console import print_line, print_list, print_table
from dryfit.cli.overflow_report import print_overflows
from dryfit.cli.placement_tables import heading
from dryfit.short_text import printable

Report = dict[str, Any]

_COLUMNS = ["tensor", "type", "engine layer", "SQNR dB", "own", "inherited", "saturated", "first difference"]


def print_comparison(report: Report) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.compare_report`.
    """
    print_line(heading(report))
    if report["simulated"]:
        print_line(f"Simulated: {report['simulated']}.")
    count = len(report["samples"])
    print_line(f"{count} sample{'' if count == 1 else 's'}")
    print_arithmetic(report["arithmetic"])
    _print_weights(report)
    for side in report["sides"]:
        _print_side(report, side)
    if report["left_out"]:
        print_line(f"Not compared, since they stand for no tensor of the model: {', '.join(report['left_out'])}")
    failed = [(one["condition"], one["actual"], "") for one in report["conditions"] if one["failed"]]
    print_list("Failed conditions", failed)


def _print_weights(report: Report) -> None:
    """What the weights of the sides are, where they are not the model's."""
    if report["weights"] != MODEL_WEIGHTS:
        print_line(f"Weights of the other sides: {report['weights']}")
    if report["weights_rounded"]:
        print_line(f"Found to within some roundings of FP32: those of {listed_names(report['weights_rounded'])}")
    unknown = [(one["layer"], one["reason"], "") for one in report["weights_unknown"]]
    print_list("Not compared, nor what follows from it, since the engine does not tell the weights of", unknown)


def _print_side(report: Report, side: dict[str, Any]) -> None:
    """One side: its tensors, and the layers to look at."""
    name = side["name"]
    print_line()
    tensors = {one["stored_as"]: one for one in report["tensors"]}
    # A conversion that adds nothing only says again what the tensor before it said.
    shown = [one for one in report["tensors"] if not one["is_conversion"] or _adds(one["differences"][name])]
    if side["arithmetic"]:
        print_arithmetic(side["arithmetic"], f"Arithmetic of {name}")
    else:
        meaning = "the model" if report["weights"] == MODEL_WEIGHTS else "what the engine stores"
        print_line(f"Arithmetic of {name}: {meaning} by its definition, in the types that it has")
    print_table(f"Against {name}", _COLUMNS, [_row(one, one["differences"][name]) for one in shown])
    print_list(f"No own and inherited error, as {name} computes inside of a layer what is read by", _unfed(shown, name))
    print_line(f"{side['differing']} of {side['compared']} tensors differ")
    if side["first_error"] is not None:
        first = tensors[side["first_error"]]
        does = "adds or passes on" if name in first["unfed"] else "adds"
        layer, tensor = (printable(first[key], kept="") for key in ("engine_layer", "tensor"))
        print_line(f"The first layer that {does} an error: {layer}, to {tensor}")
    print_overflows(side["overflows"], name)
    ranked = [
        (tensors[one]["engine_layer"], _own(tensors[one]["differences"][name]), "") for one in side["largest_errors"]
    ]
    print_list("Layers that add most, by signal to the noise that they add, in dB", ranked)


def _unfed(tensors: list[dict[str, Any]], side: str) -> list[tuple[str, str, str]]:
    """(engine layer, what it reads that a side does not store), of the tensors that the side has."""
    return [
        (one["engine_layer"], ", ".join(one["unfed"][side]), "")
        for one in tensors
        if side in one["unfed"] and one["differences"][side] is not None
    ]


def _adds(difference: dict[str, Any] | None) -> bool:
    return difference is not None and bool(difference["own_error"] or difference["own_not_finite"])


def _row(one: dict[str, Any], difference: dict[str, Any] | None) -> tuple[object, ...]:
    saturated = "-" if one["saturation"] is None else f"{one['saturation']:.2%}"
    start = (one["tensor"], one["type"], one["engine_layer"])
    if difference is None:
        return (*start, "not stored there", "-", "-", saturated, "-")
    return (
        *start,
        ratio_text(difference),
        _own(difference),
        _part(difference, "inherited"),
        saturated,
        _place(difference["first"]),
    )


def _own(difference: dict[str, Any]) -> str:
    return _part(difference, "own")


def _part(difference: dict[str, Any], part: str) -> str:
    error = difference[f"{part}_error"]
    if error is None:
        return "-"
    if difference[f"{part}_not_finite"]:
        return "not finite"
    return decibels_text(difference[f"{part}_sqnr_db"], is_equal=error == 0)


def _place(first: dict[str, Any] | None) -> str:
    if first is None:
        return "-"
    return f"{first['index']}: {_number(first['value'])}, there {_number(first['other'])}"


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)

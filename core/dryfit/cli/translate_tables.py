"""A translation for people: what was written, what could not be said, and how well both forms agree."""

from __future__ import annotations

from typing import Any

from dryfit.cli.cache_files import scale_text
from dryfit.cli.console import print_line, print_list, print_table

Report = dict[str, Any]


def print_translation(report: Report, *, rounds_all: bool = False) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.translate_report`.
        rounds_all: whether roundings inside of what devices fuse were kept.
    """
    counts = report["summary"]
    words = "a Q/DQ model" if report["to"] == "qdq" else "implicit scales"
    print_line(
        f"{report['model']} as {words}: {counts['int8']} of {counts['layers']} layers INT8, "
        f"{counts['scales']} of {counts['tensors']} tensors with scales"
    )
    print_table("Files", ["file", "use"], [(one["file"], one["use"]) for one in report["files"]])
    print_list(
        "Missing scales", [(one["name"], "in real numbers", "") for one in report["tensors"] if not one["scale"]]
    )
    lost = [one for one in report["layers"] if one["missing"]]
    print_list("Layers that lose INT8", [(one["name"], f"no scale for {_names(one['missing'])}", "") for one in lost])
    print_list("Unequal scales", [(one["tensor"], _unequal(one), "") for one in report["unequal"]])
    changed = [one for one in report["weights"] if one["changed_codes"]]
    print_list(
        "Weights of which an implicit build finds other codes", [(one["node"], _weights(one), "") for one in changed]
    )
    borders = [
        (one["name"], f"was INT8, and is real now: code times {scale_text(one['scale'])}", "")
        for one in report["borders"]
    ]
    print_list("Inputs and outputs", borders)
    print_list("Notes", [("note", note, "") for note in report["notes"]])
    if report["proof"] is not None:
        _print_proof(report["proof"])
        if report["to"] == "implicit" and report["proof"]["largest_codes"] > 1 and not rounds_all:
            print_line(
                "Most such differences come of roundings inside of what devices fuse, which are left out; "
                "--every-rounding keeps them, and nothing is fused there"
            )


def _print_proof(proof: Report) -> None:
    rows = [
        (
            one["name"],
            one["elements"],
            one["different"],
            one["largest_codes"],
            f"{one['largest_difference']:.6g}",
            "equal" if one["decibels"] is None else f"{one['decibels']:.1f}",
        )
        for one in proof["tensors"]
    ]
    columns = ["tensor", "elements", "different", "largest (codes)", "largest (real)", "dB"]
    print_table(f"Both in integer arithmetic, {proof['samples']} samples", columns, rows)
    if proof["inside"]:
        print_line(f"Not compared, for it exists only inside fused layers: {', '.join(proof['inside'])}")
    print_line(
        f"{proof['different']} of {proof['codes']} codes differ, by {proof['largest_codes']} at most"
        if proof["codes"]
        else "No tensor is in INT8 in both"
    )


def _names(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _unequal(one: Report) -> str:
    scales = f"{scale_text(one['scale'])}, and {scale_text(one['other_scale'])} for {one['other']!r}"
    return f"{scales}, which shares its scale by {one['rule']}"


def _weights(one: Report) -> str:
    return (
        f"{one['changed_codes']} of {one['codes']} codes in {one['channels'] - one['same_channels']} of "
        f"{one['channels']} channels, values by {one['largest_difference']:.3g} of a step at most"
    )

"""The answer of `dryfit compare --methods` for people: for each method where it parts from the first."""

from __future__ import annotations

from typing import Any

from dryfit.cli.compare_report import ratio_text
from dryfit.cli.console import print_line, print_list, print_table
from dryfit.short_text import count_text

Report = dict[str, Any]

_COLUMNS = ["layer", "operator", "type", "codes that differ", "largest", "own", "own largest"]
_LEAST_SHARE = 1e-5


def print_methods(report: Report) -> None:
    """The answer.

    Args:
        report: see `dryfit.cli.compare_methods_report`.
    """
    first, *others = report["methods"]
    print_line(f"{report['model']} by quantize methods, on this machine; others against {first['name']}")
    print_line(f"{count_text(len(report['samples']), 'sample')}")
    methods = [
        (one["name"], one["title"], one["library"] or "-", one["operators"], len(one["left"]))
        for one in report["methods"]
    ]
    print_table("Methods", ["method", "arithmetic", "held against", "layers", "in real numbers"], methods)
    for one in others:
        _print_method(report, one)
    for output in report["outputs"]:
        print_line()
        rows = [_output_row(output, one["name"]) for one in others]
        print_table(f"Output {output['tensor']}", ["method", "elements that differ", "SQNR dB", "other top-1"], rows)
    left: dict[tuple[str, str], list[str]] = {}
    for method in report["methods"]:
        for one in method["left"]:
            left.setdefault((one["layer"], one["reason"]), []).append(method["name"])
    entries = [(layer, f"by {', '.join(names)}: {reason}", "") for (layer, reason), names in left.items()]
    print_list("Layers that stay in real numbers", entries)
    failed = [(one["condition"], one["actual"], "") for one in report["conditions"] if one["failed"]]
    print_list("Failed conditions", failed)


def _print_method(report: Report, method: dict[str, Any]) -> None:
    """Where a method parts from the first."""
    name = method["name"]
    print_line()
    found = [(one, one["differences"][name]) for one in report["layers"]]
    rows = [_row(one, difference) for one, difference in found if difference is None or _differs(difference)]
    if rows:
        print_table(f"{name}: where it differs", _COLUMNS, rows)
    print_line(f"{name}: {method['differing']} of {count_text(method['compared'], 'layer')} give other codes")
    if method["first_parting"] is not None:
        parting = next(one for one in report["layers"] if one["tensor"] == method["first_parting"])
        formulas = parting["formulas"]
        print_line(f"The first layer that parts: {parting['layer']} ({parting['operator']})")
        print_list("Its formulas", [(one, formulas.get(one, "in real numbers"), "") for one in _pair(report, name)])


def _pair(report: Report, name: str) -> tuple[str, str]:
    return report["methods"][0]["name"], name


def _differs(difference: dict[str, Any]) -> bool:
    return bool(difference["differing"] or difference["own_differing"])


def _row(one: dict[str, Any], difference: dict[str, Any] | None) -> tuple[object, ...]:
    start = (one["layer"], one["operator"], one["type"])
    if difference is None:
        return (*start, "not in codes there", "-", "-", "-")
    elements, own = difference["elements"], difference["own_differing"]
    return (
        *start,
        _share(difference["differing"], elements),
        difference["largest"],
        "-" if own is None else _share(own, elements),
        "-" if own is None else difference["own_largest"],
    )


def _share(count: int, elements: int) -> str:
    """A share that is not shown as nothing where it is something."""
    share = count / max(1, elements)
    return f"<{_LEAST_SHARE:.3%}" if 0 < share < _LEAST_SHARE else f"{share:.3%}"


def _output_row(output: dict[str, Any], name: str) -> tuple[object, ...]:
    difference = output["differences"][name]
    share = _share(difference["differing"], difference["elements"])
    top = "-" if output["top_1"] is None else "{changed} of {decisions}".format(**output["top_1"][name])
    return name, share, ratio_text(difference), top

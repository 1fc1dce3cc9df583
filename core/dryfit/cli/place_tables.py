"""A proposed placement for people: what was compared, what changes and why, and the figures before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dryfit.answers.placement_text import listed_names
from dryfit.answers.text import device_text
from dryfit.cli.console import print_defaults, print_line, print_list, print_table
from dryfit.estimate_text import rate_text, time_text, two_digits, with_error
from dryfit.short_text import count_text

Report = dict[str, Any]


def print_proposal(report: Report) -> None:
    """The answer."""
    print_line(_heading(report))
    print_line(report["note"])
    print_defaults(report["assumed"])
    print_line()
    before, after = (next(one for one in report["options"] if one[which]) for which in ("is_before", "is_chosen"))
    rows = [
        (
            "*" if one["is_chosen"] else "",
            _value(one, report["unit"]),
            _counts(one["segments_by_device"]),
            "yes" if one["is_exact"] else "",
            one["title"],
        )
        for one in report["options"]
    ]
    columns = ["", "time" if report["unit"] == "microseconds" else report["unit"], "segments", "exact", "placement"]
    print_table(f"Placements compared for {report['objective']}", columns, rows)
    print_list("Changes, because", [_change(one) for one in report["changes"]])
    if after is not before:
        print_table("Estimates before and after", ["", "before", "after"], _compared(before, after))
    print_list("Basis", [(one["of"], f"{one['basis']} ({one['fidelity']})", one["source"]) for one in report["bases"]])
    if report["lower_bounds"] is not None:
        print_line(_bounded(report["lower_bounds"], report["objective"], is_changed=after is not before))
    print_line(f"{report['compared_by']}.")
    print_line(_conclusion(report, is_changed=after is not before))


def _bounded(bounds: Report, objective: str, *, is_changed: bool) -> str:
    """What a time that is only a bound from below means for the choice."""
    devices, factor = " and ".join(bounds["devices"]), bounds["factor"]
    caution = f"The time of {devices} is a bound from below: what really runs there takes longer, so that for "
    caution += f"{objective} layers are sent there too readily."
    if not is_changed:
        return f"{caution} Nothing is sent there here that would not be there anyway."
    if factor is None:
        return f"{caution} This proposal is the better one however much longer it takes."
    return f"{caution} This proposal is the better one as long as it takes less than {factor:.3g} times as long."


def _heading(report: Report) -> str:
    mode = "" if report["power_mode"] is None else f" in power mode {report['power_mode']}"
    device = device_text(report["device"], report["platform"], report["software"])
    between = f"between {device} and {report['fallback']}"
    return f"Placement of {report['model']} {between}{mode}, for {report['objective']}"


def _value(option: Report, unit: str) -> str:
    """What the objective compares: a time or an energy with its error, or a count."""
    if unit == "microseconds":
        return time_text(option["value"], option["error_factor"], is_lower_bound=bool(option["lower_bounds"]))
    if unit.startswith("multiply-accumulates"):
        return f"{option['value']:,.0f}"
    return with_error(two_digits(option["value"]), option["energy_error_factor"])


def _compared(before: Report, after: Report) -> list[tuple[str, str, str]]:
    texts: list[tuple[str, str, Callable[[Report], str]]] = [
        ("latency", "latency_microseconds", _latency),
        ("throughput, all devices at once", "images_per_second", _rate),
        ("energy", "energy", _energy),
        ("layers", "layers_by_device", lambda one: _counts(one["layers_by_device"])),
        ("segments", "segments_by_device", lambda one: _counts(one["segments_by_device"])),
        ("multiply-accumulates", "macs_by_device", lambda one: _counts(one["macs_by_device"])),
        ("copies between devices", "copies", lambda one: str(one["copies"])),
    ]
    known = [one for one in texts if before[one[1]] is not None or after[one[1]] is not None]
    return [(name, text(before), text(after)) for name, _, text in known]


def _change(change: Report) -> tuple[str, str, str]:
    way = f"{count_text(len(change['layers']), 'layer')} from {change['from']} to {change['to']}"
    return f"{way} ({listed_names(change['layers'])})", change["reason"], ""


def _conclusion(report: Report, *, is_changed: bool) -> str:
    if not is_changed:
        kept = "" if report["output"] is None else f" {report['output']} has the devices that were given, and no more."
        return f"Nothing changes: by this model nothing was found that is better than a build's own placement.{kept}"
    if report["output"] is None:
        return "Give --output FILE to write the placement for `dryfit build --placement FILE`."
    count = count_text(len(report["placement"]), "layer")
    return f"{report['output']}: devices of {count}, for --placement with the same other options."


def _latency(option: Report) -> str:
    bounds = bool(option["lower_bounds"])
    return time_text(option["latency_microseconds"], option["error_factor"], is_lower_bound=bounds)


def _rate(option: Report) -> str:
    bounds = bool(option["lower_bounds"])
    return rate_text(option["images_per_second"], option["error_factor"], is_upper_bound=bounds)


def _energy(option: Report) -> str:
    energy = option["energy"]
    if energy is None:
        return "none"
    return with_error(f"{two_digits(energy['amount'])} {energy['unit']}", option["energy_error_factor"])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {device}" for device, count in counts.items())

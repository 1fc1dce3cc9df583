"""The estimate of a model for people: tables of layers, segments and copies, and the figures of the network."""

from __future__ import annotations

from typing import Any

from dryfit.answers.text import bytes_text, device_text, table_name
from dryfit.cli.console import print_defaults, print_line, print_list, print_table
from dryfit.estimate_text import duration, rate_text, two_digits, with_error

Report = dict[str, Any]


def print_estimate(report: Report) -> None:
    """The answer."""
    print_line(_heading(report))
    print_line(report["note"])
    print_defaults(report["assumed"])
    print_line()
    rows = [
        (
            _names(one["layers"]),
            one["device"],
            two_digits(one["mac_cycles"]),
            bytes_text(one["dram_bytes"]),
            duration(one["microseconds"]),
            one["bound"],
        )
        for one in report["layers"]
    ]
    if rows:
        columns = ["layers that run as one", "device", "MAC cycles", "DRAM", "time", "bound by"]
        print_table(
            "Estimated cost of each step of one run (a single step is less certain than the sum)", columns, rows
        )
    segments = [
        (one["id"], one["device"], one["layers"], one["text"], bytes_text(one["dram_bytes"]))
        for one in report["segments"]
    ]
    print_table("Estimated cost of each segment", ["segment", "device", "layers", "time", "DRAM"], segments)
    copies = [(one["tensor"], one["from"], one["to"], one["text"]) for one in report["transfers"]]
    if copies:
        print_table("Estimated cost of copies between devices", ["tensor", "from", "to", "time"], copies)
    print_list("Basis", _bases(report))
    _print_network(report)


def _print_network(report: Report) -> None:
    network, device = report["network"], report["device"]
    error, bounds = network["latency_error_factor"], network["lower_bounds"]
    print_line(f"Estimates for one run of batch {report['batch']}:")
    bounded = f"; {', '.join(bounds)} at the lower bound of its time" if bounds and error is not None else ""
    print_line(f"  latency (no overlap of segments and copies): {network['latency_text']}{bounded}")
    for one in network["throughput"]:
        count = one["cores"]
        cores = device if len(network["throughput"]) == 1 else f"{count} {device} core{'' if count == 1 else 's'}"
        rate = rate_text(one["images_per_second"], network["busy_error_factor"], is_upper_bound=device in bounds)
        told = f"n/a (no layer runs on {device})" if device not in report["devices"] else rate
        print_line(f"  throughput, {cores}: {told}")
    if network["tops_used"] is not None:
        print_line(f"  {device} utilization at that rate: {two_digits(network['tops_used'])} TOPS")
    if network["pipeline_images_per_second"] is not None:
        rate = rate_text(network["pipeline_images_per_second"], error, is_upper_bound=bool(bounds))
        print_line(f"  throughput, all devices and copies at work at once: {rate}")
    if network["energy"] is not None:
        energy, unit = network["energy"], network["energy"]["unit"]
        scale = "" if unit == "joules" else " (relative)"
        told = with_error(f"{two_digits(energy['amount'])} {unit}", network["energy_error_factor"])
        print_line(f"  energy{scale}: {told}")
    if network["without_time"]:
        print_line(f"  no time is estimated for {', '.join(network['without_time'])}")


def _bases(report: Report) -> list[tuple[str, str, str]]:
    """(device, how it was reckoned, source), each once."""
    found = [(one["device"], f"{one['basis']} ({one['fidelity']})", one["source"]) for one in report["segments"]]
    found += [("copies", one["basis"], one["source"]) for one in report["transfers"]]
    if report["network"]["energy"] is not None:
        found += [
            (f"energy of {one['device']}", f"{one['energy']['basis']} ({one['fidelity']})", one["energy"]["source"])
            for one in report["segments"]
        ]
        drawn = [one["energy"] for one in report["transfers"] if one["energy"] is not None]
        found += [("energy of copies", one["basis"], one["source"]) for one in drawn]
    return list(dict.fromkeys(found))


def _heading(report: Report) -> str:
    mode = "" if report["power_mode"] is None else f" in power mode {report['power_mode']}"
    asked = f"{device_text(report['device'], report['platform'], report['software'])}{mode}"
    if report["device"] in report["devices"]:
        return f"Estimate of {report['model']} on {asked}"
    # Figures of one device must not stand under the name of another.
    used = " and ".join(report["devices"]) or "no device"
    return f"Estimate of {report['model']} on {used}: no layer runs on {asked}"


def _names(layers: list[str]) -> str:
    first = table_name(layers[0])
    return first if len(layers) == 1 else f"{first} + {len(layers) - 1}"

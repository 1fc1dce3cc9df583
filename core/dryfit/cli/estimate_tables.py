"""The estimate of a model for people: tables of layers, segments and copies, and the figures of the network."""

from __future__ import annotations

from typing import Any

from dryfit.cli.assumptions import print_defaults
from dryfit.cli.console import bytes_text, print_line, print_list, print_table

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
            f"{one['mac_cycles']:,}",
            bytes_text(one["dram_bytes"]),
            f"{one['microseconds']:.1f}",
            one["bound"],
        )
        for one in report["layers"]
    ]
    if rows:
        columns = ["layers that run as one", "device", "MAC cycles", "DRAM", "microseconds", "bound by"]
        print_table("Estimated cost of each step of one run", columns, rows)
    segments = [
        (one["id"], one["device"], one["layers"], _time(one["microseconds"]), bytes_text(one["dram_bytes"]))
        for one in report["segments"]
    ]
    print_table("Estimated cost of each segment", ["segment", "device", "layers", "microseconds", "DRAM"], segments)
    copies = [(one["tensor"], one["from"], one["to"], _time(one["microseconds"])) for one in report["transfers"]]
    if copies:
        print_table("Estimated cost of copies between devices", ["tensor", "from", "to", "microseconds"], copies)
    print_list("Basis", _bases(report))
    _print_network(report)


def _print_network(report: Report) -> None:
    network = report["network"]
    device = report["device"]
    print_line(f"Estimates for one run of batch {report['batch']}:")
    latency = network["latency_microseconds"]
    told = "none" if latency is None else f"{latency / 1000:.3f} ms"
    print_line(f"  latency, segments and copies one after the other: {told}")
    for one in network["throughput"]:
        rate = one["images_per_second"]
        told = "none" if rate is None else f"{rate:.1f}"
        print_line(f"  throughput of {one['cores']} {device}, nothing else in its way: {told} images a second")
    if network["tops_used"] is not None:
        print_line(f"  used of all {device} then: {network['tops_used']:.2f} TOPS")
    if network["pipeline_images_per_second"] is not None:
        rate = network["pipeline_images_per_second"]
        print_line(f"  throughput with all devices and copies at work at once: {rate:.1f} images a second")
    if network["energy"] is not None:
        print_line(f"  energy, segments and copies: {network['energy']['amount']:.1f} {network['energy']['unit']}")
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
    variant = " ".join(filter(None, [report["platform"], report["software"]]))
    return f"Estimate of {report['model']} on {report['device']} ({variant}){mode}"


def _names(layers: list[str]) -> str:
    return layers[0] if len(layers) == 1 else f"{layers[0]} + {len(layers) - 1}"


def _time(microseconds: float | None) -> str:
    return "none" if microseconds is None else f"{microseconds:.1f}"

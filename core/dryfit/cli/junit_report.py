"""A check as JUnit XML.

Each layer is a test: it passes where it runs on the device that it was given, and is skipped, with every reason, where
it does not. The build is one too, which is skipped where it would be refused.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.cli.fail_conditions import Outcome
from dryfit.cli.junit_document import case, junit_document

Report = dict[str, Any]


def junit_text(report: Report, outcomes: Sequence[Outcome], own_devices: Mapping[str, str]) -> str:
    """The document.

    Args:
        report: see `dryfit.cli.placement_report`.
        outcomes: of the conditions.
        own_devices: layer name to device, for layers that have one of their own.
    """
    layers = [_layer(layer, own_devices.get(layer["name"], report["device"])) for layer in report["layers"]]
    build = [case("build", report["model"], " ".join(report["refusals"]))]
    return junit_document("dryfit check", report["model"], outcomes, {"layers": layers, "build": build})


def _layer(layer: dict[str, Any], wanted: str) -> ET.Element:
    # A shape computation has no segment, runs on the host, and was never meant to go elsewhere.
    skipped = ""
    if layer["device"] != wanted and (layer["segment"] is not None or layer["device"] is None):
        found = layer["verdicts"].get(wanted, {}).get("violations", ())
        reasons = [f"{one['message']} [{one['rule']}]" for one in found] or [layer["cause"]]
        place = f"runs on {layer['device']}" if layer["device"] else "can run nowhere"
        skipped = f"Not on {wanted}, {place}: {'; '.join(reasons)}"
    return case(layer["kind"], layer["name"], skipped)

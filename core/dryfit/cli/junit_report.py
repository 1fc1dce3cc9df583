"""A check as JUnit XML, which continuous-integration servers show as tests.

There are two suites. In the first each condition of `--fail-on` is a test, so that failures are exactly what makes the
exit code 1. In the second each layer is one: it passes where it runs on the device that it was given, and is skipped,
with every reason, where it does not.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

from dryfit.cli.fail_conditions import Outcome

Report = dict[str, Any]

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may have, such as NUL; names in a model may."""


def junit_text(report: Report, outcomes: Sequence[Outcome], own_devices: Mapping[str, str]) -> str:
    """The document.

    Args:
        report: see `dryfit.cli.placement_report`.
        outcomes: of the conditions.
        own_devices: layer name to device, for layers that have one of their own.
    """
    root = ET.Element("testsuites", name=_legal(f"dryfit check {report['model']}"))
    conditions = [_condition(outcome) for outcome in outcomes]
    layers = [_layer(layer, own_devices.get(layer["name"], report["device"])) for layer in report["layers"]]
    for name, cases in (("conditions", conditions), ("layers", layers)):
        _add_suite(root, f"{report['model']}: {name}", cases)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    # Other characters become references, so that the document is right in whatever encoding the output has.
    document: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def _condition(outcome: Outcome) -> ET.Element:
    case = ET.Element("testcase", classname="fail-on", name=_legal(outcome.condition))
    if outcome.failed:
        ET.SubElement(case, "failure", type="fail-on", message=_legal(str(outcome))).text = _legal(outcome.actual)
    return case


def _layer(layer: dict[str, Any], wanted: str) -> ET.Element:
    case = ET.Element("testcase", classname=_legal(layer["kind"]), name=_legal(layer["name"]))
    # A shape computation has no segment, runs on the host, and was never meant to go elsewhere.
    if layer["device"] != wanted and (layer["segment"] is not None or layer["device"] is None):
        found = layer["verdicts"].get(wanted, {}).get("violations", ())
        reasons = [f"{one['message']} [{one['rule']}]" for one in found] or [layer["cause"]]
        place = f"runs on {layer['device']}" if layer["device"] else "can run nowhere"
        ET.SubElement(case, "skipped", message=_legal(f"Not on {wanted}, {place}: {'; '.join(reasons)}"))
    return case


def _add_suite(root: ET.Element, name: str, cases: Sequence[ET.Element]) -> None:
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": 0,
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    suite = ET.SubElement(root, "testsuite", {"name": _legal(name), **{key: str(n) for key, n in counts.items()}})
    suite.extend(cases)


def _legal(text: str) -> str:
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)

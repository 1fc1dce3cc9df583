"""JUnit XML, which continuous-integration servers show as tests: what all commands that write it share.

The first suite has the conditions of `--fail-on`, so that failures are exactly what makes the exit code 1.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from dryfit.answers.conditions import Outcome

NOT_IN_XML = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may have, such as NUL, and DEL, which is not escaped; names in a model may."""


def junit_document(
    command: str, model: str, outcomes: Sequence[Outcome], suites: Mapping[str, Sequence[ET.Element]]
) -> str:
    """The document.

    Args:
        command: what was run, such as `dryfit check`.
        model: the path of the model.
        outcomes: of the conditions.
        suites: name of each other suite to its tests; see `case`.
    """
    root = ET.Element("testsuites", name=_legal(f"{command} {model}"))
    conditions = [_condition(outcome) for outcome in outcomes]
    for name, cases in {"conditions": conditions, **suites}.items():
        _add_suite(root, f"{model}: {name}", cases)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    # Other characters become references, so that the document is right in whatever encoding the output has.
    document: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def case(group: str, name: str, skipped: str = "") -> ET.Element:
    """A test.

    Args:
        group: what it belongs to.
        name: its name.
        skipped: why it is no pass; "" where it is one.
    """
    element = ET.Element("testcase", classname=_legal(group), name=_legal(name))
    if skipped:
        ET.SubElement(element, "skipped", message=_legal(skipped))
    return element


def _condition(outcome: Outcome) -> ET.Element:
    element = case("fail-on", outcome.condition)
    if outcome.failed:
        ET.SubElement(element, "failure", type="fail-on", message=_legal(str(outcome))).text = _legal(outcome.actual)
    return element


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

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import attrs
import pytest

from dryfit.answers.check import CheckAnswer
from dryfit.answers.conditions import Outcome
from dryfit.answers.placement import LayerAnswer, Placement
from dryfit.cli.junit_report import junit_text

DLA = ("--device", "dla", "--precision", "fp16", "--shape", "image=1x1x8x8")
COUNTS = ("tests", "failures", "errors", "skipped")


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  written by the code under test


def suites(root: ET.Element) -> dict[str, ET.Element]:
    return {suite.attrib["name"].rpartition(" ")[2]: suite for suite in root}


@pytest.mark.parametrize(
    ("options", "fail_on", "code"),
    [
        (("--fallback", "GPU"), "fallback>3%,loadables>8", 1),
        (("--fallback", "GPU"), "loadables>8", 0),
        (("--fallback", "GPU"), None, 0),
        (("--fallback", "none"), "unplaced", 1),
    ],
)
def test_failures_are_the_conditions_that_end_the_command_with_1(
    dryfit_command: Any, digits_model: Path, options: tuple[str, ...], fail_on: str | None, code: int
) -> None:
    given = () if fail_on is None else ("--fail-on", fail_on)
    ended = dryfit_command("check", digits_model, *DLA, *options, *given, "--format", "junit")
    root = parsed(ended.out)
    assert ended.code == code
    assert (int(root.attrib["failures"]) > 0) == (code == 1)
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert len(failed) == int(root.attrib["failures"])
    assert all(case.attrib["classname"] == "fail-on" for case in failed)


def test_the_document_has_the_structure_that_servers_read(dryfit_command: Any, digits_model: Path) -> None:
    root = parsed(dryfit_command("check", digits_model, *DLA, "--fallback", "GPU", "--format", "junit").out)
    assert root.tag == "testsuites"
    assert [suite.tag for suite in root] == ["testsuite"] * 3
    for suite in root:
        cases = list(suite)
        assert all(case.tag == "testcase" and case.attrib["name"] and case.attrib["classname"] for case in cases)
        assert [int(suite.attrib[count]) for count in COUNTS] == [
            len(cases),
            *(sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")),
        ]
    for count in COUNTS:
        assert int(root.attrib[count]) == sum(int(suite.attrib[count]) for suite in root)


def test_a_layer_off_its_device_is_skipped_with_every_reason(dryfit_command: Any, digits_model: Path) -> None:
    for options, place in ((("--fallback", "GPU"), "runs on GPU"), (("--fallback", "none"), "unplaced")):
        answer = dryfit_command("check", digits_model, *DLA, *options, "--json").json
        root = parsed(dryfit_command("check", digits_model, *DLA, *options, "--format", "junit").out)
        cases = {case.attrib["name"]: case.find("skipped") for case in suites(root)["layers"]}
        for layer in answer["layers"]:
            skipped = cases.pop(layer["name"])
            if layer["device"] == "DLA":
                assert skipped is None
                continue
            assert skipped is not None
            message = skipped.attrib["message"]
            assert message.startswith(f"Not on DLA, {place}: ")
            assert all(one["rule"] in message for one in layer["verdicts"]["DLA"]["violations"])
        assert not cases


def test_the_build_is_skipped_where_it_is_refused(dryfit_command: Any, digits_model: Path) -> None:
    for options, is_refused in ((("--fallback", "GPU"), False), (("--fallback", "none"), True)):
        answer = dryfit_command("check", digits_model, *DLA, *options, "--json").json
        root = parsed(dryfit_command("check", digits_model, *DLA, *options, "--format", "junit").out)
        (build,) = suites(root)["build"]
        skipped = build.find("skipped")
        assert (skipped is not None) == is_refused
        if skipped is not None:
            assert skipped.attrib["message"].split() == " ".join(answer["refusals"]).split()


def test_a_layer_that_was_placed_by_hand_is_where_it_should_be(dryfit_command: Any, digits_model: Path) -> None:
    options = (*DLA, "--fallback", "GPU", "--layer-device-types", "conv1:GPU", "--format", "junit")
    cases = {
        case.attrib["name"]: case
        for case in suites(parsed(dryfit_command("check", digits_model, *options).out))["layers"]
    }
    assert cases["conv1"].find("skipped") is None
    assert cases["elu2"].find("skipped") is not None


def test_names_that_xml_cannot_hold_leave_the_document_well_formed() -> None:
    layer = LayerAnswer('a\x00<b>&"é\ud800', "relu", [], "DLA", 0, "HALF", "", {})
    answer = CheckAnswer(
        **{field.name.lstrip("_"): () for field in attrs.fields(Placement)}
        | {"model": "m&m.onnx", "device": "DLA"}
        | {"layers": [layer], "own_devices": {}},
        conditions=[Outcome("x>1", "2 < 3", True)],
    )
    text = junit_text(answer)
    root = parsed(text)
    assert text.isascii()
    assert suites(root)["layers"][0].attrib["name"] == 'a\N{REPLACEMENT CHARACTER}<b>&"é\N{REPLACEMENT CHARACTER}'
    assert suites(root)["conditions"][0].find("failure") is not None

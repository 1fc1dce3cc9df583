"""Trained networks in INT8, calibrated on pictures: they stay right, or the page in docs says how much is lost."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from tests.integration.pictures import CASES as FLOAT_CASES

from measuring.accuracy import BUILDS, calibrated, classes, measured, network_of, sqnr
from measuring.accuracy_cases import CASES, EXPLICIT_CASES, NUM_JUDGED_DIGITS
from measuring.accuracy_comparison import CALIBRATORS, ENOUGH

CLOTHES, MNIST = CASES[:2]
INT8_BUILDS = [name for name, build in BUILDS.items() if build.is_int8]


@pytest.fixture(scope="module")
def answers_of(shared_models: Path, shared_images: Path):
    """The answers of a case in FP32 and in INT8, with the pictures; each case is calibrated once."""
    known = {}

    def answer(case):
        if case not in known:
            network = network_of(case, shared_models)
            pictures = case.pictures(shared_images, network.inputs[0])
            cache = calibrated(network, pictures, CALIBRATORS[:1])[CALIBRATORS[0]]
            wanted = {"FP32": BUILDS["FP32"], **{name: BUILDS[name] for name in INT8_BUILDS}}
            known[case] = pictures, {name: measured(network, one, pictures, cache) for name, one in wanted.items()}
        return known[case]

    return answer


@pytest.mark.parametrize("build", INT8_BUILDS)
def test_clothes_are_told_apart_in_int8_as_well_as_other_tools_tell_them(answers_of, build: str) -> None:
    pictures, engines = answers_of(CLOTHES)
    right = {name: int((classes(one.answers) == pictures.labels).sum()) for name, one in engines.items()}
    assert len(pictures.labels) == 123
    assert right["FP32"] == 103
    assert right[build] >= 101


@pytest.mark.parametrize("build", INT8_BUILDS)
def test_nearly_every_layer_of_the_clothes_network_is_in_int8(answers_of, build: str) -> None:
    engine = answers_of(CLOTHES)[1][build]
    assert sum(engine.int8_layers.values()) >= engine.layers - 2
    assert "DLA" not in build or engine.int8_layers["DLA"] >= engine.layers - 3


DIGITS = [one for one in CASES if one.file.startswith("mnist") and one.has_classes]


@pytest.mark.parametrize(
    "case", [CLOTHES, *DIGITS[:2], *(pytest.param(one, marks=pytest.mark.nightly) for one in DIGITS[2:])]
)
def test_a_network_with_labels_tells_the_same_classes_in_int8_as_in_fp32(answers_of, case) -> None:
    pictures, engines = answers_of(case)
    reference = classes(engines["FP32"].answers)
    assert len(reference) == (NUM_JUDGED_DIGITS if case is not CLOTHES else 123)
    for build in INT8_BUILDS:
        found = classes(engines[build].answers)
        assert engines[build].int8_layers
        assert (found == reference).mean() >= ENOUGH
        # What INT8 loses in classes it may not lose in right ones: at most one picture in fifty.
        lost = (reference == pictures.labels).sum() - (found == pictures.labels).sum()
        assert lost <= 0.02 * len(reference)


def test_sqnr_is_the_energy_of_the_signal_over_that_of_the_error() -> None:
    signal = np.array([3.0, -4.0], np.float32)
    assert sqnr(signal, signal + np.array([0.3, 0.4], np.float32)) == pytest.approx(20.0, abs=1e-5)
    assert sqnr(signal, signal) == float("inf")


# The page -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sections(repository: Path) -> dict[str, list[list[str]]]:
    """The rows of each table of the page, as cells; a network's name stands in all its rows."""
    text = (repository / "docs/reference/int8-accuracy.md").read_text(encoding="utf-8")
    found = {}
    for name, contents in re.findall(r"<!-- (\w+) begins -->(.*?)<!-- \1 ends -->", text, re.DOTALL):
        rows = [[cell.strip() for cell in line[1:-1].split(" |")] for line in contents.strip().splitlines()[2:]]
        for above, row in itertools.pairwise(rows):
            row[0] = row[0] or above[0]
        found[name] = rows
    return found


def test_every_shared_network_is_on_the_page(sections, repository: Path, shared_models: Path) -> None:
    text = (repository / "docs/reference/int8-accuracy.md").read_text(encoding="utf-8")
    assert {case.file for case in FLOAT_CASES} <= {row[0] for row in sections["accuracy"]}
    assert {row[0] for row in sections["accuracy"]} == {case.file for case in CASES}
    assert {row[0] for row in sections["explicit"]} == {case.file for case in EXPLICIT_CASES}
    assert all(path.name in text for path in shared_models.glob("*.onnx"))


def test_a_network_that_loses_has_its_outputs_and_costly_tensors_on_the_page(sections) -> None:
    explained = [{row[0] for row in sections[name]} for name in ("outputs", "tensors")]
    for network, _, build, _, _, same, _ in sections["accuracy"]:
        if build != "FP32" and (not same.endswith("%") or float(same[:-1]) < 100 * ENOUGH):
            assert all(network in names for names in explained), f"{network}, {build}: {same}"


@pytest.mark.parametrize("build", INT8_BUILDS)
def test_the_page_says_what_is_so_of_the_clothes(sections, answers_of, build: str) -> None:
    pictures, engines = answers_of(CLOTHES)
    (row,) = (row for row in sections["accuracy"] if row[0] == CLOTHES.file and row[2] == build)
    right = int((classes(engines[build].answers) == pictures.labels).sum())
    # Sums in FP32 beside INT8 round as the machine's vectors do, which can move a picture at the border of two classes.
    assert abs(right - int(row[4].split()[0])) <= 1
    reference = next(iter(engines["FP32"].answers.values()))
    noise = sqnr(reference, next(iter(engines[build].answers.values())))
    assert noise == pytest.approx(float(row[6].removesuffix(" dB")), abs=0.5)

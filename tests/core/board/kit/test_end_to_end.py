"""A kit on a board that behaves otherwise than dryfit expects, and what is read from its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.core.board.kit.stand_in_board import StandInBoard
from tests.core.cli.test_answer_schemas import check

import dryfit
from dryfit.answers.board_pack import BoardPackAnswer
from dryfit.answers.board_read import BoardReadAnswer

BOARD = {"platform": "orin-nx-16", "software": "8.5"}
"""The stand-in has the rules of TensorRT 8.5 and says that it is 10.16: reduce layers, which 10.16 runs, are refused."""


@attrs.frozen
class Trip:
    """A kit that went to a board and back."""

    packed: BoardPackAnswer
    kit: Path
    results: Path
    answer: BoardReadAnswer


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory, digits_model: Path) -> Trip:
    """Probes and a model, on the stand-in."""
    folder = tmp_path_factory.mktemp("trip")
    kit = folder / "kit.zip"
    packed = dryfit.board_pack(
        digits_model,
        output=kit,
        probes="inferred",
        platform="orin-nx-16",
        precision=("fp16", "int8"),
        calibration_cache=digits_model.with_name("calibration.cache")
        if digits_model.with_name("calibration.cache").exists()
        else None,
        shape={"image": (1, 1, 8, 8)},
    )
    board = StandInBoard.make(folder / "board", kit)
    board.dryfit_trtexec(BOARD)
    manifest = board.kit / "kit.json"
    quick = manifest.read_text().replace('"value": "5"', '"value": "0"').replace('"value": "500"', '"value": "0"')
    manifest.write_text(quick)
    ended = board.run()
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    # The shorter measurement is the test's, not the kit's.
    results = board.kit / "results.zip"
    return Trip(packed, board.kit / "kit.json", results, dryfit.board_read(results, kit=_kit_as_run(board, folder)))


def _kit_as_run(board: StandInBoard, folder: Path) -> Path:
    import zipfile

    path = folder / "kit-as-run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(board.kit.rglob("*")):
            if one.is_file() and one.relative_to(board.kit).parts[0] in ("kit.json", "models", "scales"):
                archive.write(one, Path("dryfit-kit") / one.relative_to(board.kit))
    return path


def test_every_inferred_rule_that_builds_can_show_is_decided(trip: Trip) -> None:
    decided = trip.packed.probes
    assert decided is not None
    outcomes = {one.rule: one.outcome for one in trip.answer.rules}
    assert {outcomes[rule] for rule in decided.decided} <= {"confirmed", "not observed"}
    assert all(one.fidelity == "inferred" for one in trip.answer.rules if one.rule in decided.decided)


def test_layers_that_the_board_judges_otherwise_are_found_and_no_others(trip: Trip) -> None:
    assert {one.layer for one in trip.answer.differing} == {"reduce_max"}
    (one,) = trip.answer.differing
    assert (one.verdict, one.violations, one.shown_by) == ("refused", [], "message")
    assert trip.answer.unexplained == [f"{one.build}/reduce_max"]
    checked = {found.rule: found.value for found in one.checked}
    assert checked["dla.reduce.operation"] == "MAX"


def test_measured_times_are_compared_with_estimates(trip: Trip) -> None:
    segments = [one for one in trip.answer.times if one.part == "segment"]
    assert len(segments) >= 10
    for one in segments:
        assert one.ratio == pytest.approx(1.0, abs=0.06)
        assert one.is_within_error
        parts = one.compute_microseconds + one.memory_microseconds + one.overhead_microseconds
        assert one.estimated_microseconds == pytest.approx(parts, rel=1e-6)
    runs = {one.build: one for one in trip.answer.times if one.part == "network"}
    assert runs["digits"].runs == 20


def test_outputs_are_compared_on_the_same_inputs(trip: Trip) -> None:
    outputs = {one.build: one for one in trip.answer.outputs}
    assert outputs["digits"].elements == 10
    assert all(one.largest <= 1e-6 * max(one.largest_value, 1.0) for one in trip.answer.outputs)


def test_forms_at_the_borders_of_segments_agree(trip: Trip) -> None:
    forms = [one for one in trip.answer.facts if "ForeignNode" in one.what]
    assert len(forms) >= 10
    assert all(one.agrees for one in forms), [one for one in forms if not one.agrees]
    assert {one.what for one in trip.answer.facts if not one.agrees} == {"loadables", "copies"}


def test_the_answer_fits_its_schema_and_has_a_form_as_text(trip: Trip) -> None:
    check(json.loads(trip.answer.to_json()), BoardReadAnswer.schema())
    check(json.loads(trip.packed.to_json()), BoardPackAnswer.schema())
    text = "\n".join(str(block) for block in trip.answer.blocks(verbose=True))
    assert "dla.lrn.rank" in text
    assert "reduce_max" in str(trip.answer)
    assert str(trip.packed)


def test_without_the_kit_the_probes_are_read_and_the_model_is_named(trip: Trip) -> None:
    answer = dryfit.board_read(trip.results, outputs=False)
    notes = {one.build: list(one.notes) for one in answer.builds if one.notes}
    assert list(notes) == ["digits"]
    assert "pass the kit (--kit)" in notes["digits"][0]
    assert {one.rule for one in answer.rules} <= {one.rule for one in trip.answer.rules}


def test_the_command_prints_the_same(trip: Trip, dryfit_command: Any) -> None:
    ended = dryfit_command("board", "read", trip.results, "--no-outputs")
    assert ended.code == 0
    assert "as the rules say" in ended.out
    check(dryfit_command("board", "read", trip.results, "--no-outputs", "--json").json, BoardReadAnswer.schema())

"""A kit on a board that behaves otherwise than dryfit expects, and what is read from its results."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import attrs
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper, numpy_helper
from tests.core.board.kit.stand_in_board import StandInBoard
from tests.core.cli.test_answer_schemas import check

import dryfit
from dryfit.answers.board.pack import BoardPackAnswer
from dryfit.answers.board.read import BoardReadAnswer
from dryfit.cli.commands.board import board

OVERLAY = """
schema = 1
name = "stand-in"
platform = "orin-nx-16"
software = "10.16"

[rules."dla.lrn.rank"]
enabled = false
layers = 1
"""
"""How the stand-in differs from what dryfit expects."""


@attrs.frozen
class Trip:
    """A kit that went to a board and back."""

    packed: BoardPackAnswer
    kit: Path
    results: Path
    answer: BoardReadAnswer


def small_model() -> onnx.ModelProto:
    """A convolution and a pooling whose output is INT8 on the DLA."""
    weights = np.random.default_rng(1).normal(0, 0.2, (8, 4, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MaxPool", ["b"], ["y"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    values = [helper.make_tensor_value_info(*one) for one in (("x", 1, [1, 4, 16, 16]), ("y", 1, [1, 8, 8, 8]))]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> Trip:
    """The largest of the probes and a model in INT8, on the stand-in."""
    folder = tmp_path_factory.mktemp("trip")
    kit, cache = folder / "kit.zip", folder / "small.cache"
    scale = struct.pack(">f", 1 / 64).hex()
    cache.write_text("TRT-8502-EntropyCalibration2\n" + "".join(f"{name}: {scale}\n" for name in "xaby"))
    packed = dryfit.board_pack(
        small_model(),
        output=kit,
        probes="inferred",
        platform="orin-nx-16",
        precision=("fp16", "int8"),
        calibration_cache=cache,
    )
    stand_in = StandInBoard.make(folder / "board", kit)
    (folder / "stand-in.toml").write_text(OVERLAY)
    stand_in.dryfit_trtexec({"overlays": str(folder / "stand-in.toml")})
    # The shorter measurement, and the probes that may end a build left out, are the test's.
    manifest = json.loads((stand_in.kit / "kit.json").read_text())
    manifest["builds"] = manifest["builds"][:2]
    for option in manifest["options"]:
        option["value"] = "0" if option["name"] in ("--duration", "--warmUp") else option["value"]
    (stand_in.kit / "kit.json").write_text(json.dumps(manifest))
    ended = stand_in.run()
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    results, as_run = stand_in.kit / "results.zip", _kit_as_run(stand_in, folder)
    return Trip(packed, as_run, results, dryfit.board_read(results, kit=as_run))


def _kit_as_run(stand_in: StandInBoard, folder: Path) -> Path:
    path = folder / "kit-as-run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(stand_in.kit.rglob("*")):
            if one.is_file() and one.relative_to(stand_in.kit).parts[0] in ("kit.json", "models", "scales"):
                archive.write(one, Path("dryfit-kit") / one.relative_to(stand_in.kit))
    return path


def test_every_inferred_rule_that_the_build_can_show_is_decided(trip: Trip) -> None:
    decided = trip.packed.probes
    assert decided is not None
    alone = {"dla.convolution.cbuf_estimate", "dla.deconvolution.cbuf_estimate", "dla.deconvolution.constant_weights"}
    outcomes = {one.rule: one.outcome for one in trip.answer.rules}
    found = {rule: outcomes.get(rule) for rule in decided.decided if rule not in alone}
    assert len(found) >= 12
    assert {rule for rule, outcome in found.items() if outcome == "not observed"} == {
        "dla.inner_output",
        "dla.matrix_multiply.rank",
    }
    assert {rule for rule, outcome in found.items() if outcome == "contradicted"} == {"dla.lrn.rank"}
    assert set(found.values()) == {"confirmed", "contradicted", "not observed"}
    assert all(one.refused >= 1 for one in trip.answer.rules if one.outcome == "confirmed")
    assert trip.answer.rules[0].accepted_against == ["probe-1/lrn_rank_3"]


def test_layers_that_the_board_judges_otherwise_are_found_and_no_others(trip: Trip) -> None:
    (one,) = trip.answer.differing
    assert (one.layer, one.verdict, one.violations) == ("lrn_rank_3", "accepted", ["dla.lrn.rank"])
    assert trip.answer.unexplained == []
    checked = {found.rule: found.numbers for found in one.checked}
    assert checked["dla.lrn.window"] == [5.0]


def test_what_is_learnt_of_the_results_makes_dryfit_expect_what_the_board_does(trip: Trip, tmp_path: Path) -> None:
    learned = dryfit.board_learn(trip.results, tmp_path / "my-board.toml")
    assert {one.rule: one.change for one in learned.rules} == {"dla.lrn.rank": "values = [4, 3]"}
    answer = dryfit.board_read(trip.results, outputs=False, overlays=tmp_path / "my-board.toml")
    assert (answer.differing, len(answer.overlays)) == ([], 1)
    # The stand-in folds one of the copies into a layer that reads it.
    differing = [one.what for one in answer.facts if not one.agrees and one.build == "probe-1"]
    assert differing == ["copies"]


def test_measured_times_are_compared_with_estimates(trip: Trip) -> None:
    segments = [one for one in trip.answer.times if one.part == "segment"]
    assert len(segments) >= 10
    for one in segments:
        assert one.ratio == pytest.approx(1.0, abs=0.06)
        assert one.is_within_error
        parts = one.compute_microseconds + one.memory_microseconds + one.overhead_microseconds
        assert one.transfers_microseconds > 0  # the first copy back waits for the segment
        assert one.estimated_microseconds == pytest.approx(parts + one.transfers_microseconds, rel=1e-6)
    copies = [one for one in trip.answer.times if one.part == "copy"]
    assert {one.name.partition(" ")[2] for one in copies} == {"to nvm", "from nvm"}
    for one in copies:
        assert (one.ratio, one.device) == (pytest.approx(1.0, abs=0.06), "DLA")
    runs = {one.build: one for one in trip.answer.times if one.part == "network"}
    assert runs["small"].runs == 20
    assert runs["small"].precisions == {"INT8": 3}


def test_outputs_are_compared_in_codes(trip: Trip) -> None:
    outputs = {one.build: one for one in trip.answer.outputs}
    small = outputs["small"]
    assert (small.elements, small.scale, small.different, small.largest_codes) == (512, 1 / 64, 0, 0)
    assert small.largest_value > 0.5
    assert outputs["probe-1"].different is None
    assert all(one.largest <= 1e-6 * max(one.largest_value, 1.0) for one in trip.answer.outputs)


def test_forms_at_the_borders_of_segments_agree(trip: Trip) -> None:
    forms = [one for one in trip.answer.facts if "ForeignNode" in one.what]
    assert len(forms) >= 10
    assert all(one.agrees for one in forms), [one for one in forms if not one.agrees]
    counts = {one.what for one in trip.answer.facts if not one.agrees and one.build == "probe-1"}
    assert counts == {"loadables", "copies"}


def test_the_answer_fits_its_schema_and_has_a_form_as_text(trip: Trip) -> None:
    check(json.loads(trip.answer.to_json()), BoardReadAnswer.schema())
    check(json.loads(trip.packed.to_json()), BoardPackAnswer.schema())
    text = "\n".join(str(block) for block in trip.answer.blocks(verbose=True))
    assert "dla.lrn.rank" in text
    assert "reduce_max" in str(trip.answer)
    assert str(trip.packed)


def test_the_command_reads_probes_without_the_kit_and_names_the_model(trip: Trip) -> None:
    runner = CliRunner()
    ended = runner.invoke(board, ["read", str(trip.results), "--no-outputs", "--json"], catch_exceptions=False)
    assert ended.exit_code == 0
    read = json.loads(ended.output)
    check(read, BoardReadAnswer.schema())
    notes = {one["build"]: one["notes"] for one in read["builds"] if one["notes"]}
    assert list(notes) == ["small"]
    assert "pass the kit (--kit)" in notes["small"][0]
    assert {one["rule"] for one in read["rules"]} <= {one.rule for one in trip.answer.rules}

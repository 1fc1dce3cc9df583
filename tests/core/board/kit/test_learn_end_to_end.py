"""From a kit on a board that differs to an overlay, and from the overlay to what dryfit then says of the models."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import attrs
import onnx
import pytest
from tests.core.board import stand_in_boards as boards
from tests.core.board.kit.stand_in_board import StandInBoard
from tests.core.cli.test_answer_schemas import check

import dryfit
from dryfit.answers.board.learn import BoardLearnAnswer
from dryfit.answers.board.pack import BoardPackAnswer
from dryfit.board.kit.probes import candidates, network_of
from dryfit.cli.main import main

CHOSEN = (
    *("pool_max_window_8", "pool_max_window_9", "pool_max_window_12", "activation_elu", "activation_relu"),
    *("lrn_9", "lrn_11", "conv_stride_4", "conv_stride_8", "conv_dilation_33", "conv_dilation_32"),
)
BOARD = """schema = 1
name = "stand-in"
platform = "orin-nx-16"

[rules."dla.pooling.window"]
limits = { high = 10 }

[rules."dla.activation.type"]
limits = { values = ["RELU", "SIGMOID", "TANH", "CLIP", "LEAKY_RELU", "ELU"] }

[rules."dla.lrn.window"]
enabled = false

[rules."dla.convolution.stride"]
limits = { high = 5 }

[cost.dla]
step_seconds = { value = 30e-6 }
copy_seconds = { value = 10e-6 }
handover_seconds = { value = 20e-6 }
bytes_per_second = { value = 20e9 }
"rates.FP16.macs_per_cycle" = { value = 300 }
"""


def results_of(folder: Path, board: Path, *models: Path, **options: Any) -> tuple[Path, Path]:
    """(results, kit) of a stand-in that has an overlay."""
    kit = folder / "kit.zip"
    dryfit.board_pack(models, output=kit, platform=boards.PLATFORM, precision="fp16", **options)
    stand_in = StandInBoard.make(folder / "board", kit)
    stand_in.dryfit_trtexec({"platform": boards.PLATFORM, "overlays": str(board)})
    manifest = stand_in.kit / "kit.json"
    # Measurements of a stand-in need not last.
    manifest.write_text(manifest.read_text().replace('"value": "5"', '"value": "0"').replace('"500"', '"0"'))
    ended = stand_in.run(timeout=3000)
    assert (ended.returncode, ended.stderr) in [(0, ""), (1, "")], ended.stdout  # 1: a build that fails is a result too
    as_run = folder / "kit-as-run.zip"
    with zipfile.ZipFile(as_run, "w") as archive:
        for one in sorted(stand_in.kit.rglob("*")):
            if one.is_file() and one.relative_to(stand_in.kit).parts[0] in ("kit.json", "models", "scales"):
                archive.write(one, Path("dryfit-kit") / one.relative_to(stand_in.kit))
    return stand_in.kit / "results.zip", as_run


@attrs.frozen
class Learnt:
    """What was learnt, and where from."""

    results: Path
    kit: Path
    overlay: Path
    answer: BoardLearnAnswer


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    folder = tmp_path_factory.mktemp("learn")
    board, model, overlay = folder / "stand-in.toml", folder / "probes.onnx", folder / "my-board.toml"
    board.write_text(BOARD)
    onnx.save(network_of([one for one in candidates() if one.name in CHOSEN]), model)
    results, kit = results_of(folder, board, model)
    return Learnt(results, kit, overlay, dryfit.board_learn(results, overlay, kit=kit, author="a test"))


def test_the_changed_rules_are_learnt_and_no_others(learnt: Learnt) -> None:
    assert {one.rule: one.change for one in learnt.answer.rules} == {
        "dla.activation.type": 'values = ["RELU", "SIGMOID", "TANH", "CLIP", "LEAKY_RELU", "ELU"]',
        "dla.convolution.stride": "high = 4",
        "dla.lrn.window": "values = [3, 5, 7, 9, 11]",
        "dla.pooling.window": "high = 9",
    }
    reasons = {one.rule: one.reason for one in learnt.answer.rules}
    assert reasons["dla.pooling.window"] == "9 ran on the device, 12 was refused"
    assert reasons["dla.convolution.stride"] == "4 ran on the device, 8 was refused"
    assert learnt.answer.confirmed == {"dla.convolution.dilation": 1}
    assert learnt.answer.undecided == []


def test_a_second_kit_tries_the_values_between(learnt: Learnt, tmp_path: Path) -> None:
    open_limits = {one.rule: (one.taken, one.refused) for one in learnt.answer.open_limits}
    assert open_limits == {"dla.convolution.stride": (4, 8), "dla.pooling.window": (9, 12)}
    assert "dla.pooling.window, high: 9 ran on the device, 12 was refused" in str(learnt.answer)
    packed = dryfit.board_pack(after=learnt.results, kit=learnt.kit, output=tmp_path / "kit-2.zip")
    found = {one.rule: (one.values, one.left) for one in packed.narrowed}
    assert found == {"dla.convolution.stride": (3, 1), "dla.pooling.window": (2, 1)}
    assert [one.layers for one in packed.builds] == [5]
    assert packed.platform == boards.PLATFORM
    check(json.loads(packed.to_json()), BoardPackAnswer.schema())
    assert "Limits that the board has elsewhere" in str(packed)
    with pytest.raises(dryfit.ConfigError, match="of another board"):
        dryfit.board_pack(after=learnt.results, kit=learnt.kit, platform="agx-orin-64", output=tmp_path / "kit-3.zip")
    with pytest.raises(dryfit.ConfigError, match="nothing to narrow"):
        dryfit.board_pack(after=learnt.results, output=tmp_path / "kit-3.zip")


def test_with_the_overlay_dryfit_says_what_the_board_did(learnt: Learnt) -> None:
    model = learnt.overlay.with_name("probes.onnx")
    answer = dryfit.check(str(model), overlays=learnt.overlay, device="DLA", fallback="GPU", precision="fp16")
    on_gpu = {one.onnx_nodes[0] for one in answer.layers if one.device == "GPU"}
    assert on_gpu == {"pool_max_window_12", "conv_stride_8", "conv_dilation_33"}
    assert [one.partition(" ")[0] for one in answer.overlays] == ["my-board"]


def test_the_cost_model_comes_close_to_the_measured_times(learnt: Learnt) -> None:
    assert learnt.answer.costs[0].device == "DLA"
    assert learnt.answer.costs[0].error_held_out < 0.1 < learnt.answer.costs[0].error_before
    assert "step_seconds" in {one.name for one in learnt.answer.parameters}


def test_the_answer_fits_its_schema_and_reads_well(learnt: Learnt, capsys: Any) -> None:
    check(json.loads(learnt.answer.to_json()), BoardLearnAnswer.schema())
    text = str(learnt.answer)
    assert "  dla.pooling.window: high = 9 (documented: low = 1, high = 8)" in text
    assert f"Use it with --overlay {learnt.overlay}" in text
    command = [*("board", "learn", str(learnt.results), "--kit", str(learnt.kit), "-o", str(learnt.overlay))]
    for more, code, told in (([], 2, "already exists"), (["--force"], 0, "4 changed rules")):
        with pytest.raises(SystemExit) as ended:
            main([*command, *more])
        printed = capsys.readouterr()
        assert (ended.value.code or 0, told in printed.out + printed.err) == (code, True)
    assert dryfit.read_overlay(learnt.overlay).rules["dla.pooling.window"].limits == {"high": 9}


@pytest.mark.nightly
def test_a_board_that_is_drawn_is_learnt_from_all_probes(tmp_path: Path) -> None:
    drawn = attrs.evolve(boards.drawn_board(3, ["fp16"]), software="")
    board = tmp_path / "drawn.toml"
    dryfit.write_overlay(drawn, board)
    results, kit = results_of(tmp_path, board, probes="all")
    answer = dryfit.board_learn(results, kit=kit)
    named = {one.rule for one in answer.rules}
    assert named <= drawn.rules.keys()
    assert len(named) >= 0.95 * len(drawn.rules) - 1

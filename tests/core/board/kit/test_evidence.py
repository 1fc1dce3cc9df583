"""What is counted for and against rules: verdicts of messages, lists and TensorRT's Python module."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from tests.core.board import stand_in_boards as boards
from tests.core.board.kit.test_results import BOARD, BUILD, MANIFEST, STATE, written

import dryfit
from dryfit.answers.board.gpu_layers import GpuLayers
from dryfit.answers.board.read import BoardReadAnswer, RuleEvidence
from dryfit.answers.network_cost import network_cost
from dryfit.answers.placement import placement_of
from dryfit.board.kit.manifest import sha256
from dryfit.board.kit.probes import candidates, network_of
from dryfit.board.results import MeasuredLayer
from dryfit.builder.assessment import assessment_of

NAMES = ("conv_kernel_32", "conv_kernel_33", "lrn_9", "reduce_mean", "activation_elu")
MODEL = network_of([one for one in candidates() if one.name in NAMES]).SerializeToString()
HEAD = "&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec --onnx=m --fp16 --useDLACore=0 --allowGPUFallback\n"


def read(
    tmp_path: Path,
    log: Sequence[str] = (),
    verdicts: Any = (),
    state: str = "done",
    layers: Sequence[Any] = (),
    profile: Sequence[Any] = (),
) -> BoardReadAnswer:
    """Read results of one probe whose log has these lines."""
    build = attrs.evolve(BUILD, model_sha256=sha256(MODEL), options={"precision": ["fp16"], "fallback": "GPU"})
    files = {
        "kit.json": attrs.evolve(MANIFEST, builds=[build]).to_json(),
        "board.json": json.dumps(BOARD).encode(),
        "models/probe-1.onnx": MODEL,
        "builds/probe-1/state.json": json.dumps({**STATE, "state": state}).encode(),
        "builds/probe-1/log.txt": (HEAD + "".join(f"[I] [TRT] {line}\n" for line in log)).encode(),
        "builds/probe-1/verdicts.json": json.dumps(list(verdicts)).encode(),
        "builds/probe-1/layers.json": json.dumps({"Layers": list(layers)}).encode(),
        "builds/probe-1/profile.json": json.dumps([{"count": 9}, *profile]).encode(),
    }
    return dryfit.board_read(written(tmp_path / "results.zip", files))


def rule(answer: BoardReadAnswer, name: str) -> RuleEvidence:
    return next(one for one in answer.rules if one.rule == name)


def unsupported(layer: str, kind: str) -> str:
    return f"Layer '{layer}' ({kind}): Unsupported on DLA. Switching this layer's device type to GPU."


LISTS = (
    "---------- Layers Running on DLA ----------",
    "[DlaLayer] {ForeignNode[conv_kernel_32]}",
    "[DlaLayer] {ForeignNode[lrn_9]}",
    "---------- Layers Running on GPU ----------",
    "[GpuLayer] CONVOLUTION: conv_kernel_33",
    "[GpuLayer] REDUCE: reduce_mean",
    "[GpuLayer] ACTIVATION: activation_elu",
)
FALLEN = (
    unsupported("conv_kernel_33", "CONVOLUTION"),
    unsupported("reduce_mean", "REDUCE"),
    unsupported("activation_elu", "ACTIVATION"),
)


def test_layers_that_are_refused_for_one_rule_confirm_it(tmp_path: Path) -> None:
    answer = read(tmp_path, [*FALLEN, *LISTS])
    assert (answer.platform, answer.software, answer.power_mode) == ("orin-nx-16", "8.5.2", "15W")
    assert answer.differing == []
    kernel = rule(answer, "dla.convolution.kernel")
    assert (kernel.outcome, kernel.refused, kernel.accepted, kernel.agreeing) == ("confirmed", 1, 1, 2)
    window = rule(answer, "dla.lrn.window")
    assert (window.outcome, window.refused, window.accepted) == ("supported", 0, 1)
    # Reduce layers have two reasons in this version: neither is decided.
    operation = rule(answer, "dla.reduce.operation")
    assert (operation.outcome, operation.refused, operation.refused_shared) == ("undecided", 0, 1)
    (loadables,) = [one for one in answer.facts if one.what == "loadables"]
    assert (loadables.board, loadables.dryfit, loadables.agrees) == ("2", "2", True)


def test_the_reason_in_a_log_decides_between_rules(tmp_path: Path) -> None:
    reason = "reduce_mean: DLA cores do not support AVG Reduce operation."
    answer = read(tmp_path, [reason, *FALLEN, *LISTS])
    operation = rule(answer, "dla.reduce.operation")
    assert (operation.outcome, operation.refused, operation.refused_shared) == ("confirmed", 1, 0)
    assert rule(answer, "dla.reduce.software").refused == 0


def test_memory_of_segments_is_compared_with_the_summary_of_the_builder(tmp_path: Path) -> None:
    summary = (
        "Number of DLA node candidates offloaded : 2 out of 2",
        "DLA memory required by accepted candidates : Managed SRAM = 1 MiB, Local DRAM = 1 MiB, Global DRAM = 90 MiB",
    )
    answer = read(tmp_path, [*FALLEN, *LISTS, *summary])
    facts = {one.what: (one.board, one.agrees) for one in answer.facts}
    assert facts["offloaded candidates"] == ("2", True)
    assert facts["DLA_MANAGED_SRAM of all segments"] == ("1 MiB", True)
    assert facts["DLA_GLOBAL_DRAM of all segments"] == ("90 MiB", False)
    assert {one.behind for one in answer.facts if "SRAM" in one.what} == {"memory_pool.segment"}


def test_a_layer_that_the_board_takes_contradicts_the_rule_that_it_violates(tmp_path: Path) -> None:
    lists = [line.replace("[GpuLayer] CONVOLUTION: conv_kernel_33", "") for line in LISTS]
    lists.insert(2, "[DlaLayer] {ForeignNode[conv_kernel_33]}")
    answer = read(tmp_path, [*FALLEN[1:], *lists])
    kernel = rule(answer, "dla.convolution.kernel")
    assert (kernel.outcome, kernel.accepted_against) == ("contradicted", ["probe-1/conv_kernel_33"])
    assert [one.layer for one in answer.differing] == ["conv_kernel_33"]
    assert "probe-1/conv_kernel_33 accepted" in " ".join(str(answer).split())


def test_a_refused_layer_without_a_violated_rule_is_unexplained(tmp_path: Path) -> None:
    lists = [line for line in LISTS if "lrn_9" not in line]
    answer = read(tmp_path, [*FALLEN, unsupported("lrn_9", "LRN"), *lists, "[GpuLayer] LRN: lrn_9"])
    assert answer.unexplained == ["probe-1/lrn_9"]
    (one,) = answer.differing
    assert {found.rule: found.numbers for found in one.checked}["dla.lrn.window"] == [9.0]


def test_a_layer_over_the_limit_of_loadables_was_accepted(tmp_path: Path) -> None:
    over = "DLA supports only 16 subgraphs per DLA core. Switching to GPU for layer lrn_9"
    answer = read(tmp_path, [*FALLEN, over])
    (one,) = [found for found in answer.layers if found.layer == "lrn_9"]
    assert (one.verdict, one.board_device, one.messages) == ("accepted", "GPU", ["fallback.loadable_limit"])
    assert rule(answer, "dla.lrn.window").accepted == 1


def test_verdicts_of_the_python_module_count_more_than_lists(tmp_path: Path) -> None:
    verdicts = [
        {"layer": "conv_kernel_33", "type": "CONVOLUTION", "on_dla": True},
        {"layer": "lrn_9", "type": "CONSTANT", "on_dla": False},
        {"layer": "lrn_9", "type": "LRN", "on_dla": True},
    ]
    answer = read(tmp_path, [], verdicts)
    assert {one.layer: (one.verdict, one.shown_by) for one in answer.layers} == {
        "conv_kernel_33": ("accepted", "can_run_on_DLA"),
        "lrn_9": ("accepted", "can_run_on_DLA"),
    }
    assert rule(answer, "dla.convolution.kernel").outcome == "contradicted"


def test_a_log_that_shows_nothing_decides_nothing(tmp_path: Path) -> None:
    answer = read(tmp_path, [], state="failed")
    assert (answer.layers, answer.rules, answer.facts, answer.times) == ([], [], [], [])
    assert answer.builds[0].state == "failed"


def test_a_board_and_a_version_that_are_not_known_are_said(tmp_path: Path) -> None:
    build = attrs.evolve(BUILD, model_sha256=sha256(MODEL), options={"precision": ["fp16"]})
    board = {**BOARD, "tensorrt": "12.0", "power_mode": "MAXN_SUPER"}
    files = {
        "kit.json": attrs.evolve(MANIFEST, builds=[build]).to_json(),
        "board.json": json.dumps(board).encode(),
    }
    answer = dryfit.board_read(written(tmp_path / "r.zip", files))
    assert answer.power_mode is None
    assert any("There are no rules for TensorRT 12.0" in one for one in answer.notes)
    assert any("the board's power mode is MAXN_SUPER" in one for one in answer.notes)
    assert answer.builds[0].state == "missing"


# Layers of the GPU ----------------------------------------------------------------------------------------------------


def inspected(name: str, form: str, weights: str = "", node: str = "", kind: str = "CaskConvolution") -> dict[str, Any]:
    """An engine layer in the form of TensorRT's inspector."""
    tensor = {"Name": f"{name}_x", "Format/Datatype": form}
    metadata = f"[ONNX Layer: {node or name}]"
    found = {"Name": name, "LayerType": kind, "Inputs": [tensor], "Outputs": [], "Metadata": metadata}
    return {**found, "Weights": {"Type": weights, "Count": 9}} if weights else found


HALF = "Channel major FP16 format where channel % 8 == 0"


def test_precisions_of_single_layers_of_the_gpu_are_compared(tmp_path: Path) -> None:
    layers = [
        inspected("conv_kernel_33", HALF, "Half"),
        inspected("reduce_mean", "Row major linear FP32", kind="Reduce"),
        inspected("__myl_Elu", HALF, node="activation_elu", kind="kgen"),
        inspected("Reformatting CopyNode for Input Tensor 0 to lrn_9", "Row major linear FP32", kind="Reformat"),
        inspected("{ForeignNode[lrn_9]}", HALF, kind="DLA"),
    ]
    facts = {one.what: one for one in read(tmp_path, [*FALLEN, *LISTS], layers=layers).facts}
    found = {what: (one.board, one.dryfit, one.agrees) for what, one in facts.items() if what.startswith("precision")}
    assert found == {
        "precision of conv_kernel_33": ("FP16", "FP16", True),
        "precision of reduce_mean": ("FP32", "FP16", False),
        "precision of __myl_Elu": ("FP16", "FP16", True),
    }


def test_times_of_layers_of_the_gpu_are_compared(tmp_path: Path) -> None:
    rows = [("conv_kernel_33", 0.05), ("reduce_mean", 0.01), ("lrn_9", 0.2), ("unknown + reduce_mean", 0.3)]
    profile = [{"name": name, "averageMs": time} for name, time in rows]
    times = {one.name: one for one in read(tmp_path, [*FALLEN, *LISTS], profile=profile).times}
    assert {name: one.measured_microseconds for name, one in times.items()} == {"conv_kernel_33": 50, "reduce_mean": 10}
    assert {(one.part, one.device, one.is_lower_bound) for one in times.values()} == {("layer", "GPU", True)}


def test_engine_layers_and_steps_that_share_layers_are_one_part() -> None:
    _, config, design = boards.designed(boards.chain_model(8, 8, 3, 3), "fp16", "GPU")
    placed = placement_of("chain", assessment_of(design, config), config.settings(design.network)).layers
    rows = [("conv0", 10.0), ("relu0", 5.0), ("conv1 + relu1", 12.0), ("conv2", 7.0), ("Reformatting CopyNode", 3.0)]
    measured = [MeasuredLayer(name, time) for name, time in rows]
    parts = GpuLayers(placed, ()).parts(measured, network_cost(design).segments)
    # Of the last step, one layer was not measured.
    assert [(one.name, one.microseconds, one.layers) for one in parts] == [
        ("conv0 and relu0", 15.0, ["conv0", "relu0"]),
        ("conv1 + relu1", 12.0, ["conv1", "relu1"]),
    ]
